package tensor

import (
	"context"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// Scale is alpha·a, a new row-major array with a's shape and element type on a's
// device; elements of a conjugate view are read as conjugates. It takes every
// element type; rounding and what infinities become are as AddInto says, with
// beta = 0. An alpha that does not fit the element type is an ErrArgument.
//
// Scale returns when submitted.
func Scale(ctx context.Context, alpha complex128, a *Array) (*Array, error) {
	const op = "tensor.Scale"
	if err := sameDevice(op, namesA, a); err != nil {
		return nil, err
	}
	if err := scalars(op, a.dtype, alpha, 0); err != nil {
		return nil, err
	}
	b, err := emptyOn(ctx, op, a.memory(), a.dtype, a.shape())
	if err != nil || a.size() == 0 {
		return b, err
	}
	return made(b, onStream(ctx, b, func(x *operation) error {
		to, from := x.acc.Write(b.Buffer()), x.acc.Read(a.Buffer())
		return x.axpby(alpha, a, from, 0, b, to)
	}, a))
}

// Add is a + b, a new row-major array on their device, of their element type and
// of the shape that both stretch to, as NumPy has it: shapes are aligned at their
// last axes, and axes of extent 1, and missing leading ones, are repeated. Elements
// of conjugate views are read as conjugates. It takes every element type. Integers
// wrap; other sums are the exact ones rounded once to the element type, each part
// of complex ones by itself, and the same on every device.
//
// Shapes that do not stretch to one, two element types and two devices are each
// an ErrArgument that names both. Add returns when submitted.
func Add(ctx context.Context, a, b *Array) (*Array, error) {
	const op = "tensor.Add"
	if err := sameDevice(op, namesAB, a, b); err != nil {
		return nil, err
	}
	if err := sameDType(op, namesAB, a, b); err != nil {
		return nil, err
	}
	shape, ok := commonShape(a.shape(), b.shape())
	if !ok {
		return nil, weir.Argf(op, "a is %s and b %s; expected shapes that stretch to one", shapeString(a.shape()), shapeString(b.shape()))
	}
	c, err := emptyOn(ctx, op, a.memory(), a.dtype, shape)
	if err != nil || c.size() == 0 {
		return c, err
	}
	left, _ := a.layout.broadcast(shape)
	right, _ := b.layout.broadcast(shape)
	return made(c, onStream(ctx, c, func(x *operation) error {
		to, atA, atB := x.acc.Write(c.Buffer()), x.acc.Read(a.Buffer()), x.acc.Read(b.Buffer())
		if err := x.launch(copyOf(c, to, a.with(left, a.offset), atA)); err != nil {
			return err
		}
		return x.axpby(1, b.with(right, b.offset), atB, 1, c, to)
	}, a, b))
}

// commonShape is the shape that two others stretch to.
func commonShape(a, b []int64) ([]int64, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape := slices.Clone(a)
	for i, n := range b {
		switch to := &shape[len(a)-len(b)+i]; {
		case *to == 1:
			*to = n
		case n != 1 && n != *to:
			return nil, false
		}
	}
	return shape, true
}

// AddInto computes y = alpha·x + beta·y for every element, x stretched to y's
// shape: axes of extent 1, and missing leading ones, are repeated. x and y have
// one element type, any, and one device; those that are conjugate views are read,
// and y written, as conjugates.
//
// beta = 0 does not read y, so NaNs in it do not survive; alpha = 0 does read x.
// x may be y itself. Where x overlaps y in another way it is copied first; a y of
// which two elements lie at one address is refused. Two element types or devices,
// an x that does not stretch to y, and factors that do not fit the element type
// (an imaginary part for real arrays, a fraction for integers) are ErrArguments.
//
// Integers wrap. Otherwise factors are rounded to the type that is computed in,
// float32 for the 16-bit types and else that of an element's parts, and each part
// of the result is within 4·u·(|alpha·x| + |beta·y|) of the exact one while no
// value overflows or underflows, u being that type's unit roundoff; a 16-bit
// type then rounds once more. Devices may differ within that. Where both factors
// are real, a complex element's parts are computed each by itself, so that an
// infinity or NaN stays in its part; a factor that is not real can spread it to
// both, in y too.
//
// AddInto returns when submitted.
func AddInto(ctx context.Context, alpha complex128, x *Array, beta complex128, y *Array) error {
	const op = "tensor.AddInto"
	if err := sameDevice(op, namesXY, x, y); err != nil {
		return err
	}
	if err := sameDType(op, namesXY, x, y); err != nil {
		return err
	}
	if err := scalars(op, y.dtype, alpha, beta); err != nil {
		return err
	}
	l, ok := x.layout.broadcast(y.shape())
	if !ok {
		return weir.Argf(op, "x is %s and y %s; expected x to stretch to y", shapeString(x.shape()), shapeString(y.shape()))
	}
	if err := writable(op, y); err != nil || y.size() == 0 {
		return err
	}
	term := x.with(l, x.offset)
	if term.overlaps(y) && !term.coincides(y) {
		whole, err := converted(unscoped(ctx), op, x, x.dtype)
		if err != nil {
			return err
		}
		defer whole.Free()
		l, _ = whole.layout.broadcast(y.shape())
		term = whole.with(l, 0)
	}
	return onStream(ctx, y, func(o *operation) error {
		to := o.acc.Write(y.Buffer())
		from := to
		if term.Buffer() != y.Buffer() {
			from = o.acc.Read(term.Buffer())
		}
		return o.axpby(alpha, term, from, beta, y, to)
	}, term)
}

var namesXY = []string{"x", "y"}

// coincides says whether the elements of a lie where those of b do, an array of
// its shape in the same buffer.
func (a *Array) coincides(b *Array) bool {
	for i, n := range a.shape() {
		if n > 1 && a.strides()[i] != b.strides()[i] {
			return false
		}
	}
	return a.offset == b.offset
}

// axpby launches y = alpha·x + beta·y for arrays of one shape and type, of which
// the buffers are at from and to.
func (o *operation) axpby(alpha complex128, x *Array, from driver.Ptr, beta complex128, y *Array, to driver.Ptr) error {
	if y.conj { // conj(y) = conj(alpha)·conj(x) + conj(beta)·conj(y)
		alpha, beta = conjugate(alpha), conjugate(beta)
	}
	k := driver.Kernel{Op: driver.KernelAxpby, Out: y.view(to), A: x.view(from), ConjA: x.conj != y.conj, Alpha: alpha, Beta: beta}
	if !y.dtype.IsComplex() || imag(alpha) != 0 || imag(beta) != 0 {
		return o.launch(&k)
	}
	// A complex product with 1 + 0i makes Inf + NaN·i of Inf + 0i.
	if !k.ConjA {
		return o.launch(ofParts(k, 0, 2))
	}
	if err := o.launch(ofParts(k, 0, 1)); err != nil {
		return err
	}
	k.Alpha = -k.Alpha
	return o.launch(ofParts(k, 1, 1))
}

// ofParts is k on n parts of each complex element, from first (0 the real, 1 the
// imaginary one), as an axis of their own.
func ofParts(k driver.Kernel, first, n int64) *driver.Kernel {
	for _, v := range [...]*driver.View{&k.Out, &k.A} {
		v.DType = v.DType.Real()
		v.Ptr += driver.Ptr(first * v.DType.Size())
		v.Shape = append(slices.Clone(v.Shape), n)
		v.Strides = append(slices.Clone(v.Strides), 1)
		for i := range v.Strides[:len(v.Strides)-1] {
			v.Strides[i] *= 2
		}
	}
	return &k
}
