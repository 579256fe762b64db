package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// held is how many arrays of ctx's device own memory.
func held(ctx context.Context) int {
	n := 0
	for _, l := range must(runtime.Here(ctx)).Live() {
		if l.Kind == "buffer" {
			n++
		}
	}
	return n
}

// TestAScopeFreesWhatIsStillToBeLaunched: free is called at once after the
// operations were asked for, and nothing of them is left.
func TestAScopeFreesWhatIsStillToBeLaunched(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x := matrix(ctx, 1, 2, 2)
		mine, free := tensor.Scope(ctx)
		v := x
		var all []*flow.Value
		for range 50 {
			v = flow.Scale(mine, 1, flow.T(mine, v))
			all = append(all, v, flow.GemmInto(mine, 1, x, v, 1, flow.Copy(mine, x)))
		}
		u, s, vh := flow.SVD(mine, v)
		all = append(all, u, s, vh)
		after := flow.Einsum(mine, "ij,j->ij", u, s)
		second := runtime.On(mine, device(1))
		all = append(all, after, flow.Scale(second, 2, flow.To(second, v, device(1))))
		if err := free(); err != nil {
			t.Fatal(err)
		}
		if n := held(ctx) + held(second); n != 1 {
			t.Errorf("%d arrays are held after free; want x alone", n)
		}
		for _, v := range all {
			a, err := v.Get(ctx)
			if err != nil {
				t.Fatalf("%v was not launched: %v", v, err)
			}
			if _, err := tensor.Copy(ctx, a); !errors.Is(err, weir.ErrClosed) {
				t.Errorf("%v is not freed: %v", v, err)
			}
		}
		if err := free(); err != nil {
			t.Error(err)
		}
		wants(t, ctx, x, numbers(1, 4)...)
	})
}

// TestAScopeWaitsForEachDevicesOperations: values go from device to device, so that
// what one launches another waits for, and what comes of it is outside the scope.
func TestAScopeWaitsForEachDevicesOperations(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		near, far := matrix(ctx, 1, 2, 2), matrix(runtime.On(ctx, device(1)), 1, 2, 2)
		spectrum := async.Of(must(tensor.Zeros(runtime.On(ctx, device(1)), tensor.Float64, 2)))
		mine, free := tensor.Scope(ctx)
		one, two := runtime.On(mine, device(0)), runtime.On(mine, device(1))
		x := flow.Copy(one, near)
		_, s, _ := flow.SVD(one, flow.Copy(one, near))
		for range 4 {
			x = flow.Scale(two, 1, flow.To(two, x, device(1)))
			x = flow.Scale(one, 1, flow.To(one, x, device(0)))
			_, s, _ = flow.SVD(one, flow.Einsum(two, "i,j->ij", flow.To(two, s, device(1)), flow.To(two, s, device(1))))
		}
		flow.AddInto(one, 1, x, 1, near)
		flow.AddInto(two, 1, flow.To(two, x, device(1)), 1, far)
		flow.AddInto(two, 1, flow.To(two, s, device(1)), 1, spectrum)
		if err := free(); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, near, 4, -4, 2, -6)
		wants(t, ctx, far, 4, -4, 2, -6)
		if _, err := read(ctx, spectrum); err != nil {
			t.Error(err)
		}
	})
}

func TestKeepTakesAResultOutOfTheScope(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x := matrix(ctx, 1, 1, 3)
		outer, freeOuter := tensor.Scope(ctx)
		inner, free := tensor.Scope(outer)
		kept, gone := flow.T(inner, flow.Scale(inner, 2, x)), flow.Scale(inner, 3, x)
		tensor.Keep(inner, must(kept.Get(ctx)))
		if err := free(); err != nil {
			t.Fatal(err)
		}
		n := numbers(1, 3)
		wants(t, ctx, kept, 2*n[0], 2*n[1], 2*n[2])
		if _, err := read(ctx, gone); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("what was not kept: %v", err)
		}
		if err := freeOuter(); err != nil {
			t.Fatal(err)
		}
		if _, err := read(ctx, kept); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("after the scope around it: %v", err)
		}
	})
}

// TestFreeWaitsForLaunchingAlone: the device is not done with what is freed.
func TestFreeWaitsForLaunchingAlone(t *testing.T) {
	ctx := start(t, runtime.Options{})
	x := matrix(ctx, 1, 1, 1)
	r := must(runtime.Here(ctx))
	s := must(r.Streams().Acquire(ctx))
	gate := make(chan struct{})
	access := buffer.Begin(s)
	access.Write(must(x.Get(ctx)).Buffer())
	submit := must(s.Submit())
	if err := submit.Call(func() { <-gate }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(access.End(), s.Release()); err != nil {
		t.Fatal(err)
	}
	mine, free := tensor.Scope(ctx)
	v := flow.Scale(mine, 2, x)
	if err := free(); err != nil {
		t.Fatal(err)
	}
	close(gate) // only now can it be computed
	if _, err := read(ctx, v); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestAScopeDoesNotWaitForWhatStandsAside for a task: that is freed by the next
// call.
func TestAScopeDoesNotWaitForWhatStandsAside(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x := async.New[*tensor.Array]("x")
		w := x.Write()
		mine, free := tensor.Scope(ctx)
		y := flow.Scale(mine, 2, x)
		_, s, _ := flow.SVD(mine, x)
		if err := free(); err != nil {
			t.Fatal(err)
		}
		if err := w.Set(must(tensor.Full(ctx, 3, tensor.Float64, 1, 1))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, y, 6)
		wants(t, ctx, s, 3)
		if err := free(); err != nil {
			t.Fatal(err)
		}
		for _, v := range []*flow.Value{y, s} {
			if _, err := read(ctx, v); !errors.Is(err, weir.ErrClosed) {
				t.Errorf("after the second free: %v", err)
			}
		}
	})
}

