package tensor

import (
	"context"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
)

// CopyInto copies src, stretched to dst's shape and converted to its element
// type, into dst on the same device. Complex to real drops the imaginary part;
// real to integer truncates toward zero, and what does not fit is unspecified.
func CopyInto(ctx context.Context, dst, src *Array) error {
	const op = "tensor.CopyInto"
	if err := sameDevice(op, namesDst, dst, src); err != nil {
		return err
	}
	l, ok := src.layout.broadcast(dst.shape())
	if !ok {
		return weir.Argf(op, "src is %s and dst %s; expected src to stretch to dst", shapeString(src.shape()), shapeString(dst.shape()))
	}
	if err := writable(op, dst); err != nil || dst.size() == 0 {
		return err
	}
	from := src.with(l, src.offset)
	if dst.overlaps(src) {
		whole, err := compact(ctx, src)
		if err != nil {
			return err
		}
		defer whole.Free()
		if l, ok = whole.layout.broadcast(dst.shape()); !ok {
			return weir.Argf(op, "src is %s and dst %s; expected src to stretch to dst", shapeString(src.shape()), shapeString(dst.shape()))
		}
		from = whole.with(l, 0)
	}
	return convertInto(ctx, dst, from)
}

// convertInto copies between arrays of one shape; they share an element's
// memory nowhere, though they may share a buffer.
func convertInto(ctx context.Context, dst, src *Array) error {
	return onStream(ctx, dst, func(x *operation) error {
		to := x.acc.Write(dst.Buffer())
		from := to
		if src.Buffer() != dst.Buffer() {
			from = x.acc.Read(src.Buffer())
		}
		return x.launch(copyOf(dst, to, src, from))
	}, src)
}

func copyOf(dst *Array, to driver.Ptr, src *Array, from driver.Ptr) *driver.Kernel {
	return &driver.Kernel{Op: driver.KernelCopy, Out: dst.view(to), A: src.view(from), ConjA: src.conj != dst.conj}
}

// writable refuses a destination of which two elements share an address.
func writable(op string, dst *Array) error {
	if !dst.distinct() {
		return weir.Argf(op, "the result, %s with strides %v, has several elements at one address; expected a view that repeats none",
			shapeString(dst.shape()), dst.Strides())
	}
	return nil
}

// compact copies a to a new row-major array of its type, conjugated if a is.
func compact(ctx context.Context, a *Array) (*Array, error) {
	return converted(ctx, "tensor.Copy", a, a.dtype)
}

func converted(ctx context.Context, op string, a *Array, dt DType) (*Array, error) {
	b, err := emptyOn(ctx, op, a.memory(), dt, a.shape())
	if err != nil || a.size() == 0 {
		return b, err
	}
	return made(b, convertInto(ctx, b, a))
}

// Copy makes a row-major copy of a on its device.
func Copy(ctx context.Context, a *Array) (*Array, error) {
	if err := sameDevice("tensor.Copy", namesA, a); err != nil {
		return nil, err
	}
	return compact(ctx, a)
}

// Contiguous answers a itself if its elements lie one after another in
// row-major order and unconjugated, else a copy that does so.
func Contiguous(ctx context.Context, a *Array) (*Array, error) {
	if err := sameDevice("tensor.Contiguous", namesA, a); err != nil {
		return nil, err
	}
	if a.isRowMajor() && !a.conj {
		return a, nil
	}
	return compact(ctx, a)
}

// Reshape answers the elements in row-major order with another shape: a view
// where strides can express it, else a copy. One extent may be -1.
func Reshape(ctx context.Context, a *Array, shape ...int) (*Array, error) {
	const op = "tensor.Reshape"
	if err := sameDevice(op, namesA, a); err != nil {
		return nil, err
	}
	v, ok, err := a.reshaped(op, shape)
	if err != nil || ok {
		return v, err
	}
	c, err := compact(ctx, a)
	if err != nil {
		return nil, err
	}
	v, _, err = c.reshaped(op, shape)
	return v, err
}

// AsType answers a itself if it has the element type, else a converted
// row-major copy; see CopyInto for how values convert.
func AsType(ctx context.Context, a *Array, dt DType) (*Array, error) {
	const op = "tensor.AsType"
	if err := sameDevice(op, namesA, a); err != nil {
		return nil, err
	}
	if a.dtype == dt {
		return a, nil
	}
	return converted(ctx, op, a, dt)
}

// To answers a itself if it is on the device, else a row-major copy there.
// Between the host device and a GPU it waits for a.
func To(ctx context.Context, a *Array, d runtime.Device) (*Array, error) {
	const op = "tensor.To"
	if err := sameDevice(op, namesA, a); err != nil {
		return nil, err
	}
	if a.Device() == d {
		return a, nil
	}
	if err := recordable(ctx, op, fmt.Sprintf("it copies from %s to %s; a graph is of one device", a.Device(), d)); err != nil {
		return nil, err
	}
	r, err := runtime.For(d)
	if err != nil {
		return nil, err
	}
	m, err := buffer.Of(r)
	if err != nil {
		return nil, err
	}
	src := a
	if !a.isRowMajor() || a.conj {
		if src, err = compact(ctx, a); err != nil {
			return nil, err
		}
		defer src.Free()
	}
	b, err := emptyOn(ctx, op, m, a.dtype, a.shape())
	if err != nil || a.size() == 0 {
		return b, err
	}
	if a.Device().IsHost() != d.IsHost() { // a family's streams reach no other's memory
		data := make([]byte, b.Bytes())
		if err := read(ctx, src, data); err != nil {
			return made(b, err)
		}
		return made(b, fill(ctx, b, data))
	}
	return made(b, onStreamAcross(ctx, b, func(x *operation) error {
		from := x.acc.Read(src.Buffer()) + driver.Ptr(src.offset*src.dtype.Size())
		to := x.acc.Write(b.Buffer())
		return x.submit(func(s driver.Stream) error {
			return s.CopyPeer(to, d.Driver().Ordinal(), from, a.Device().Driver().Ordinal(), b.Bytes())
		})
	}))
}
