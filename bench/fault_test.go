package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// startFaulty installs a runtime whose driver calls plan decides.
func startFaulty(t *testing.T, plan *fault.Plan) (*runtime.Runtime, *runtime.Resources) {
	t.Helper()
	rt, err := runtime.StartFamilies([]driver.Family{fault.New(host.New(host.Options{}), plan)}, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rt, defaultResources(t)
}

func TestADriverThatFailsFailsTheRunAndNothingIsLeftHeld(t *testing.T) {
	scenarios, err := Find("gemm-small", "lease", "ledger", "reads", "waiters", "events")
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []fault.Call{fault.PoolAlloc, fault.StreamRecord, fault.StreamCopyIn, fault.BLASGemm, fault.DeviceNewEvent, fault.StreamNotify} {
		plan := &fault.Plan{}
		rt, _ := startFaulty(t, plan)
		plan.FailFrom(call, 2, nil)
		failed := 0
		err := Run(context.Background(), Options{Quick: true, Scenarios: scenarios, Report: func(r Result) error {
			if r.Err != nil {
				failed++
			}
			return nil
		}})
		if !errors.Is(err, fault.ErrInjected) || failed == 0 {
			t.Errorf("%v failing from its second call on: %d cases failed, Run answered %v; expected the injected failure", call, failed, err)
		}
		plan.Clear()
		if err := rt.Close(); errors.Is(err, weir.ErrLeak) {
			t.Errorf("%v failing from its second call on: %v", call, err)
		}
	}
}

// A write waits for each completion in the ledger that is unfinished; streams
// that are held up keep all of them so.
func TestReadsLeaveOneCompletionOfEachStreamInTheLedger(t *testing.T) {
	plan := &fault.Plan{}
	rt, r := startFaulty(t, plan)
	var x reader
	if err := x.open(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	for _, s := range x.streams {
		if err := s.Call(func() { <-gate }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := each(x.read)(5000); err != nil {
		t.Fatal(err)
	}
	other, err := stream.NewPool(r.Device().Driver(), stream.Options{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := other.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	before := plan.Counts()[fault.StreamWait]
	acc := buffer.Begin(s)
	acc.Write(x.buf)
	if waits := plan.Counts()[fault.StreamWait] - before; waits != r.Streams().Size() {
		t.Errorf("a write after 5000 reads on %d streams waits for %d completions; expected one a stream", r.Streams().Size(), waits)
	}
	close(gate)
	if err := errors.Join(acc.End(), s.Release(), other.Close(), x.close(), rt.Close()); err != nil {
		t.Error(err)
	}
}
