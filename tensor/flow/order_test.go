package flow_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// TestAnOperationReadsWhatItChanges: one value is operand and result.
func TestAnOperationReadsWhatItChanges(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		c := async.Of(must(tensor.From(ctx, []float64{1, 2, 3, 4}, 2, 2)))
		wants(t, ctx, flow.GemmInto(ctx, 1, c, c, 1, c), 8, 12, 18, 26)
		wants(t, ctx, flow.AddInto(ctx, 2, c, -1, c), 8, 12, 18, 26)
		wants(t, ctx, flow.CopyInto(ctx, c, c), 8, 12, 18, 26)
		wants(t, ctx, flow.CopyInto(ctx, c, flow.T(ctx, c)), 8, 18, 12, 26)
		wants(t, ctx, flow.GemmInto(ctx, 1, c, flow.T(ctx, c), 0, flow.T(ctx, c)), 388, 564, 564, 820)
		wants(t, ctx, c, 388, 564, 564, 820)
		// Also when it steps aside first.
		x, held := async.New[*tensor.Array]("x"), c.Read()
		w := x.Write()
		flow.GemmInto(ctx, 1, c, x, 0, c)
		flow.AddInto(ctx, 1, c, 1, c)
		again := flow.MatMul(ctx, c, c)
		if err := w.Set(must(tensor.From(ctx, []float64{0, 1, 1, 0}, 2, 2))); err != nil {
			t.Fatal(err)
		}
		held.Release()
		wants(t, ctx, c, 1128, 776, 1640, 1128)
		wants(t, ctx, again, 1128*1128+776*1640, 2*1128*776, 2*1128*1640, 1128*1128+776*1640)
	})
}

// TestATaskReadsWhatItChanges: a task with a Reader and a Writer of one value, in
// either order, ends, and says so where it would wait for itself.
func TestATaskReadsWhatItChanges(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x := flow.Scale(ctx, 2, async.Of(must(tensor.From(ctx, []float64{1, 2}, 1, 2))))
		r, w := x.Read(), x.Write()
		async.Go(ctx, "changes", func(ctx context.Context) error {
			a, err := r.Await(ctx)
			if err != nil {
				return err
			}
			r.Release()
			b, err := w.Await(ctx)
			if err != nil {
				return err
			}
			if err := tensor.AddInto(ctx, 1, a, 1, b); err != nil {
				return err
			}
			return w.Set(b)
		}, r, w)
		wants(t, ctx, flow.Scale(ctx, 1, x), 4, 8)
		r, w = x.Read(), x.Write()
		async.Go(ctx, "would wait for itself", func(ctx context.Context) error {
			if _, err := r.Await(ctx); err != nil {
				return err
			}
			_, err := w.Await(ctx)
			return err
		}, r, w)
		if p := poisonOf(t, ctx, flow.Scale(ctx, 1, x)); !errors.Is(p, weir.ErrDeadlock) {
			t.Errorf("got %v", p)
		}
	})
}

// TestAReaderHoldsOffTheOperationInPlace of its value, and nothing else.
func TestAReaderHoldsOffTheOperationInPlace(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		a, c := matrix(ctx, 1, 1, 1), matrix(ctx, 3, 1, 1)
		n := numbers(1, 1)[0]
		start, seen := async.New[int]("go"), async.New[float64]("seen")
		wgo := start.Write()
		r, rgo, w := c.Read(), start.Read(), seen.Write()
		async.Go(ctx, "reads", func(ctx context.Context) error {
			x, err := r.Await(ctx)
			if err != nil {
				return err
			}
			if _, err := rgo.Await(ctx); err != nil { // it holds c meanwhile
				return err
			}
			v, err := tensor.Item[float64](ctx, must(tensor.Reshape(ctx, x)))
			if err != nil {
				return err
			}
			return w.Set(v)
		}, r, rgo, w)
		changed := flow.Scale(ctx, 10, flow.GemmInto(ctx, 1, a, a, 1, c))
		wants(t, ctx, flow.Scale(ctx, 2, a), 2*n)
		probe := changed.Read()
		if _, ok, _ := probe.TryAwait(); ok {
			t.Error("c was changed while a task reads it")
		}
		probe.Release()
		if err := wgo.Set(1); err != nil {
			t.Fatal(err)
		}
		old := numbers(3, 1)[0]
		wants(t, ctx, changed, 10*(n*n+old))
		if v, err := seen.Get(ctx); err != nil || v != old {
			t.Errorf("the reader saw %v, %v; want %v", v, err, old)
		}
	})
}

