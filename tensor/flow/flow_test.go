package flow_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
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
	tb.Cleanup(func() {
		if err := rt.Close(); err != nil {
			tb.Error(err)
		}
	})
	return context.Background()
}

func TestAProductOfValues(t *testing.T) {
	ctx := start(t, runtime.Options{})
	a, err := tensor.From(ctx, []float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	v := flow.MatMul(ctx, async.Of(a), async.Of(a))
	for range 1000 {
		v = flow.Scale(ctx, 1, v)
	}
	c, err := v.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	x, err := tensor.Data[float32](ctx, c)
	if err != nil || x[0] != 7 || x[3] != 22 {
		t.Errorf("%v, %v", x, err)
	}
	_, err = flow.MatMul(ctx, v, flow.MatMul(ctx, v, async.New[*tensor.Array]("nothing"))).Get(ctx)
	t.Log(err)
}

func BenchmarkSubmit(b *testing.B) {
	ctx := start(b, runtime.Options{})
	one, err := tensor.Full(ctx, 1, tensor.Float32, 64, 64)
	if err != nil {
		b.Fatal(err)
	}
	x := async.Of(one)
	b.ReportAllocs()
	var last *flow.Value
	n := 0
	for range b.N {
		last = flow.MatMul(ctx, x, x)
		if n++; n == 1000 {
			b.StopTimer()
			n = 0
			if err := last.Wait(ctx); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	last.Wait(ctx)
}
