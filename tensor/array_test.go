package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/x448/float16"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/runtime"
)

func roundTrip[T Element](t *testing.T, ctx context.Context, data ...T) {
	t.Helper()
	a := must(From(ctx, data, 1, len(data)))
	if a.DType() != dtype.Of[T]() || !slices.Equal(a.Shape(), []int{1, len(data)}) {
		t.Errorf("%T became %v %v", data, a.DType(), a.Shape())
	}
	want := fmt.Sprint(data)
	clear(data) // From has copied
	if got := fmt.Sprint(must(Data[T](ctx, a))); got != want {
		t.Errorf("%T: %v came back as %v", data, want, got)
	}
}

func TestEveryElementTypeGoesInAndComesOut(t *testing.T) {
	ctx := start(t)
	roundTrip(t, ctx, float32(1.5), float32(math.Inf(-1)), float32(math.NaN()))
	roundTrip(t, ctx, 1.5, math.Copysign(0, -1), math.MaxFloat64)
	roundTrip(t, ctx, int32(math.MinInt32), int32(7))
	roundTrip(t, ctx, int64(math.MinInt64), int64(7))
	roundTrip(t, ctx, complex64(1-2i), complex64(3))
	roundTrip(t, ctx, 1-2i, 3i)
	roundTrip(t, ctx, float16.Fromfloat32(0.5), float16.Inf(1))
	roundTrip(t, ctx, dtype.ToBF16(0.5), dtype.ToBF16(-3))
}

