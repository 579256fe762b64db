package native_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// fields is what C sees of a view: data, dtype, memory, device, rank, the extents and
// the strides.
func fields(t *testing.T, lib *native.Library, v *native.View) []int64 {
	t.Helper()
	var read func(*native.View, *int64) int32
	if err := lib.Func("rt", "rt_fields", &read); err != nil {
		t.Fatal(err)
	}
	all := make([]int64, 21)
	if err := lib.Check("fields", func() int32 { return read(v, unsafe.SliceData(all)) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAViewIsBoundInItsScopeAndClearedOnEveryWayOut(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	a := must(tensor.From(ctx, []float64{1, 2, 3, 4, 5, 6}, 3, 2))
	part := must(a.Slice(tensor.Span(1, 3), tensor.All()))
	failed := errors.New("the body's own")
	for name, leave := range map[string]func(*native.Scope) error{
		"return": func(*native.Scope) error { return nil },
		"error":  func(*native.Scope) error { return failed },
		"panic":  func(*native.Scope) error { panic(failed) },
		"goexit": func(*native.Scope) error { goruntime.Goexit(); return nil },
	} {
		var views []*native.View
		var scope *native.Scope
		var err error
		left := make(chan any)
		go func() {
			defer func() { left <- recover() }()
			err = s.Do(ctx, func(sc *native.Scope) error {
				scope, views = sc, []*native.View{sc.View(0), sc.View(1)}
				f := fields(t, lib, sc.View(1))
				memory := int64(0)
				if !onHost() {
					memory = 2
				}
				if want := []int64{1, memory, 0, 2, 2, 2}; f[0] == 0 || !slices.Equal(f[1:7], want) || f[13] != 2 || f[14] != 1 {
					t.Errorf("bound, the view is %v; expected %v and strides 2 1", f, want)
				}
				if f[0] != fields(t, lib, sc.View(0))[0] && sc.Handle() != nil && sc.View(2) == nil && sc.Err() == nil {
					return leave(sc)
				}
				t.Error("the scope does not have what it was given")
				return nil
			}, native.InOut(must(tensor.Empty(ctx, tensor.Int32, 4))), native.In(part), native.In(nil))
		}()
		panicked := <-left
		if (name == "panic") != (panicked == failed) || (name == "error") != (err == failed) {
			t.Errorf("%s: recovered %v, error %v", name, panicked, err)
		}
		for _, v := range views {
			if f := fields(t, lib, v); f[0] != 0 || f[2] != -1 || f[3] != -1 || f[4] < 1 {
				t.Errorf("%s leaves the view %v; expected NULL, memory and device -1, and its rank", name, f)
			}
		}
		if scope.Handle() != nil || scope.Record(0) != nil || scope.View(0) != views[0] {
			t.Errorf("%s: the ended scope still has something", name)
		}
		says(t, scope.Err(), weir.KindLogic, "native.Scope: used after it ended")
	}
	if err := a.Free(); err != nil { // nothing has it any more
		t.Error(err)
	}
}

func TestAnEndedScopesHandleIsRefusedByTheLibrary(t *testing.T) {
	w := newWorld(t)
	var ended *native.Scope
	w.ok(w.s.Do(w.ctx, func(sc *native.Scope) error { ended = sc; return nil }, native.In(w.X), native.In(w.truth)))
	err := w.Check("blobs", func() int32 { return w.blobs(ended.Handle(), ended.View(0), ended.View(1), 3, 0.5, 1, -10, 10, 7) })
	says(t, err, weir.KindLogic, "blobs: handle is NULL")
}

// add has the test library add a number to each element in a scope.
func add(ctx context.Context, lib *native.Library, s *native.Session, a *tensor.Array, value int32) error {
	var call func(unsafe.Pointer, *native.View, int32) int32
	if err := lib.Func("rt", "rt_add", &call); err != nil {
		return err
	}
	return s.Do(ctx, func(sc *native.Scope) error {
		return lib.Check("add", func() int32 { return call(sc.Handle(), sc.View(0), value) })
	}, native.InOut(a))
}

// TestAScopeWaitsForWhatAnArrayHasQueued: operations before and after it are in the
// order of the calls, whatever streams they run on.
func TestAScopeWaitsForWhatAnArrayHasQueued(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	a := must(tensor.Zeros(ctx, tensor.Int64, 1000))
	asJob := job(t, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
	want := int64(0)
	for i := range 20 {
		if err := tensor.AddInto(ctx, 1, a, 1, a); err != nil {
			t.Fatal(err)
		}
		var err error
		if i%2 == 0 {
			err = add(ctx, lib, s, a, 3)
		} else {
			err = asJob.Run(ctx, s, "add", a, 3)
		}
		if err != nil {
			t.Fatal(err)
		}
		want = 2*want + 3
	}
	if got := must(tensor.Data[int64](ctx, a)); got[0] != want || got[999] != want {
		t.Errorf("the elements are %d and %d; expected %d", got[0], got[999], want)
	}
}

// blocked has the array's device run nothing further on the array until release.
func blocked(t *testing.T, ctx context.Context, a *tensor.Array, write bool) (release func()) {
	t.Helper()
	r := must(runtime.For(a.Device()))
	st := must(r.Streams().Acquire(ctx))
	gate := make(chan struct{})
	acc := buffer.Begin(st)
	if write {
		acc.Write(a.Buffer())
	} else {
		acc.Read(a.Buffer())
	}
	if err := errors.Join(st.Call(func() { <-gate }), acc.End(), st.Release()); err != nil {
		t.Fatal(err)
	}
	return func() { close(gate) }
}

func TestAWaitForAnArrayEndsWithItsContextAndNothingIsHeld(t *testing.T) {
	if !onHost() {
		t.Skip("it blocks a stream, which host devices can")
	}
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	a, b := must(tensor.Zeros(ctx, tensor.Int32, 8)), must(tensor.Zeros(ctx, tensor.Int32, 8))
	asJob := job(t, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
	release := blocked(t, ctx, b, true)
	for _, run := range []func(context.Context) error{
		func(ctx context.Context) error {
			return s.Do(ctx, func(*native.Scope) error { t.Error("called"); return nil }, native.InOut(a), native.In(b))
		},
		func(ctx context.Context) error { return asJob.Run(ctx, s, "add", b, 1) },
	} {
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		if err := run(soon); !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), " on "+deviceName+": the work that was queued on an array is not done: ") {
			t.Errorf("got %v; expected the context's end", err)
		}
		cancel()
	}
	if err := a.Free(); err != nil { // nothing has it
		t.Error(err)
	}
	release()
	if err := errors.Join(asJob.Run(ctx, s, "add", b, 1), b.Free()); err != nil {
		t.Error(err)
	}
}

func TestUnderAContextThatHasEndedAScopesFunctionIsNotCalled(t *testing.T) {
	ctx := start(t)
	s := newSession(t, ctx)
	why := errors.New("why")
	ended, cancel := context.WithCancelCause(ctx)
	cancel(why)
	err := s.Do(ended, func(*native.Scope) error { t.Error("called"); return nil }, native.In(must(tensor.Zeros(ctx, tensor.Int32, 8))))
	if !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, why) || err.Error() != "Session.Do on "+deviceName+": the function was not called: why" {
		t.Errorf("got %v; expected the context's end", err)
	}
}

func TestWhatAScopeHasExcludesConflictsAndIsNotFreed(t *testing.T) {
	ctx := start(t)
	s := newSession(t, ctx)
	a := must(tensor.Zeros(ctx, tensor.Float32, 8))
	if err := s.Do(ctx, func(*native.Scope) error {
		if err := a.Free(); !errors.Is(err, weir.ErrBusy) {
			t.Errorf("freed in a scope: %v", err)
		}
		if _, err := tensor.Add(ctx, a, a); !errors.Is(err, weir.ErrBusy) {
			t.Errorf("read while it is written: %v", err)
		}
		return s.Do(ctx, func(*native.Scope) error { t.Error("called"); return nil }, native.In(a))
	}, native.Out(a)); !errors.Is(err, weir.ErrBusy) {
		t.Errorf("a scope in a scope: %v; expected ErrBusy", err)
	}
	if err := s.Do(ctx, func(*native.Scope) error {
		_, err := tensor.Add(ctx, a, a)
		return errors.Join(err, s.Do(ctx, func(*native.Scope) error { return nil }, native.In(a)))
	}, native.In(a), native.In(a)); err != nil {
		t.Errorf("readers beside each other: %v", err)
	}
	if err := s.Do(ctx, func(*native.Scope) error { return nil }, native.In(a), native.Out(a)); !errors.Is(err, weir.ErrBusy) {
		t.Errorf("one array to read and to write: %v; expected ErrBusy", err)
	}
}

func TestElementTypesThatTheInterfaceHasNotAreRefusedByName(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	rank := job(t, lib, "rt_rank_job", native.ViewIn, native.OutInt32)
	for dt, name := range map[tensor.DType]string{tensor.Complex64: "complex64", tensor.Complex128: "complex128", tensor.Float16: "float16", tensor.BFloat16: "bfloat16"} {
		a := must(tensor.Zeros(ctx, dt, 2))
		var n int32
		err := s.Do(ctx, func(*native.Scope) error { t.Error("called"); return nil }, native.In(a))
		says(t, err, weir.KindLogic, "Session.Do: expected an array of float32, float64, int32 or int64, given one of "+name)
		says(t, rank.Run(ctx, s, "rank", a, &n), weir.KindLogic, "rank: expected an array of float32, float64, int32 or int64, given one of "+name)
	}
	for code, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int32, tensor.Int64} {
		if err := s.Do(ctx, func(sc *native.Scope) error {
			if f := fields(t, lib, sc.View(0)); f[1] != int64(code) {
				t.Errorf("%v has the code %d; expected %d", dt, f[1], code)
			}
			return nil
		}, native.In(must(tensor.Zeros(ctx, dt, 2)))); err != nil {
			t.Error(err)
		}
	}
}

func TestRanksAndArraysThatCannotBeViewedAreRefused(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	rank := job(t, lib, "rt_rank_job", native.ViewIn, native.OutInt32)
	var n int32
	shape := []int{1, 1, 1, 1, 1, 1, 1, 2}
	for _, c := range []struct {
		array *tensor.Array
		rank  int32
	}{{must(tensor.Zeros(ctx, tensor.Int32, shape...)), 8}, {must(tensor.Zeros(ctx, tensor.Int32)), 0}, {must(tensor.Zeros(ctx, tensor.Int32, 0, 3)), 2}, {nil, -1}} {
		if err := rank.Run(ctx, s, "rank", c.array, &n); err != nil || n != c.rank {
			t.Errorf("rank %d, %v; expected %d", n, err, c.rank)
		}
	}
	if err := rank.Run(ctx, s, "rank", nil, &n); err != nil || n != -1 {
		t.Errorf("no array has rank %d, %v; expected -1", n, err)
	}
	wide := must(tensor.Zeros(ctx, tensor.Int32, append(shape, 1)...))
	says(t, rank.Run(ctx, s, "rank", wide, &n), weir.KindLogic, "rank: expected an array of rank 8 or less, given one of rank 9")
	freed := must(tensor.Zeros(ctx, tensor.Int32, 3))
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	err := rank.Run(ctx, s, "rank", freed, &n)
	says(t, err, weir.KindLogic, "rank: the int32 array of rank 1 was freed; expected a live one")
	if !errors.Is(err, weir.ErrClosed) {
		t.Errorf("%v is not ErrClosed", err)
	}
	says(t, s.Do(ctx, func(*native.Scope) error { return nil }, native.In(freed)), weir.KindLogic, "Session.Do: the int32 array of rank 1 was freed; expected a live one")
	says(t, s.Do(ctx, nil), weir.KindLogic, "Session.Do: the function is nil; expected one to call")
	says(t, (*native.Session)(nil).Do(ctx, nil), weir.KindLogic, "Session.Do: the session is nil; expected one that NewSession made")
	says(t, s.Do(ctx, func(*native.Scope) error { return nil }, native.Into(nil)), weir.KindLogic, "Session.Do: expected a deposit for a deposit parameter, given nil")
}

// TestAViewThatTheRuntimeLibraryRefusesHoldsNothing: of a stub that refuses all.
func TestAViewThatTheRuntimeLibraryRefusesHoldsNothing(t *testing.T) {
	if !onHost() {
		t.Skip("the stubs are for host devices")
	}
	ctx := start(t)
	stub(t, entryPoints("1"))
	s := newSession(t, ctx)
	a := must(tensor.Zeros(ctx, tensor.Int32, 3))
	err := s.Do(ctx, func(*native.Scope) error { t.Error("called"); return nil }, native.Out(a))
	says(t, err, weir.KindLogic, "Session.Do: view: leaves the buffer")
	if err := a.Free(); err != nil {
		t.Error(err)
	}
}
