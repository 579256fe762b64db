package tensor

import (
	"context"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// Data waits for a and answers its elements in row-major order. T must be the
// array's element type. The wait ends with ctx.
func Data[T Element](ctx context.Context, a *Array) ([]T, error) {
	const op = "tensor.Data"
	if err := sameDevice(op, namesA, a); err != nil {
		return nil, err
	}
	if want := dtype.Of[T](); a.dtype != want {
		return nil, weir.Argf(op, "the array is %v and %v was asked for; convert it with tensor.AsType", a.dtype, want)
	}
	src, free, err := packed(ctx, a)
	if err != nil {
		return nil, err
	}
	defer free()
	data := make([]T, src.size())
	return data, read(ctx, src, bytesOf(data))
}

// DataInto is Data into memory that is there already: dst has as many elements
// as a. After an error its content is unspecified.
func DataInto[T Element](ctx context.Context, dst []T, a *Array) error {
	if err := holds[T]("tensor.DataInto", "dst", a, len(dst)); err != nil {
		return err
	}
	src, free, err := packed(ctx, a)
	if err != nil {
		return err
	}
	defer free()
	return read(ctx, src, bytesOf(dst))
}

// SetData writes data, in row-major order, over a's elements. It has as many,
// and may be changed when SetData returns.
func SetData[T Element](ctx context.Context, a *Array, data []T) error {
	const op = "tensor.SetData"
	if err := holds[T](op, "data", a, len(data)); err != nil {
		return err
	}
	if err := writable(op, a); err != nil || len(data) == 0 {
		return err
	}
	if err := recordable(ctx, op, fromHost); err != nil {
		return err
	}
	if a.isRowMajor() && !a.conj {
		return fill(ctx, a, bytesOf(data))
	}
	t, err := emptyOn(unscoped(ctx), op, a.memory(), a.dtype, a.shape())
	if err != nil {
		return err
	}
	err = fill(ctx, t, bytesOf(data))
	if err == nil { // else t has undefined contents
		err = convertInto(ctx, a, t)
	}
	return join(err, t.Free())
}

// holds checks that a has n elements of type T.
func holds[T Element](op, what string, a *Array, n int) error {
	if err := sameDevice(op, namesA, a); err != nil {
		return err
	}
	if t := dtype.Of[T](); a.dtype != t {
		return weir.Argf(op, "the array is %v and %s %v; convert the array with tensor.AsType", a.dtype, what, t)
	}
	if a.size() != int64(n) {
		return weir.Argf(op, "%s has %d elements and the array, of shape %s, %d", what, n, shapeString(a.shape()), a.size())
	}
	return nil
}

// Item waits for an array of one element and answers it.
func Item[T Element](ctx context.Context, a *Array) (T, error) {
	var zero T
	if err := sameDevice("tensor.Item", namesA, a); err != nil {
		return zero, err
	}
	if a.size() != 1 {
		return zero, weir.Argf("tensor.Item", "an array of shape %s; expected one element", shapeString(a.shape()))
	}
	data, err := Data[T](ctx, a)
	if err != nil {
		return zero, err
	}
	return data[0], nil
}

// packed answers a if its elements lie in row-major order and unconjugated, else
// a copy that does so, and how to give that back. A view can repeat elements
// beyond all memory, so this comes before host memory is taken for them.
func packed(ctx context.Context, a *Array) (src *Array, free func(), err error) {
	if a.isRowMajor() && !a.conj {
		return a, func() {}, nil
	}
	whole, err := compact(unscoped(ctx), a)
	if err != nil {
		return nil, nil, err
	}
	return whole, func() { _ = whole.Free() }, nil // nothing else uses it, so it cannot be busy
}

// read waits for src, which is packed, and copies its elements to dst.
func read(ctx context.Context, src *Array, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if err := recordable(ctx, "tensor.Data", toHost); err != nil {
		return err
	}
	// The wait with the context comes first, so that no access is open meanwhile
	// and the copy finds its work done.
	if err := src.Buffer().Wait(ctx); err != nil {
		return err
	}
	return onStream(ctx, src, func(x *operation) error {
		from := x.acc.Read(src.Buffer()) + driver.Ptr(src.offset*src.dtype.Size())
		return x.submit(func(s driver.Stream) error { return s.CopyOut(dst, from) })
	})
}
