package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// refused is a value that cannot be, the line that asked for it, and the whole of
// what Get is to answer, with %s for that line.
type refused struct {
	v    *flow.Value
	at   string
	want string
	is   error
}

func (r refused) check(t *testing.T, ctx context.Context) {
	t.Helper()
	a, err := r.v.Get(ctx)
	if want := strings.ReplaceAll(r.want, "%s", r.at); err == nil || err.Error() != want {
		t.Errorf("got  %v, %v\nwant %s", a, err, want)
	}
	for _, is := range []error{weir.ErrPoisoned, r.is} {
		if !errors.Is(err, is) {
			t.Errorf("%v does not match %v", err, is)
		}
	}
}

func TestWhatCannotBeIsRefusedWithTheOperationAndTheLine(t *testing.T) {
	ctx := start(t, runtime.Options{})
	other := device(1)
	x, y := matrix(ctx, 1, 2, 3), matrix(ctx, 2, 2, 3)
	c := func() *flow.Value { return matrix(ctx, 3, 2, 2) }
	none := async.Of[*tensor.Array](nil)
	empty := async.Of(&tensor.Array{})
	never := async.New[*tensor.Array]("never")
	floats := flow.AsType(ctx, x, tensor.Float32)
	far := flow.To(ctx, y, other)
	u, s, vh := flow.SVD(ctx, nil)
	var all []refused
	add := func(v *flow.Value, at, want string, is error) { all = append(all, refused{v, at, want, is}) }

	v, at := flow.MatMul(ctx, nil, x), here()
	add(v, at, "poisoned: flow.MatMul (%s) failed: flow.MatMul: operand 0 is nil; expected a value", weir.ErrArgument)
	v, at = flow.Add(ctx, x, nil), here()
	add(v, at, "poisoned: flow.Add (%s) failed: flow.Add: operand 1 is nil; expected a value", weir.ErrArgument)
	v, at = flow.Scale(ctx, 2, nil), here()
	add(v, at, "poisoned: flow.Scale (%s) failed: flow.Scale: operand 0 is nil; expected a value", weir.ErrArgument)
	v, at = flow.GemmInto(ctx, 1, x, nil, 1, c()), here()
	add(v, at, "poisoned: flow.GemmInto (%s) failed: flow.GemmInto: operand 1 is nil; expected a value", weir.ErrArgument)
	v, at = flow.GemmInto(ctx, 1, x, y, 1, nil), here()
	add(v, at, "poisoned: flow.GemmInto (%s) failed: flow.GemmInto: the value to change is nil; expected a value", weir.ErrArgument)
	v, at = flow.CopyInto(ctx, nil, y), here()
	add(v, at, "poisoned: flow.CopyInto (%s) failed: flow.CopyInto: the value to change is nil; expected a value", weir.ErrArgument)
	v, at = flow.CopyInto(ctx, c(), nil), here()
	add(v, at, "poisoned: flow.CopyInto (%s) failed: flow.CopyInto: operand 0 is nil; expected a value", weir.ErrArgument)
	v, at = flow.Einsum(ctx, "ij->ji"), here()
	add(v, at, "poisoned: flow.Einsum (%s) failed: "+mustFail(tensor.Einsum(ctx, "ij->ji")), weir.ErrArgument)
	v, at = flow.T(ctx, none), here()
	add(v, at, "poisoned: flow.T (%s) failed: flow.T: operand 0 is a nil array; expected an array", weir.ErrArgument)
	v, at = flow.MatMul(ctx, x, none), here()
	add(v, at, "poisoned: flow.MatMul (%s) failed: flow.MatMul: operand 1 is a nil array; expected an array", weir.ErrArgument)
	v, at = flow.AddInto(ctx, 1, x, 1, async.Of[*tensor.Array](nil)), here()
	add(v, at, "poisoned: flow.AddInto (%s) failed: flow.AddInto: operand 1 is a nil array; expected an array", weir.ErrArgument)
	v, at = flow.MatMul(ctx, empty, x), here()
	add(v, at, "poisoned: flow.MatMul (%s) failed: "+mustFail(tensor.MatMul(ctx, &tensor.Array{}, must(x.Get(ctx)))), weir.ErrArgument)
	v, at = flow.MatMul(ctx, x, y), here()
	add(v, at, "poisoned: flow.MatMul (%s) failed: tensor.MatMul: a is 2×3 and b 2×3; expected a's last extent, 3, to equal b's last but one, 2", weir.ErrArgument)
	v, at = flow.Add(ctx, x, floats), here()
	add(v, at, "poisoned: flow.Add (%s) failed: tensor.Add: a is float64 and b is float32; convert one with tensor.AsType", weir.ErrArgument)
	v, at = flow.Add(ctx, x, far), here()
	add(v, at, "poisoned: flow.Add (%s) failed: tensor.Add: a is on "+where.names[0]+" and b on "+where.names[1]+"; copy one to the other's device with tensor.To", weir.ErrArgument)
	v, at = flow.GemmInto(ctx, 1, x, flow.T(ctx, far), 1, c()), here()
	add(v, at, "poisoned: flow.GemmInto (%s) failed: tensor.GemmInto: a is on "+where.names[0]+" and b on "+where.names[1]+"; copy one to the other's device with tensor.To", weir.ErrArgument)
	v, at = flow.GemmInto(ctx, 1, x, flow.T(ctx, y), 1i, c()), here()
	add(v, at, "poisoned: flow.GemmInto (%s) failed: "+
		tensor.GemmInto(ctx, 1, must(x.Get(ctx)), must(y.Get(ctx)).T(), 1i, must(c().Get(ctx))).Error(), weir.ErrArgument)
	v, at = flow.Add(ctx, x, never), here()
	add(v, at, `poisoned: flow.Add (%s) failed: flow.Add: value "never" was never written`, weir.ErrUninitialized)
	v, at = flow.GemmInto(ctx, 1, x, flow.T(ctx, y), 1, async.New[*tensor.Array]("c")), here()
	add(v, at, `poisoned: flow.GemmInto (%s) failed: flow.GemmInto: value "c" was never written`, weir.ErrUninitialized)
	v, at = flow.GemmInto(ctx, 1, x, never, 1, async.New[*tensor.Array]("c")), here()
	add(v, at, `poisoned: flow.GemmInto (%s) failed: flow.GemmInto: value "never" was never written`, weir.ErrUninitialized)
	v, at = flow.Reshape(ctx, x, 7), here()
	add(v, at, "poisoned: flow.Reshape (%s) failed: "+mustFail(tensor.Reshape(ctx, must(x.Get(ctx)), 7)), weir.ErrArgument)
	v, at = flow.Permute(ctx, x, 0), here()
	add(v, at, "poisoned: flow.Permute (%s) failed: "+mustFail(must(x.Get(ctx)).Permute(0)), weir.ErrArgument)
	v, at = flow.To(ctx, x, runtime.Device{}), here()
	add(v, at, "poisoned: flow.To (%s) failed: "+mustFail(tensor.To(ctx, must(x.Get(ctx)), runtime.Device{})), weir.ErrArgument)
	v, at = flow.CopyInto(ctx, flow.Broadcast(ctx, x, 4, 2, 3), y), here()
	add(v, at, "poisoned: flow.CopyInto (%s) failed: "+tensor.CopyInto(ctx, must(must(x.Get(ctx)).Broadcast(4, 2, 3)), must(y.Get(ctx))).Error(), weir.ErrArgument)
	for _, r := range all {
		r.check(t, ctx)
	}

	for _, f := range []*flow.Value{u, s, vh} {
		if p := poisonOf(t, ctx, f); p.Op != "flow.SVD" || !strings.Contains(p.Site(), "refuse_test.go:") || p.Cause.Error() != "flow.SVD: operand 0 is nil; expected a value" {
			t.Errorf("got %v", p)
		}
	}
	_, s, _ = flow.SVD(ctx, async.Of(must(tensor.Zeros(ctx, tensor.Int32, 2, 2))))
	if p := poisonOf(t, ctx, s); !strings.HasPrefix(p.Op, `task "flow.SVD"`) || !strings.Contains(p.Site(), "refuse_test.go:") || !errors.Is(p, weir.ErrArgument) {
		t.Errorf("got %v", p)
	}

	// What was refused has changed nothing.
	wants(t, ctx, x, numbers(1, 6)...)
	wants(t, ctx, y, numbers(2, 6)...)
}

