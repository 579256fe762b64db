package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/provider/solver"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// exhaust takes all that a pool has, and answers how to give it back.
var exhaust = map[string]func(ctx context.Context, r *runtime.Resources) (release func() error){
	"stream": func(ctx context.Context, r *runtime.Resources) func() error {
		s := must(r.Streams().Acquire(ctx))
		return s.Release
	},
	"handle": func(ctx context.Context, r *runtime.Resources) func() error {
		h := must(must(blas.Of(r)).Pool.Acquire(ctx))
		return func() error { h.Release(stream.Completion{}); return nil }
	},
	"solver": func(ctx context.Context, r *runtime.Resources) func() error {
		h := must(must(solver.Of(r)).Pool.Acquire(ctx))
		return func() error { h.Release(stream.Completion{}); return nil }
	},
}

// TestAnExhaustedPoolParksTheOperationAndNoLane holds the one stream or handle
// that there is: other tasks of the same lane go on meanwhile, and once it is
// given back all is computed.
func TestAnExhaustedPoolParksTheOperationAndNoLane(t *testing.T) {
	for what, take := range exhaust {
		t.Run(what, func(t *testing.T) {
			under(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1}}, func(t *testing.T, ctx context.Context) {
				r := must(runtime.Here(ctx))
				must(blas.Configure(r, 1))
				must(solver.Configure(r, 1))
				a, b := matrix(ctx, 1, 2, 2), matrix(ctx, 2, 2, 2)
				release := take(ctx, r)
				product := flow.MatMul(ctx, a, b)
				flow.GemmInto(ctx, 1, a, b, 1, product)
				_, values, _ := flow.SVD(ctx, product)
				for range 3 { // started behind the one that launches, on its lane
					out := async.New[int]("out")
					w := out.Write()
					async.Go(ctx, "other", func(context.Context) error { return w.Set(1) }, w)
					if _, err := out.Get(ctx); err != nil {
						t.Fatalf("beside an operation that waits for a %s: %v", what, err)
					}
				}
				if _, ok, _ := product.Read().TryAwait(); ok && what != "solver" {
					t.Errorf("the product was launched without a %s", what)
				}
				if _, ok, _ := values.Read().TryAwait(); ok {
					t.Errorf("the decomposition was launched without a %s", what)
				}
				if err := release(); err != nil {
					t.Fatal(err)
				}
				x, y := numbers(1, 4), numbers(2, 4)
				var want []float64
				for i := range 2 {
					for j := range 2 {
						want = append(want, 2*(x[2*i]*y[j]+x[2*i+1]*y[2+j]))
					}
				}
				wants(t, ctx, product, want...)
				if s, err := read(ctx, values); err != nil || len(s) != 2 {
					t.Errorf("the singular values are %v, %v", s, err)
				}
			})
		})
	}
}

// TestCancellingAParkedOperationPoisonsItAlone ends the context of the operation
// that waits for the only stream: it and what is made of it are poisoned at once,
// while the stream is still held; what is queued behind it is launched later.
func TestCancellingAParkedOperationPoisonsItAlone(t *testing.T) {
	under(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1}}, func(t *testing.T, ctx context.Context) {
		a := matrix(ctx, 1, 2, 2)
		r := must(runtime.Here(ctx))
		s := must(r.Streams().Acquire(ctx))
		mine, cancel := context.WithCancelCause(ctx)
		parked, at := flow.MatMul(mine, a, a), here()
		dependent := flow.T(ctx, flow.T(ctx, parked))
		queued := flow.Scale(mine, 2, a)
		behind := flow.Scale(ctx, 2, a)
		w := async.New[int]("a turn for the parked one").Write()
		if err := async.Go(ctx, "other", func(context.Context) error { return w.Set(1) }, w).Wait(ctx); err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		cancel(enough)
		for _, v := range []*flow.Value{parked, dependent} {
			p := poisonOf(t, ctx, v)
			if p.Op != "flow.MatMul" || p.Site() != at || !p.Cancelled || !errors.Is(p, weir.ErrCancelled) || !errors.Is(p, enough) {
				t.Errorf("%v: got %v; want that flow.MatMul (%s) was cancelled: enough", v, p, at)
			}
		}
		if p := poisonOf(t, ctx, queued); p.Op != "flow.Scale" || !p.Cancelled || !errors.Is(p, enough) {
			t.Errorf("what was queued under the ended context: %v", p)
		}
		if _, ok, _ := behind.Read().TryAwait(); ok {
			t.Error("it was launched without a stream")
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		x := numbers(1, 4)
		wants(t, ctx, behind, 2*x[0], 2*x[1], 2*x[2], 2*x[3])
		wants(t, ctx, a, x...)
	})
}

// TestCancellingAnOperationAsidePoisonsItAlone ends the context of an operation on
// what a task is yet to write: it does not wait for the task. A context wakes it from
// a goroutine of its own, which is none that a debug scheduler runs.
func TestCancellingAnOperationAsidePoisonsItAlone(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		a, x := matrix(ctx, 1, 1, 1), async.New[*tensor.Array]("x")
		w := x.Write()
		c := matrix(ctx, 2, 1, 1)
		mine, cancel := context.WithCancel(ctx)
		aside, at := flow.Add(mine, a, x), here()
		flow.AddInto(mine, 1, x, 1, c)
		other := flow.Add(ctx, a, x)
		wants(t, ctx, flow.Scale(ctx, 2, a), 2*numbers(1, 1)[0]) // so the others have stepped aside
		cancel()
		if p := poisonOf(t, ctx, aside); p.Op != "flow.Add" || p.Site() != at || !errors.Is(p, weir.ErrCancelled) {
			t.Errorf("got %v", p)
		} else if want := "poisoned: flow.Add (" + at + `) was cancelled: flow.Add: gave up waiting for value "x", to be written (write 0): context canceled`; p.Error() != want {
			t.Errorf("got  %v\nwant %s", p, want)
		}
		if p := poisonOf(t, ctx, c); p.Op != "flow.AddInto" || !errors.Is(p, weir.ErrCancelled) {
			t.Errorf("got %v", p)
		}
		if err := w.Set(must(a.Get(ctx))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, other, 2*numbers(1, 1)[0])
	})
}
