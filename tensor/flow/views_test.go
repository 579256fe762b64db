package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// constant is a 1×n value of equal numbers.
func constant(ctx context.Context, x float64, n int) *flow.Value {
	return async.Of(must(tensor.Full(ctx, complex(x, 0), tensor.Float64, 1, n)))
}

func TestChangesThroughViewsAreInTheOrderOfTheCalls(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		ctx, free := tensor.Scope(ctx)
		defer func() {
			if err := free(); err != nil {
				t.Error(err)
			}
		}()
		x := async.New[*tensor.Array]("x")
		w := x.Write()

		// Both an operation on a view and one on what it views step aside, and what
		// is asked for after them changes what they read.
		c := constant(ctx, 1, 2)
		v := flow.Reshape(ctx, c, 2)
		if _, err := v.Get(ctx); err != nil {
			t.Fatal(err)
		}
		before := flow.Add(ctx, v, x)
		changed := flow.AddInto(ctx, 1, constant(ctx, 10, 2), 1, c)
		after := flow.Add(ctx, v, x)
		// A change through the view steps aside, and its base is read and changed.
		d := constant(ctx, 1, 2)
		u := flow.T(ctx, flow.T(ctx, d))
		flow.AddInto(ctx, 1, x, 1, u)
		through := flow.Scale(ctx, 2, d)
		flow.AddInto(ctx, 1, constant(ctx, 1, 2), 0, d)
		last := flow.Copy(ctx, u)
		// What is freed was read before.
		e := constant(ctx, 7, 2)
		kept := flow.Add(ctx, flow.Reshape(ctx, e, 1, 2), x)
		flow.Free(ctx, e)

		if err := w.Set(must(tensor.Full(ctx, 100, tensor.Float64, 1, 2))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, before, 101, 101)
		wants(t, ctx, changed, 11, 11)
		wants(t, ctx, after, 111, 111)
		wants(t, ctx, through, 202, 202)
		wants(t, ctx, last, 1, 1)
		wants(t, ctx, kept, 107, 107)
		if _, err := e.Get(ctx); !errors.Is(err, weir.ErrUninitialized) {
			t.Errorf("what was freed answers %v", err)
		}
	})
}

func TestOperationsOnOneMemoryDoNotWaitForThemselves(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		ctx, free := tensor.Scope(ctx)
		defer func() {
			if err := free(); err != nil {
				t.Error(err)
			}
		}()
		for name, do := range map[string]func(c, v *flow.Value) *flow.Value{
			"a base by its view":  func(c, v *flow.Value) *flow.Value { return flow.AddInto(ctx, 1, v, 1, c) },
			"a view by its base":  func(c, v *flow.Value) *flow.Value { flow.AddInto(ctx, 1, c, 1, v); return c },
			"a view by itself":    func(c, v *flow.Value) *flow.Value { flow.AddInto(ctx, 1, v, 1, v); return c },
			"a base by itself":    func(c, v *flow.Value) *flow.Value { return flow.AddInto(ctx, 1, c, 1, c) },
			"a view by a sibling": func(c, v *flow.Value) *flow.Value { flow.AddInto(ctx, 1, flow.Reshape(ctx, c, 1, 2), 1, v); return c },
			"before it is a view": func(c, v *flow.Value) *flow.Value {
				u := flow.T(ctx, flow.T(ctx, v))
				flow.AddInto(ctx, 1, c, 1, u)
				return c
			},
			"a base that was read": func(c, v *flow.Value) *flow.Value {
				flow.Scale(ctx, 3, v)
				flow.Scale(ctx, 3, c)
				return flow.AddInto(ctx, 1, v, 1, c)
			},
		} {
			c := constant(ctx, 4, 2)
			v := flow.Reshape(ctx, c, 1, 2)
			if got, err := read(ctx, do(c, v)); err != nil || got[0] != 8 || got[1] != 8 {
				t.Errorf("%s: %v, %v; expected 8 twice", name, got, err)
			}
			wants(t, ctx, v, 8, 8)
		}
	})
}

// TestATaskMayReadAViewAndChangeItsBase: it does not wait for itself.
func TestATaskMayReadAViewAndChangeItsBase(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		ctx, free := tensor.Scope(ctx)
		defer func() {
			if err := free(); err != nil {
				t.Error(err)
			}
		}()
		c := constant(ctx, 1, 2)
		r, w := flow.Reshape(ctx, c, 1, 2).Read(), c.Write()
		async.Go(ctx, "change", func(ctx context.Context) error {
			x, err := r.Await(ctx)
			if err != nil {
				return err
			}
			y, err := w.Await(ctx)
			if err != nil {
				return err
			}
			return errors.Join(tensor.AddInto(ctx, 1, x, 1, y), w.Set(y))
		}, r, w)
		wants(t, ctx, c, 2, 2)
	})
}