func mustFail[T any](_ T, err error) string { return err.Error() }

// TestAFailedOperationInPlacePoisonsWhatItWasToChange, and what is made of that,
// with the first cause, until it is overwritten.
func TestAFailedOperationInPlacePoisonsWhatItWasToChange(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x, c := matrix(ctx, 1, 2, 3), matrix(ctx, 2, 2, 2)
		before := flow.Copy(ctx, c)
		_, at := flow.GemmInto(ctx, 1, x, x, 1, c), here()
		var chain *flow.Value = c
		for range 5 {
			chain = flow.MatMul(ctx, flow.Add(ctx, chain, c), flow.T(ctx, c))
		}
		flow.AddInto(ctx, 1, before, 1, c)
		for _, v := range []*flow.Value{c, chain} {
			if p := poisonOf(t, ctx, v); p.Op != "flow.GemmInto" || p.Site() != at {
				t.Errorf("got %v; want that of flow.GemmInto at %s", p, at)
			}
		}
		wants(t, ctx, before, numbers(2, 4)...)
		if err := c.Set(must(before.Get(ctx))); err != nil {
			t.Fatal(err)
		}
		flow.AddInto(ctx, 1, x, 1, flow.Copy(ctx, x))
		wants(t, ctx, flow.Scale(ctx, 1, c), numbers(2, 4)...)
	})
}

