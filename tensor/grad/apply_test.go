package grad_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
	"github.com/weirgo/weir/tensor/grad"
)

// flow.Apply and its kin, which this package is built on.
func TestApply(t *testing.T) {
	ctx := start(t, runtime.Options{})
	boom := errors.New("boom")
	one, err := tensor.From(ctx, []float64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	x := async.Of(one)
	double := func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Add(ctx, in[0], in[len(in)-1])
	}
	v := flow.Apply(ctx, "double", double, flow.Apply(ctx, "double", double, x))
	if got := read(ctx, t, v).data; got[0] != 4 || got[1] != 8 {
		t.Errorf("got %v", got)
	}
	none := flow.Apply(ctx, "made of nothing", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		if len(in) != 0 {
			return nil, boom
		}
		return tensor.Zeros(ctx, tensor.Float32, 2)
	})
	if got := read(ctx, t, none); len(got.data) != 2 || got.dt != tensor.Float32 {
		t.Errorf("got %v", got)
	}
	answers := func(a *tensor.Array, err error) func(context.Context, []*tensor.Array) (*tensor.Array, error) {
		return func(context.Context, []*tensor.Array) (*tensor.Array, error) { return a, err }
	}
	failed, line := flow.Apply(ctx, "fails", answers(nil, boom), x), here()
	poisoned(ctx, t, grad.Leaf(failed), "fails", line, "boom")
	failed, line = flow.Apply(ctx, "no array", answers(nil, nil), x), here()
	poisoned(ctx, t, grad.Leaf(failed), "no array", line, "made a nil array")
	failed, line = flow.Apply(ctx, "no function", nil, x), here()
	poisoned(ctx, t, grad.Leaf(failed), "no function", line, "the function is nil")
	failed, line = flow.Apply(ctx, "no input", double, x, nil), here()
	poisoned(ctx, t, grad.Leaf(failed), "no input", line, "operand 1 is nil")
	failed, line = flow.Apply(ctx, "panics", func(context.Context, []*tensor.Array) (*tensor.Array, error) { panic(boom) }, x), here()
	poisoned(ctx, t, grad.Leaf(failed), "panics", line, "boom")
	if _, err := failed.Get(ctx); !errors.Is(err, weir.ErrPanic) || !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}
