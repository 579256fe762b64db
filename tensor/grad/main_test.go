package grad_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(tb testing.TB, o runtime.Options) context.Context {
	tb.Helper()
	rt, err := runtime.Start(o)
	if err != nil {
		tb.Fatal(err)
	}
	ctx := context.Background()
	if o.Scheduler != nil { // whoever waits drives it
		ctx = scheduler.With(ctx, o.Scheduler)
	}
	ctx, free := tensor.Scope(ctx)
	tb.Cleanup(func() {
		if err := free(); err != nil {
			tb.Error(err)
		}
		if err := rt.Close(); err != nil {
			tb.Error(err)
		}
	})
	return ctx
}

// failer is a test, or a run of rapid's.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// input is an array's content, widened.
type input struct {
	dt    tensor.DType
	shape []int
	data  []complex128
}

// array is what Array would be asked for in the test's own words.
func (x input) array(ctx context.Context, t failer) *tensor.Array {
	t.Helper()
	wide, err := tensor.From(ctx, x.data, x.shape...)
	if len(x.shape) == 0 {
		wide, err = tensor.Scalar(ctx, x.data[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := tensor.AsType(ctx, wide, x.dt)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// read is what a value holds, widened.
func read(ctx context.Context, t failer, v *flow.Value) input {
	t.Helper()
	a, err := v.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := tensor.AsType(ctx, a, tensor.Complex128)
	if err != nil {
		t.Fatal(err)
	}
	data, err := tensor.Data[complex128](ctx, wide)
	if err != nil {
		t.Fatal(err)
	}
	return input{a.DType(), a.Shape(), data}
}
