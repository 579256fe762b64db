package hostblas

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// helping says whether a goroutine is a helper: its caller's goes through Gemm.
func helping() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "(*Library).Gemm") {
			return false
		}
		if !more {
			return true
		}
	}
}

func TestAHelpersPanicIsTheCallersAndCostsNoCore(t *testing.T) {
	const budget = 3
	cause := errors.New("the cause that the test gave")
	l := &Library{name: "gonum", cores: newCores(budget), grain: 50}
	p := newProblem(t, driver.Gemm{DType: dtype.Float64, M: 70, N: 50, K: 90, Batch: 4, Alpha: 1, Beta: 1},
		0, 0, false, false, rand.New(rand.NewPCG(7, 8)))
	var s Scratch
	defer s.Free()
	p.run(l, &s)
	if s.plan.workers < budget {
		t.Fatalf("%d workers; expected the product to have helpers", s.plan.workers)
	}
	healthy := slices.Clone(p.c.bytes())

	for name, most := range map[string]int64{"one": 1, "all": budget} {
		var begun atomic.Int64
		var arrived sync.WaitGroup // helpers, before which the caller does not begin
		arrived.Add(budget - 1)
		l.probe = func(threads int) {
			switch {
			case threads < 0: // it ends
			case !helping():
				arrived.Wait()
			default:
				defer arrived.Done()
				if begun.Add(1) <= most {
					panic(cause)
				}
			}
		}
		got := recovered(func() { p.run(l, &s) })
		v, ok := got.(*Panic)
		if !ok || v.Value != cause {
			t.Fatalf("%s: the caller panicked with %v; expected a helper's panic", name, got)
		}
		if text := fmt.Sprint(v); !strings.HasPrefix(text, cause.Error()+"\n\nof a helper of a product:\n") || !strings.Contains(text, "panic_test.go:") {
			t.Errorf("its text is %q", text)
		}
		if frame, _ := runtime.CallersFrames(v.Callers).Next(); frame.Function == "" || !bytes.Contains(v.Stack, []byte("panic_test.go:")) {
			t.Errorf("it does not say where: %v\n%s", frame, v.Stack)
		}
	}

	l.probe = nil
	if n := l.cores.grab(budget + 1); n != budget {
		t.Errorf("%d of %d cores are free afterwards", n, budget)
	}
	l.cores.release(budget)
	copy(p.c.bytes(), p.original.bytes())
	if p.run(l, &s); !bytes.Equal(healthy, p.c.bytes()) {
		t.Error("the next product of the same workspace is wrong")
	}
}

// recovered answers what do panicked with.
func recovered(do func()) (r any) {
	defer func() { r = recover() }()
	do()
	return nil
}