// live is how many bytes are reachable.
func live() uint64 {
	runtime.Collect()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestALongChainLeavesNothing behind as it goes, nor when all of it stood aside.
func TestALongChainLeavesNothing(t *testing.T) {
	const steps = 100_000
	links := map[string]func(ctx context.Context, v *flow.Value) *flow.Value{
		"views": func(ctx context.Context, v *flow.Value) *flow.Value { return flow.T(ctx, v) },
		"operations": func(ctx context.Context, v *flow.Value) *flow.Value {
			next := flow.Scale(ctx, -1, v)
			flow.Free(ctx, v)
			return next
		},
		"in place": func(ctx context.Context, v *flow.Value) *flow.Value { return flow.AddInto(ctx, 0, v, -1, v) },
	}
	for name, link := range links {
		t.Run(name, func(t *testing.T) {
			ctx := start(t, runtime.Options{})
			v := async.Of(must(tensor.From(ctx, []float64{3}, 1, 1)))
			if name == "in place" { // values are changed for good
				v = flow.Copy(ctx, v)
			}
			var after [2]uint64
			for k := range after {
				for n := range steps / len(after) {
					if v = link(ctx, v); n%1000 == 0 { // the log keeps the room that it once had
						_ = v.Wait(ctx)
					}
				}
				wants(t, ctx, v, 3)
				after[k] = live()
			}
			if after[1] > after[0]+1<<20 {
				t.Errorf("%d bytes are reachable after %d steps, and %d after twice as many", after[0], steps/2, after[1])
			}
		})
	}
	t.Run("aside", func(t *testing.T) {
		ctx := start(t, runtime.Options{})
		x := async.New[*tensor.Array]("x")
		w := x.Write()
		before, v := live(), x
		for range steps {
			v = flow.T(ctx, v)
		}
		if err := w.Set(must(tensor.From(ctx, []float64{3}, 1, 1))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, v, 3)
		if late := live(); late > before+16<<20 { // the log's room stays
			t.Errorf("%d bytes are reachable before, and %d after", before, late)
		}
	})
}

// TestADeepEinsumChainIsThatOfTheDirectForm, with more operands than a record has
// room for.
func TestADeepEinsumChainIsThatOfTheDirectForm(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		const spec = "ij,jk,kl,lm,mn->ni"
		mine, free := tensor.Scope(ctx)
		x := must(tensor.From(mine, []int64{1, 2, 3, 4}, 2, 2))
		one := must(tensor.From(mine, []int64{0, 1, -1, 1}, 2, 2))
		v, u := async.Of(x), async.Of(one)
		for range 300 {
			v = flow.Einsum(mine, spec, u, v, u, flow.T(mine, v), u)
			x = must(tensor.Einsum(mine, spec, one, x, one, x.T(), one))
		}
		got := must(tensor.Data[int64](ctx, must(v.Get(ctx))))
		want := must(tensor.Data[int64](ctx, x))
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("got %v; want %v", got, want)
				break
			}
		}
		if err := free(); err != nil {
			t.Error(err)
		}
	})
}