// TestACopyIsNoView: what Reshape had to copy is in no order with what it copied,
// once that is known.
func TestACopyIsNoView(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		ctx, free := tensor.Scope(ctx)
		defer func() {
			if err := free(); err != nil {
				t.Error(err)
			}
		}()
		c := matrix(ctx, 1, 2, 2)
		copied := flow.Reshape(ctx, flow.T(ctx, c), 4) // whose elements do not lie in a row
		if _, err := copied.Get(ctx); err != nil {
			t.Fatal(err)
		}
		x := async.New[*tensor.Array]("x")
		w := x.Write()
		aside := flow.Add(ctx, copied, x)
		if _, err := flow.AddInto(ctx, 1, c, 1, c).Get(ctx); err != nil { // would wait for what stepped aside
			t.Error(err)
		}
		w.Release()
		if _, err := aside.Get(ctx); !errors.Is(err, weir.ErrUninitialized) {
			t.Error(err)
		}
	})
}

// TestAViewOfACopyIsInItsOrder: that Reshape had to copy is known only after a view
// of the copy was asked for.
func TestAViewOfACopyIsInItsOrder(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		ctx, free := tensor.Scope(ctx)
		defer func() {
			if err := free(); err != nil {
				t.Error(err)
			}
		}()
		first, x := async.New[*tensor.Array]("first"), async.New[*tensor.Array]("x")
		toFirst, toX := first.Write(), x.Write()
		copied := flow.Reshape(ctx, flow.T(ctx, first), 4) // whose elements do not lie in a row
		v := flow.Reshape(ctx, copied, 1, 4)
		if err := toFirst.Set(must(tensor.Full(ctx, 1, tensor.Float64, 2, 2))); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Get(ctx); err != nil {
			t.Fatal(err)
		}
		flow.AddInto(ctx, 1, x, 0, v) // steps aside
		through := flow.Scale(ctx, 2, copied)
		flow.AddInto(ctx, 1, copied, 1, copied)
		if _, err := flow.T(ctx, constant(ctx, 1, 2)).Get(ctx); err != nil { // all of that had its turn
			t.Fatal(err)
		}
		if err := toX.Set(must(tensor.Full(ctx, 100, tensor.Float64, 1, 4))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, through, 200, 200, 200, 200)
		wants(t, ctx, flow.Copy(ctx, v), 200, 200, 200, 200)
		wants(t, ctx, first, 1, 1, 1, 1)
	})
}

// TestADecompositionOfAViewIsInTheOrderOfTheCalls: it is a task, and of its base too.
func TestADecompositionOfAViewIsInTheOrderOfTheCalls(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		ctx, free := tensor.Scope(ctx)
		defer func() {
			if err := free(); err != nil {
				t.Error(err)
			}
		}()
		// What is changed after the call, or freed.
		c, d := constant(ctx, 3, 1), constant(ctx, 7, 1)
		_, before, _ := flow.SVD(ctx, flow.T(ctx, c))
		flow.AddInto(ctx, 1, c, 1, c)
		_, kept, _ := flow.SVD(ctx, flow.T(ctx, d))
		flow.Free(ctx, d)
		wants(t, ctx, before, 3)
		wants(t, ctx, kept, 7)
		wants(t, ctx, c, 6)

		// What is to be changed before it, and stepped aside.
		x := async.New[*tensor.Array]("x")
		w := x.Write()
		v := flow.T(ctx, c)
		if _, err := v.Get(ctx); err != nil {
			t.Fatal(err)
		}
		flow.AddInto(ctx, 1, x, 1, c)
		inner, done := tensor.Scope(ctx)
		_, after, _ := flow.SVD(inner, v)
		if err := done(); err != nil { // does not wait for it
			t.Error(err)
		}
		flow.AddInto(ctx, 0, x, 0, v)
		if _, err := flow.Copy(ctx, constant(ctx, 1, 1)).Get(ctx); err != nil { // all of that had its turn
			t.Fatal(err)
		}
		if err := w.Set(must(tensor.Full(ctx, 100, tensor.Float64, 1, 1))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, after, 106)
		wants(t, ctx, c, 0)
	})
}