// TestATaskFreesItsScope, whose operations stand aside for the task itself.
func TestATaskFreesItsScope(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		x, out := async.New[*tensor.Array]("x"), async.New[float64]("out")
		wx, w := x.Write(), out.Write()
		async.Go(ctx, "task", func(ctx context.Context) error {
			mine, free := tensor.Scope(ctx)
			y := flow.Scale(mine, 2, x)
			_, s, _ := flow.SVD(mine, x)
			if err := free(); err != nil {
				return err
			}
			a, err := tensor.Full(ctx, 4, tensor.Float64, 1, 1)
			if err != nil {
				return err
			}
			if err := wx.Set(a); err != nil {
				return err
			}
			ys, err := read(ctx, flow.Add(mine, y, flow.Reshape(mine, s, 1, 1)))
			if err != nil {
				return err
			}
			return errors.Join(free(), w.Set(ys[0]))
		}, wx, w)
		if got, err := out.Get(ctx); got != 12 || err != nil {
			t.Errorf("got %v, %v; want 12", got, err)
		}
	})
}

func TestAFreedValueIsOneThatWasNeverWritten(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		v := flow.Scale(ctx, 2, matrix(ctx, 1, 1, 2))
		view, before := flow.T(ctx, v), flow.Copy(ctx, v)
		flow.Free(ctx, v)
		product, at := flow.MatMul(ctx, v, view), here()
		late, lateAt := flow.Copy(ctx, view), here()
		if _, err := v.Get(ctx); !errors.Is(err, weir.ErrUninitialized) || errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("Get of a freed value: %v", err)
		}
		if p := poisonOf(t, ctx, product); !errors.Is(p, weir.ErrUninitialized) || p.Site() != at {
			t.Errorf("an operation on a freed value: %v", p)
		}
		if p := poisonOf(t, ctx, late); p.Op != "flow.Copy" || p.Site() != lateAt || !errors.Is(p, weir.ErrClosed) {
			t.Errorf("an operation on a view of what was freed: %v", p)
		}
		n := numbers(1, 2)
		wants(t, ctx, before, 2*n[0], 2*n[1])
		// It can be written again.
		if err := v.Set(must(before.Get(ctx))); err != nil {
			t.Fatal(err)
		}
		wants(t, ctx, flow.Scale(ctx, 2, v), 4*n[0], 4*n[1])
	})
}

// TestFreeWaitsForEarlierReaders, and not for the program.
func TestFreeWaitsForEarlierReaders(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		v := flow.Scale(ctx, 2, matrix(ctx, 1, 1, 1))
		r := v.Read()
		flow.Free(ctx, v)
		a, err := r.Await(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if x, err := tensor.Data[float64](ctx, a); err != nil || x[0] != 2*numbers(1, 1)[0] {
			t.Errorf("it was freed under a reader: %v, %v", x, err)
		}
		r.Release()
		if _, err := v.Get(ctx); !errors.Is(err, weir.ErrUninitialized) {
			t.Errorf("got %v", err)
		}
		if _, err := tensor.Copy(ctx, a); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("it was not freed: %v", err)
		}
	})
}

// TestCloseNamesEveryOperationAside and poisons what it was to make.
func TestCloseNamesEveryOperationAside(t *testing.T) {
	rt := must(runtime.StartFamilies([]driver.Family{host.New(host.Options{HandOver: true})}, runtime.Options{}))
	ctx, free := tensor.Scope(context.Background())
	x, y := async.New[*tensor.Array]("x"), async.New[*tensor.Array]("y")
	wx, wy := x.Write(), y.Write()
	c := matrix(ctx, 1, 1, 1)
	r := c.Read()
	v, at1 := flow.Scale(ctx, 2, x), here()
	after := flow.T(ctx, v)
	_, at2 := flow.AddInto(ctx, 1, y, 1, c), here()
	if err := free(); err != nil { // and so they have stepped aside
		t.Fatal(err)
	}
	err := rt.Close()
	report := weir.Report(err)
	if !errors.Is(err, weir.ErrLeak) {
		t.Errorf("closing with operations aside: %v", err)
	}
	for _, want := range []string{
		`flow.Scale: the operation was never launched: it waits for value "x", to be written (write 0)`, at1,
		`flow.T: the operation was never launched: it waits for value "flow.Scale", to be written (write 0)`,
		`flow.AddInto: the operation was never launched: it waits for value "y", to be written (write 0)`, at2,
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if strings.Contains(report, "buffer") {
		t.Errorf("arrays are left:\n%s", report)
	}
	for _, v := range []*flow.Value{v, after, c} {
		if p := poisonOf(t, ctx, v); !errors.Is(p, weir.ErrClosed) || !strings.HasPrefix(p.Op, "flow.") {
			t.Errorf("got %v", p)
		}
	}
	r.Release()
	wx.Release()
	if err := wy.Set(nil); err != nil { // nothing waits for it any more
		t.Error(err)
	}
}

// TestFreeIsDoneThoughItsContextHasEnded: a deferred Free comes after the deadline.
func TestFreeIsDoneThoughItsContextHasEnded(t *testing.T) {
	under(t, runtime.Options{}, func(t *testing.T, ctx context.Context) {
		a := must(tensor.Full(ctx, 1, tensor.Float64, 2))
		v := async.Of(a)
		ended, end := context.WithCancel(ctx)
		end()
		flow.Free(ended, v)
		if _, err := v.Get(ctx); !errors.Is(err, weir.ErrUninitialized) || errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("Get of a freed value: %v", err)
		}
		if a.Buffer().Live() {
			t.Error("the array was not freed")
		}
	})
}