// TestMoreThanALogHoldsWaitsForRoom: a task that asks for more waits, with its lane
// given back, until there is room; a plain goroutine until its context ends.
func TestMoreThanALogHoldsWaitsForRoom(t *testing.T) {
	o := runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1}}
	o.Tasks.Lanes = 1
	ctx := start(t, o)
	x := async.Of(must(tensor.From(ctx, []float64{3}, 1, 1)))
	s := must(must(runtime.Here(ctx)).Streams().Acquire(ctx))
	v := flow.Scale(ctx, 2, x) // waits for the stream, and all behind it wait for it
	if err := async.Go(ctx, "other", func(context.Context) error { return nil }).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for range async.MaxQueued {
		v = flow.T(ctx, v)
	}
	ends, cancel := context.WithCancel(ctx)
	var refused *flow.Value
	var at string
	gives := async.Go(ctx, "gives up", func(ctx context.Context) error {
		refused, at = flow.T(scheduler.As(ends, ctx), x), here()
		return nil
	})
	out := async.New[*tensor.Array]("out")
	w := out.Write()
	async.Go(ctx, "asks", func(ctx context.Context) error {
		a, err := flow.Scale(ctx, 5, v).Get(ctx)
		if err != nil {
			return err
		}
		return w.Set(a)
	}, w)
	if err := async.Go(ctx, "other", func(context.Context) error { return nil }).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := gives.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	wants(t, ctx, out, 30)
	want := "poisoned: flow.T (" + at + ") was cancelled: async.Log: gave up waiting for room among the operations of " + where.names[0] + ": context canceled"
	if p := poisonOf(t, ctx, refused); p.Error() != want || !errors.Is(p, weir.ErrCancelled) {
		t.Errorf("got  %v\nwant %s", p, want)
	}
}

// TestSlicesOfArgumentsMayBeUsedAgainAtOnce, while what they were for is still to be
// launched.
func TestSlicesOfArgumentsMayBeUsedAgainAtOnce(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x := async.New[*tensor.Array]("x")
		w := x.Write()
		shape, axes, output := []int{3, 2}, []int{1, 0}, []int{2, 0}
		index := []tensor.Index{tensor.Reverse()}
		labels := [][]int{{0, 1}, {1, 2}}
		wide, long := []int{1, 2, 3}, []tensor.ProductOption{tensor.Exact}
		rank := []tensor.SVDOption{tensor.Rank(1)}
		reshaped := flow.Reshape(ctx, x, shape...)
		permuted := flow.Permute(ctx, x, axes...)
		sliced := flow.Slice(ctx, x, index...)
		stretched := flow.Broadcast(ctx, x, wide...)
		network := flow.Network(ctx, tensor.EinsumOptions{}, []*flow.Value{reshaped, x}, labels, output)
		product := flow.MatMul(ctx, reshaped, x, long...)
		changed := flow.GemmInto(ctx, 1, reshaped, x, 0, async.Of(must(tensor.Zeros(ctx, tensor.Float64, 3, 3))), long...)
		_, values, _ := flow.SVD(ctx, x, rank...)
		shape[0], axes[0], output[0], index[0], labels[0][0], labels[1], wide[0], long[0], rank[0] = 9, 9, 9, tensor.At(9), 9, nil, 9, nil, nil
		if err := w.Set(must(tensor.From(ctx, []float64{1, 2, 3, 4, 5, 6}, 2, 3))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, reshaped, 1, 2, 3, 4, 5, 6)
		wants(t, ctx, permuted, 1, 4, 2, 5, 3, 6)
		wants(t, ctx, sliced, 4, 5, 6, 1, 2, 3)
		wants(t, ctx, stretched, 1, 2, 3, 4, 5, 6)
		wants(t, ctx, network, 9, 19, 29, 12, 26, 40, 15, 33, 51)
		wants(t, ctx, product, 9, 12, 15, 19, 26, 33, 29, 40, 51)
		wants(t, ctx, changed, 9, 12, 15, 19, 26, 33, 29, 40, 51)
		if s, err := read(ctx, values); err != nil || len(s) != 1 {
			t.Errorf("the first singular value is %v, %v", s, err)
		}
	})
}
