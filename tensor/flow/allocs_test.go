//go:build !race

package flow_test

import (
	"context"
	"testing"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor/flow"
)

// TestSubmittingAllocatesOnce keeps the task that launches parked, so that what
// launching allocates is not counted.
func TestSubmittingAllocatesOnce(t *testing.T) {
	o := runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1}}
	o.Tasks.Lanes = 1
	ctx := start(t, o)
	x, y, c := matrix(ctx, 1, 64, 64), matrix(ctx, 2, 64, 64), matrix(ctx, 3, 64, 64)
	r := must(runtime.Here(ctx))
	s := must(r.Streams().Acquire(ctx))
	first := flow.MatMul(ctx, x, y)
	if err := async.Go(ctx, "behind it on its lane", func(context.Context) error { return nil }).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for _, op := range []struct {
		name   string
		atMost float64
		ask    func()
	}{
		{"MatMul", 1, func() { flow.MatMul(ctx, x, y) }},
		{"Add", 1, func() { flow.Add(ctx, x, y) }},
		{"T", 1, func() { flow.T(ctx, x) }},
		{"CopyInto", 1, func() { flow.CopyInto(ctx, c, x) }},
		{"Scale", 3, func() { flow.Scale(ctx, 2, x) }},
		{"GemmInto", 3, func() { flow.GemmInto(ctx, 1, x, y, 1, c) }},
	} {
		if got := testing.AllocsPerRun(2000, op.ask); got > op.atMost {
			t.Errorf("asking for %s allocates %v times; want at most %v", op.name, got, op.atMost)
		}
	}
	if idle, _, _, waiting := r.Streams().Counts(); idle != 0 || waiting != 1 {
		t.Errorf("%d streams are idle and %d tasks wait for one; want the launching one to", idle, waiting)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(context.Background()); err != nil {
		t.Error(err)
	}
	if err := c.Wait(ctx); err != nil {
		t.Error(err)
	}
}