func TestConstructorsRefuseWhatTheyCannotMake(t *testing.T) {
	ctx := start(t)
	for want, err := range map[string]error{
		"tensor.From: 3 elements for shape 2×2; expected 4":                                                                           second(From(ctx, []float32{1, 2, 3}, 2, 2)),
		"tensor.From: shape -1×3: axis 0 has extent -1; expected 0 or more":                                                           second(From(ctx, []float32{1, 2, 3}, -1, 3)),
		"tensor.Zeros: shape 4294967296×4294967296 of 4-byte elements needs more than 2^63-1 bytes":                                   second(Zeros(ctx, Float32, 1<<32, 1<<32)),
		"tensor.Empty: shape 0×4611686018427387904×4 of 8-byte elements needs more than 2^63-1 bytes":                                 second(Empty(ctx, Float64, 0, 1<<62, 4)),
		"tensor.Empty: dtype(99); expected one of tensor's dtypes":                                                                    second(Empty(ctx, DType(99), 2)),
		"tensor.Data: the array is int32 and float32 was asked for; convert it with tensor.AsType":                                    second(Data[float32](ctx, must(Zeros(ctx, Int32, 2)))),
		"tensor.Item: an array of shape 2; expected one element":                                                                      second(Item[int32](ctx, must(Zeros(ctx, Int32, 2)))),
		"tensor.CopyInto: src is 3 and dst 2×2; expected src to stretch to dst":                                                       CopyInto(ctx, must(Zeros(ctx, Int32, 2, 2)), must(Zeros(ctx, Int32, 3))),
		"tensor.CopyInto: the result, 2×2 with strides [0 1], has several elements at one address; expected a view that repeats none": CopyInto(ctx, must(must(Zeros(ctx, Int32, 2)).Broadcast(2, 2)), must(Zeros(ctx, Int32, 2))),
		"tensor.DataInto: the array is int32 and dst float32; convert the array with tensor.AsType":                                   DataInto(ctx, make([]float32, 2), must(Zeros(ctx, Int32, 2))),
		"tensor.DataInto: dst has 3 elements and the array, of shape 2, 2":                                                            DataInto(ctx, make([]int32, 3), must(Zeros(ctx, Int32, 2))),
		"tensor.SetData: data has 1 elements and the array, of shape 2, 2":                                                            SetData(ctx, must(Zeros(ctx, Int32, 2)), make([]int32, 1)),
		"tensor.SetData: the result, 2×2 with strides [0 1], has several elements at one address; expected a view that repeats none":  SetData(ctx, must(must(Zeros(ctx, Int32, 2)).Broadcast(2, 2)), make([]int32, 4)),
		"tensor.Copy: a is nil; expected an array that a constructor or an operation made":                                            second(Copy(ctx, nil)),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
}

// TestDataIsReadAndWrittenInPlace goes through views of every kind; the model is
// a slice with the same indices.
func TestDataIsReadAndWrittenInPlace(t *testing.T) {
	ctx := start(t)
	whole := must(From(ctx, []complex64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 3, 4))
	model := [12]complex64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for i, c := range []struct {
		view *Array
		at   []int // of the view's elements, row-major, in model
		conj bool
	}{
		{whole, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, false},
		{must(whole.Slice(At(1))), []int{4, 5, 6, 7}, false},
		{whole.T(), []int{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, false},
		{must(whole.Slice(Span(0, 3), At(2))).Conj(), []int{2, 6, 10}, true},
		{must(whole.Slice(Span(0, 0))), nil, false},
	} {
		data := make([]complex64, len(c.at))
		for j, at := range c.at {
			data[j] = complex(float32(100*i+j), float32(j))
			if model[at] = data[j]; c.conj {
				model[at] = complex(real(data[j]), -imag(data[j]))
			}
		}
		if err := SetData(ctx, c.view, data); err != nil {
			t.Fatal(err)
		}
		back := make([]complex64, len(c.at))
		if err := DataInto(ctx, back, c.view); err != nil || !slices.Equal(back, data) {
			t.Errorf("view %d: read %v, %v; expected %v", i, back, err, data)
		}
		if all := must(Data[complex64](ctx, whole)); !slices.Equal(all, model[:]) {
			t.Errorf("after view %d the array is %v; expected %v", i, all, model)
		}
	}
}

func TestOperationsWithoutARuntimeSaySo(t *testing.T) {
	_, err := Zeros(context.Background(), Float32, 2)
	if want := "runtime.Default: call runtime.Start first"; !errors.Is(err, weir.ErrNotStarted) || err.Error() != want {
		t.Error(cmp.Diff(want, fmt.Sprint(err)))
	}
}

func TestArraysOfZeroExtentWorkEverywhere(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float64, 0, 3))
	if got := must(Data[float64](ctx, a.T())); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if c := must(MatMul(ctx, a.T(), a)); !slices.Equal(must(Data[float64](ctx, c)), make([]float64, 9)) {
		t.Errorf("a sum over nothing is %v", c)
	}
	for _, f := range []func() (*Array, error){
		func() (*Array, error) { return Copy(ctx, a) },
		func() (*Array, error) { return AsType(ctx, a, Int32) },
		func() (*Array, error) { return Reshape(ctx, a.T(), 3, 0, 7) },
		func() (*Array, error) { return To(ctx, a, must(runtime.Get("host:1"))) },
		func() (*Array, error) { return Full(ctx, 3, Float16, 2, 0) },
		func() (*Array, error) { return From(ctx, []int32{}) },
	} {
		if b, err := f(); err != nil || b.Size() != 0 {
			t.Errorf("%v, %v", b, err)
		}
	}
}

func TestConversionsRoundOnceAndDropImaginaryParts(t *testing.T) {
	ctx := start(t)
	a := must(From(ctx, []complex128{2.75 + 9i, -2.75, complex(1+0x1p-11+0x1p-40, 0)}))
	if got := must(Data[int32](ctx, must(AsType(ctx, a, Int32)))); !slices.Equal(got, []int32{2, -2, 1}) {
		t.Errorf("to int32: %v", got)
	}
	// 1 + 2^-11 + 2^-40 lies just above the middle of two float16 numbers; by
	// way of float32 it would be the middle and round down to 1.
	if got := must(Data[F16](ctx, must(AsType(ctx, a, Float16)))); got[2].Float32() != 1+0x1p-10 {
		t.Errorf("to float16: %v", got)
	}
	if b := must(AsType(ctx, a, Complex128)); b != a {
		t.Error("a conversion to the same type made a copy")
	}
}

