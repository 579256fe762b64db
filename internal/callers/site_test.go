package callers

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
)

//go:noinline
func submit() Site { return At(PCs()) }

//go:noinline
func wrapped() (Site, int) { // a function of Weir between the user and the one that asks
	s := submit()
	return s, 1
}

func line() int {
	_, _, n, _ := goruntime.Caller(1)
	return n
}

func TestASiteIsWhereTheUserCalled(t *testing.T) {
	s, n := submit(), line()
	if at := s.String(); !strings.HasSuffix(at, fmt.Sprintf("site_test.go:%d", n)) {
		t.Errorf("called at line %d; the site says %s", n, at)
	}
}

func TestASiteHoldsTheCallersCallerToo(t *testing.T) {
	s, _ := wrapped()
	pcs := make([]uintptr, 1)
	frames := goruntime.CallersFrames(append(pcs[:0], s.outer))
	if f, _ := frames.Next(); !strings.HasSuffix(f.Function, "TestASiteHoldsTheCallersCallerToo") {
		t.Errorf("the outer frame is %s; expected this test", f.Function)
	}
}

func TestTheFirstFrameOfAGoroutineHasNoCallersCaller(t *testing.T) {
	got := make(chan Site)
	go func() { got <- submit() }()
	if s := <-got; !strings.Contains(s.String(), "site_test.go:") {
		t.Errorf("the site says %q", s)
	}
	if (Site{}).String() != "" {
		t.Error("the zero Site names a place")
	}
}

func BenchmarkPCs(b *testing.B) {
	for range b.N {
		submit()
	}
}
