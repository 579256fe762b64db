package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
)

func TestAKernelThatPanicsLosesItsDeviceSaysWhereAndTheNextStartHasAnother(t *testing.T) {
	rt := must(runtime.Start(runtime.Options{Host: runtime.HostOnly}))
	d := must(runtime.Default())
	s := must(must(runtime.For(d)).Streams().Acquire(context.Background()))
	var none []int
	if err := s.Call(func() { none[3] = 1 }); err != nil {
		t.Fatal(err)
	}
	err := s.Synchronize(context.Background())
	var e *weir.Error
	if !errors.Is(err, weir.ErrDeviceLost) || !errors.As(err, &e) {
		t.Fatalf("got %v; expected the loss of the device", err)
	}
	if report := weir.Report(err); !strings.Contains(report, "index out of range [3]") || !strings.Contains(report, "lost_test.go:") {
		t.Errorf("the report does not say what panicked and where:\n%s", report)
	}
	_ = s.Release() // answers the loss again
	closed := rt.Close()
	if n := strings.Count(closed.Error(), "\n"); !errors.Is(closed, weir.ErrDeviceLost) || n > 0 {
		t.Errorf("Close answers %d lines; expected the loss, once:\n%v", n+1, closed)
	}

	rt = must(runtime.Start(runtime.Options{Host: runtime.HostOnly}))
	defer func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}()
	if again := must(runtime.Default()); again.Err() != nil || again == d {
		t.Errorf("the next start has the lost device: %v", again.Err())
	}
}
