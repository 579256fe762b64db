package tensor

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/runtime"
)

// foreign is float32 memory of the test's own, and how often it was released.
type foreign struct {
	at       uintptr
	released int
}

func newForeign(t *testing.T, values ...float32) *foreign {
	t.Helper()
	f := &foreign{at: must(hostmem.Alloc(int64(4 * len(values))))}
	copy(hostmem.Slice[float32](f.at, int64(len(values))), values)
	t.Cleanup(func() { _ = hostmem.Free(f.at, int64(4*len(values))) })
	return f
}

func (f *foreign) release() error {
	f.released++
	return nil
}

func (f *foreign) adopt(ctx context.Context, shape, strides []int) (*Array, error) {
	m := must(buffer.Of(must(runtime.Here(ctx))))
	return Adopt(ctx, m, buffer.Ptr(f.at), Float32, shape, strides, f.release)
}

func TestAnAdoptedArrayIsAnArrayUntilItIsFreed(t *testing.T) {
	ctx := start(t)
	f := newForeign(t, 1, 2, 3, 4, 5, 6)
	a := must(f.adopt(ctx, []int{3, 2}, []int{1, 3})) // column-major
	if got := must(Data[float32](ctx, a)); !slices.Equal(got, []float32{1, 4, 2, 5, 3, 6}) {
		t.Errorf("its elements are %v", got)
	}
	product := must(MatMul(ctx, a.T(), a))
	if f.released != 0 {
		t.Fatal("released while it is used")
	}
	if err := errors.Join(a.Free(), a.Free()); err != nil {
		t.Error(err)
	}
	if f.released != 1 {
		t.Errorf("released %d times; expected once", f.released)
	}
	if got := must(Data[float32](ctx, product)); !slices.Equal(got, []float32{14, 32, 32, 77}) {
		t.Errorf("the product is %v", got)
	}
}

func TestAScopeFreesWhatWasAdopted(t *testing.T) {
	ctx, free := Scope(start(t))
	f := newForeign(t, 1)
	must(f.adopt(ctx, []int{1}, []int{1}))
	if err := free(); err != nil || f.released != 1 {
		t.Errorf("released %d times, %v; expected once", f.released, err)
	}
}

func TestAnAdoptedArrayWithoutElementsKeepsNothing(t *testing.T) {
	ctx := start(t)
	f := &foreign{} // at no address
	a := must(f.adopt(ctx, []int{0, 4}, []int{4, 1}))
	if f.released != 1 || a.Size() != 0 || !slices.Equal(a.Shape(), []int{0, 4}) {
		t.Errorf("shape %v, released %d times; expected 0×4, once", a.Shape(), f.released)
	}
}

func TestWhatCannotBeAdoptedIsReleasedAndRefused(t *testing.T) {
	ctx := start(t)
	for _, c := range []struct {
		shape, strides []int
		want           string
	}{
		{[]int{2}, []int{1, 1}, "tensor.Adopt: strides [1 1] for shape 2; expected one for each axis"},
		{[]int{2}, []int{-1}, "tensor.Adopt: strides [-1] for shape 2; expected none negative, and elements within 2^63-1 bytes"},
		{[]int{-2}, []int{1}, "tensor.Adopt: shape -2: axis 0 has extent -2; expected 0 or more"},
		{[]int{3, 2}, []int{math.MaxInt64 / 8, 1}, "tensor.Adopt: strides [1152921504606846975 1] for shape 3×2; expected none negative, and elements within 2^63-1 bytes"},
	} {
		f := newForeign(t, 1, 2)
		_, err := f.adopt(ctx, c.shape, c.strides)
		if !errors.Is(err, weir.ErrArgument) || err.Error() != c.want {
			t.Errorf("\ngot      %v\nexpected %s", err, c.want)
		}
		if f.released != 1 {
			t.Errorf("released %d times; expected once", f.released)
		}
	}
}

func TestLayoutIntoWritesWhatFits(t *testing.T) {
	ctx := start(t)
	a := must(Empty(ctx, Float32, 2, 3, 4)).T()
	var shape, strides [8]int64
	if n := testing.AllocsPerRun(100, func() {
		if rank := a.LayoutInto(shape[:], strides[:]); rank != 3 {
			t.Errorf("rank %d; expected 3", rank)
		}
	}); n != 0 {
		t.Errorf("%v allocations; expected none", n)
	}
	if shape != [8]int64{4, 3, 2} || strides != [8]int64{1, 4, 12} {
		t.Errorf("shape %v, strides %v; expected 4, 3, 2 and 1, 4, 12", shape, strides)
	}
	if rank := a.LayoutInto(shape[:1], nil); rank != 3 {
		t.Errorf("rank %d; expected 3", rank)
	}
	if rank := (*Array)(nil).LayoutInto(shape[:], strides[:]); rank != 0 {
		t.Errorf("nil has rank %d; expected 0", rank)
	}
}