func TestNilAndZeroArraysAreRefusedAndNeverPanic(t *testing.T) {
	ctx := start(t)
	for _, a := range []*Array{nil, {}, (&Array{}).T()} {
		for name, err := range map[string]error{
			"Data":    second(Data[float32](ctx, a)),
			"Copy":    second(Copy(ctx, a)),
			"To":      second(To(ctx, a, must(runtime.Get("host:1")))),
			"MatMul":  second(MatMul(ctx, a, a)),
			"Einsum":  second(Einsum(ctx, "", a)),
			"Format":  second(Format(ctx, a)),
			"SaveNPY": SaveNPY(ctx, "never.npy", a),
		} {
			if !errors.Is(err, weir.ErrArgument) {
				t.Errorf("%s: %v; want ErrArgument", name, err)
			}
		}
		if err := a.Free(); err != nil {
			t.Errorf("Free: %v", err)
		}
		_ = a.String()
	}
}

func TestViewsThatRepeatBeyondAllMemoryAreRefusedNotFatal(t *testing.T) {
	ctx := start(t)
	one := must(From(ctx, []float64{1}))
	for _, n := range []int{1 << 42, 1 << 59} {
		v := must(one.Broadcast(n))
		if _, err := Data[float64](ctx, v); !errors.Is(err, weir.ErrOutOfMemory) {
			t.Errorf("Data of %d elements: %v; want ErrOutOfMemory", n, err)
		}
		if err := SaveNPY(ctx, t.TempDir()+"/a.npy", v); !errors.Is(err, weir.ErrOutOfMemory) {
			t.Errorf("SaveNPY of %d elements: %v; want ErrOutOfMemory", n, err)
		}
		if text := must(Format(ctx, v)); !strings.Contains(text, "...") {
			t.Errorf("Format: %q", text)
		}
	}
	many := must(one.Broadcast(slices.Repeat([]int{7}, 16)...))
	if text := must(Format(ctx, many)); !strings.Contains(text, "in 16 axes") {
		t.Errorf("Format of 16 axes: %q", text)
	}
}

func TestAScopeWithManyLiveArraysStaysCheap(t *testing.T) {
	ctx := start(t)
	ctx, free := Scope(ctx)
	defer free()
	s := ctx.Value(scopeKey{}).(*scope)
	for range 3000 {
		must(Scalar(ctx, 1.0))
	}
	looks := 0
	for range 3000 { // temporaries beside many live arrays
		before := s.sweep
		if err := must(Scalar(ctx, 1.0)).Free(); err != nil {
			t.Fatal(err)
		}
		if s.sweep != before {
			looks++
		}
	}
	if looks > 3 {
		t.Errorf("the list was gone through %d times for 3000 temporaries", looks)
	}
}

func TestCopyIntoAnOverlappingViewIsAsWithACopy(t *testing.T) {
	ctx := start(t)
	a := must(From(ctx, []int64{0, 1, 2, 3, 4, 5, 6, 7}))
	if err := CopyInto(ctx, must(a.Slice(Span(2, 8))), must(a.Slice(Span(0, 6)))); err != nil {
		t.Fatal(err)
	}
	if got, want := must(Data[int64](ctx, a)), []int64{0, 1, 0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("forwards: %v; want %v", got, want)
	}
	m := must(From(ctx, []int64{1, 2, 3, 4}, 2, 2))
	if err := CopyInto(ctx, m, m.T()); err != nil {
		t.Fatal(err)
	}
	if got, want := must(Data[int64](ctx, m)), []int64{1, 3, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("transposed in place: %v; want %v", got, want)
	}
}

func TestArraysMoveBetweenDevicesAndOperationsFollowThem(t *testing.T) {
	ctx := start(t)
	second := must(runtime.Get("host:1"))
	a := must(From(ctx, []complex64{1 + 1i, 2, 3, 4i}, 2, 2))
	b := must(To(ctx, a.H(), second))
	if b.Device() != second {
		t.Fatalf("on %v", b.Device())
	}
	c := must(MatMul(ctx, b, b)) // ctx names the first device; operands decide
	if c.Device() != second {
		t.Errorf("the product is on %v", c.Device())
	}
	if got, want := must(Data[complex64](ctx, b)), []complex64{1 - 1i, 3, 2, -4i}; !slices.Equal(got, want) {
		t.Errorf("moved %v; want %v", got, want)
	}
	if must(To(ctx, b, second)) != b {
		t.Error("a move to the same device made a copy")
	}
	if d := must(Zeros(runtime.On(ctx, second), Float32, 1)); d.Device() != second {
		t.Errorf("a constructor under On made an array on %v", d.Device())
	}
}

