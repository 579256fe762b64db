package tensor

import (
	"context"
	"math"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
)

// What code that is not Weir's needs of arrays; package native is built on it.

// Adopt makes an array of memory that foreign code allocated on m's device: at is
// the address of element 0, strides are in elements and none is negative, and the
// contents are complete. Once the array's memory is freed and the submitted work that
// uses it is done, release is called, once and on any goroutine; also when Adopt
// answers an error, and at once if the array has no elements.
func Adopt(ctx context.Context, m *buffer.Memory, at buffer.Ptr, dt DType, shape, strides []int, release func() error) (*Array, error) {
	const op = "tensor.Adopt"
	a := &Array{dtype: dt}
	bytes, err := a.reach(ctx, op, toInt64(shape), toInt64(strides))
	if err != nil {
		return nil, join(err, release())
	}
	if bytes == 0 {
		a, err := emptyOn(ctx, op, m, dt, toInt64(shape))
		return a, join(err, release())
	}
	if err := m.Adopt(&a.own, at, bytes, release); err != nil {
		return nil, err
	}
	register(ctx, a)
	return a, nil
}

// reach gives a its layout and answers how many bytes from element 0 its elements
// reach; 0 if it has none.
func (a *Array) reach(ctx context.Context, op string, shape, strides []int64) (int64, error) {
	if err := Recordable(ctx, op); err != nil {
		return 0, err
	}
	if !a.dtype.Valid() {
		return 0, weir.Argf(op, "%v; expected one of tensor's dtypes", a.dtype)
	}
	size := a.dtype.Size()
	n, err := elements(op, shape, size)
	if err != nil {
		return 0, err
	}
	if len(strides) != len(shape) {
		return 0, weir.Argf(op, "strides %v for shape %s; expected one for each axis", strides, shapeString(shape))
	}
	last := int64(0) // the farthest element
	for i, s := range strides {
		if s < 0 || n > 0 && s > 0 && shape[i]-1 > (math.MaxInt64/size-1-last)/s {
			return 0, weir.Argf(op, "strides %v for shape %s; expected none negative, and elements within 2^63-1 bytes", strides, shapeString(shape))
		}
		last += (shape[i] - 1) * s
	}
	a.layout = layoutOf(shape, strides)
	if n == 0 {
		return 0, nil
	}
	return (last + 1) * size, nil
}

// LayoutInto writes the extents and the strides of the axes, in elements and axis 0
// first, to the start of shape and strides, as far as they go, and answers the rank.
// It allocates nothing.
func (a *Array) LayoutInto(shape, strides []int64) (rank int) {
	if a.none() {
		return 0
	}
	copy(shape, a.shape())
	copy(strides, a.strides())
	return a.rank
}

// Recordable is nil unless operations under ctx are recorded in a graph: then it
// refuses op, which runs code that is not Weir's.
func Recordable(ctx context.Context, op string) error {
	return recordable(ctx, op, "it runs foreign code, which no graph can have")
}
