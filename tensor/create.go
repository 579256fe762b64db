package tensor

import (
	"context"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
)

// Empty makes an array with undefined contents on ctx's device.
func Empty(ctx context.Context, dt DType, shape ...int) (*Array, error) {
	return emptyHere(ctx, "tensor.Empty", dt, toInt64(shape))
}

// Zeros makes an array of zeros on ctx's device.
func Zeros(ctx context.Context, dt DType, shape ...int) (*Array, error) {
	a, err := emptyHere(ctx, "tensor.Zeros", dt, toInt64(shape))
	if err != nil || a.size() == 0 {
		return a, err
	}
	return made(a, clearAll(ctx, a))
}

// clearAll clears a fresh array.
func clearAll(ctx context.Context, a *Array) error {
	return onStream(ctx, a, func(x *operation) error {
		p := x.acc.Write(a.Buffer())
		return x.submit(func(s driver.Stream) error { return s.Zero(p, a.Bytes()) })
	})
}

// Full makes an array of equal elements on ctx's device; value is converted to
// dt: its imaginary part is dropped for real types, its fraction for integers, and
// what does not fit an int32 is reduced to 32 bits. An int64
// beyond 2^53 does not fit a complex128 exactly: use From and Broadcast then.
func Full(ctx context.Context, value complex128, dt DType, shape ...int) (*Array, error) {
	a, err := emptyHere(ctx, "tensor.Full", dt, toInt64(shape))
	if err != nil {
		return nil, err
	}
	return made(a, onStream(ctx, a, func(x *operation) error {
		p := x.acc.Write(a.Buffer())
		return x.launch(&driver.Kernel{Op: driver.KernelFill, Out: a.view(p), Alpha: value})
	}))
}

// From makes an array on ctx's device from data in row-major order. Without a
// shape it is a vector. data may be changed when From returns.
func From[T Element](ctx context.Context, data []T, shape ...int) (*Array, error) {
	const op = "tensor.From"
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	return fromBytes(ctx, op, dtype.Of[T](), toInt64(shape), len(data), bytesOf(data))
}

// Scalar makes an array of rank 0 on ctx's device.
func Scalar[T Element](ctx context.Context, value T) (*Array, error) {
	return fromBytes(ctx, "tensor.Scalar", dtype.Of[T](), nil, 1, bytesOf([]T{value}))
}

func fromBytes(ctx context.Context, op string, dt DType, shape []int64, have int, data []byte) (*Array, error) {
	n, err := elements(op, shape, dt.Size())
	if err != nil {
		return nil, err
	}
	if n != int64(have) {
		return nil, weir.Argf(op, "%d elements for shape %s; expected %d", have, shapeString(shape), n)
	}
	if err := recordable(ctx, op, fromHost); err != nil {
		return nil, err
	}
	a, err := emptyHere(ctx, op, dt, shape)
	if err != nil || n == 0 {
		return a, err
	}
	return made(a, fill(ctx, a, data))
}

// What cannot be recorded.
const (
	fromHost = "it copies from host memory, which is not there when a graph is launched"
	toHost   = "it copies to host memory and waits for the device"
)

// fill copies host data into an array whose elements lie in row-major order.
func fill(ctx context.Context, a *Array, data []byte) error {
	return onStream(ctx, a, func(x *operation) error {
		p := x.acc.Write(a.Buffer()) + driver.Ptr(a.offset*a.dtype.Size())
		return x.submit(func(s driver.Stream) error { return s.CopyIn(p, data) })
	})
}

func bytesOf[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*int(unsafe.Sizeof(data[0])))
}

// emptyHere makes a row-major array on ctx's device.
func emptyHere(ctx context.Context, op string, dt DType, shape []int64) (*Array, error) {
	r, err := runtime.Here(ctx)
	if err != nil {
		return nil, err
	}
	m, err := buffer.Of(r)
	if err != nil {
		return nil, err
	}
	return emptyOn(ctx, op, m, dt, shape)
}

// emptyOn makes a row-major array in m.
func emptyOn(ctx context.Context, op string, m *buffer.Memory, dt DType, shape []int64) (*Array, error) {
	if !dt.Valid() {
		return nil, weir.Argf(op, "%v; expected one of tensor's dtypes", dt)
	}
	n, err := elements(op, shape, dt.Size())
	if err != nil {
		return nil, err
	}
	if r := recordingOf(ctx); r != nil {
		return r.empty(op, m, dt, shape, max(n, 1)*dt.Size())
	}
	a := &Array{dtype: dt, layout: rowMajor(shape)}
	if err := m.Init(&a.own, max(n, 1)*dt.Size()); err != nil {
		return nil, err
	}
	register(ctx, a)
	return a, nil
}

// made answers a fresh array, or frees it if the operation that was to fill it
// failed.
func made(a *Array, err error) (*Array, error) {
	if err != nil {
		return nil, join(err, a.Free())
	}
	return a, nil
}