func TestFreeEndsTheArrayAndEveryViewOfIt(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 2, 2))
	view := a.T()
	if err := errors.Join(a.Free(), a.Free(), view.Free()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Data of the array": second(Data[float32](ctx, a)),
		"Data of the view":  second(Data[float32](ctx, view)),
		"MatMul":            second(MatMul(ctx, view, view)),
		"Copy":              second(Copy(ctx, a)),
		"CopyInto":          CopyInto(ctx, must(Zeros(ctx, Float32, 2, 2)), a),
		"To":                second(To(ctx, a, must(runtime.Get("host:1")))),
	} {
		if !errors.Is(err, weir.ErrClosed) {
			t.Errorf("%s: %v; want ErrClosed", name, err)
		}
	}
}

func TestScopeFreesWhatWasMadeUnderItAndNotKept(t *testing.T) {
	ctx := start(t)
	outer, freeOuter := Scope(ctx)
	inner, freeInner := Scope(outer)
	dropped := must(Zeros(inner, Float32, 2))
	kept := Keep(inner, must(Zeros(inner, Float32, 2)))
	viewed := must(Zeros(inner, Float32, 2, 2))
	view := Keep(inner, viewed.T())
	temporary := must(MatMul(inner, viewed, viewed))
	if err := errors.Join(freeInner(), freeInner()); err != nil {
		t.Fatal(err)
	}
	live := func(a *Array) bool { return a.Buffer().Live() }
	if live(dropped) || live(temporary) || !live(kept) || !live(view) {
		t.Errorf("after the inner scope: dropped %t, temporary %t, kept %t, kept view %t", live(dropped), live(temporary), live(kept), live(view))
	}
	if err := freeOuter(); err != nil {
		t.Fatal(err)
	}
	if live(kept) || live(view) {
		t.Error("the outer scope did not take over what the inner one kept")
	}
	lone := must(Zeros(context.Background(), Float32, 2))
	if Keep(context.Background(), lone) != lone || !live(lone) {
		t.Error("Keep outside a scope is no no-op")
	}
	if err := lone.Free(); err != nil {
		t.Fatal(err)
	}
}

func TestAScopeForgetsArraysThatWereFreed(t *testing.T) {
	ctx := start(t)
	ctx, free := Scope(ctx)
	defer free()
	for range 10_000 {
		if err := must(Zeros(ctx, Float32, 2)).Free(); err != nil {
			t.Fatal(err)
		}
	}
	s := ctx.Value(scopeKey{}).(*scope)
	if n := cap(s.arrays); n > 128 {
		t.Errorf("the scope has room for %d arrays, none of which is live", n)
	}
}

func TestUnreachableArraysAreNoLeaks(t *testing.T) {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for range 20 {
		must(MatMul(ctx, must(Zeros(ctx, Float32, 8, 8)), must(Zeros(ctx, Float32, 8, 8)).T()))
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnAccessThatExcludesAnOperationIsNamed(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 2, 2))
	s := must(a.resources().Streams().Acquire(ctx))
	acc := buffer.Begin(s)
	acc.Read(a.Buffer())
	if err := CopyInto(ctx, a, must(Zeros(ctx, Float32, 2, 2))); !errors.Is(err, weir.ErrBusy) {
		t.Errorf("a write beside an open read: %v; want ErrBusy", err)
	}
	if _, err := Copy(ctx, a); err != nil {
		t.Errorf("a read beside an open read: %v", err)
	}
	if err := errors.Join(acc.End(), s.Release()); err != nil {
		t.Fatal(err)
	}
}

func TestDataEndsWithItsContextAndTheWorkGoesOn(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 2))
	s := must(a.resources().Streams().Acquire(ctx))
	acc := buffer.Begin(s)
	acc.Write(a.Buffer())
	gate := make(chan struct{})
	if err := s.Call(func() { <-gate }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(acc.End(), s.Release()); err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(ctx)
	result := make(chan error)
	go func() {
		_, err := Data[float32](waiting, a)
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want context.Canceled", err)
	}
	close(gate)
	if got := must(Data[float32](ctx, a)); !slices.Equal(got, []float32{0, 0}) {
		t.Errorf("got %v", got)
	}
}