// TestTheFirstCauseIsThatOfTheFirstOperand when several are poisoned.
func TestTheFirstCauseIsThatOfTheFirstOperand(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		bad := func(name string) *flow.Value {
			v := async.New[*tensor.Array](name)
			_ = v.Write().Fail(errors.New(name))
			return v
		}
		w := async.New[*tensor.Array]("late")
		late := w.Write()
		v := flow.Einsum(ctx, "ij,jk,kl,lm,mn->in", w, bad("second"), bad("third"), bad("fourth"), bad("fifth"))
		c := flow.GemmInto(ctx, 1, bad("a"), bad("b"), 1, bad("c"))
		_ = late.Fail(errors.New("first"))
		if _, err := v.Get(ctx); err == nil || err.Error() != `poisoned: the write of value "late" failed: first` {
			t.Errorf("got %v", err)
		}
		if _, err := c.Get(ctx); err == nil || err.Error() != `poisoned: the write of value "a" failed: a` {
			t.Errorf("got %v", err)
		}
	})
}

// TestWithoutARuntimeEveryOperationSaysSo, before one is started and after it is
// closed, for arrays of the one that was.
func TestWithoutARuntimeEveryOperationSaysSo(t *testing.T) {
	ctx := context.Background()
	check := func(x *flow.Value, op func() (*flow.Value, string), name string) {
		t.Helper()
		v, at := op()
		want := "poisoned: " + name + " (" + at + ") failed: runtime.Default: call runtime.Start first"
		if _, err := v.Get(ctx); err == nil || err.Error() != want || !errors.Is(err, weir.ErrNotStarted) || !errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	all := func(x func() *flow.Value) {
		t.Helper()
		check(x(), func() (*flow.Value, string) { v, at := flow.MatMul(ctx, x(), x()), here(); return v, at }, "flow.MatMul")
		check(x(), func() (*flow.Value, string) { v, at := flow.T(ctx, x()), here(); return v, at }, "flow.T")
		check(x(), func() (*flow.Value, string) { v, at := flow.GemmInto(ctx, 1, x(), x(), 1, x()), here(); return v, at }, "flow.GemmInto")
		check(x(), func() (*flow.Value, string) { v, at := flow.AddInto(ctx, 1, x(), 1, nil), here(); return v, at }, "flow.AddInto")
		flow.Free(ctx, x())
		_, s, _ := flow.SVD(ctx, x())
		if _, err := s.Get(ctx); !errors.Is(err, weir.ErrNotStarted) || !strings.Contains(err.Error(), "flow.SVD") {
			t.Errorf("got %v", err)
		}
	}
	all(func() *flow.Value { return async.New[*tensor.Array]("x") })
	rt := must(runtime.StartFamilies(where.open(false), runtime.Options{}))
	x := matrix(ctx, 1, 2, 2)
	old := flow.Scale(ctx, 2, x)
	if err := old.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	array := must(old.Get(ctx))
	flow.Free(ctx, old)
	flow.Free(ctx, nil)
	flow.Free(ctx, x)
	if _, err := x.Get(ctx); !errors.Is(err, weir.ErrUninitialized) || errors.Is(err, weir.ErrPoisoned) {
		t.Errorf("got %v", err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	all(func() *flow.Value { return async.Of(array) })
	start(t, runtime.Options{})
	if p := poisonOf(t, ctx, flow.Scale(ctx, 2, async.Of(array))); p.Op != "flow.Scale" || !errors.Is(p, weir.ErrClosed) {
		t.Errorf("an array of a runtime that was: %v", p)
	}
}
