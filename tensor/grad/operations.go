package grad

import (
	"context"
	"slices"

	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// own makes a pair of functions of the first input alone.
func own(name string, forth, back func(ctx context.Context, x *tensor.Array) (*tensor.Array, error)) pair {
	return pair{
		linear{"flow." + name, func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) { return forth(ctx, in[0]) }},
		linear{"grad." + name, func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) { return back(ctx, in[0]) }},
	}
}

// taken makes a pair of a view that takes some elements of x, each once: the
// cotangent of the others is zero.
func taken(name string, of func(x *tensor.Array) (*tensor.Array, error)) pair {
	return pair{
		linear{"flow." + name, func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) { return of(in[0]) }},
		linear{"grad." + name, func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			return scatter(ctx, in[0], in[1], of)
		}},
	}
}

// scatter is zeros of x's shape, but for the view of them, which is c.
func scatter(ctx context.Context, c, x *tensor.Array, view func(*tensor.Array) (*tensor.Array, error)) (*tensor.Array, error) {
	all, err := tensor.Zeros(runtime.On(ctx, c.Device()), c.DType(), x.Shape()...)
	if err != nil {
		return nil, err
	}
	to, err := view(all)
	if err != nil {
		return nil, err
	}
	return all, tensor.CopyInto(ctx, to, c)
}

// reshaped makes the pair of a change of shape: back it is x's again.
func reshaped(forth linear, back string) pair {
	return pair{forth, linear{back, func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Reshape(ctx, in[0], in[1].Shape()...)
	}}}
}

var (
	transpose = own("T", justT, justT)
	adjoint   = own("H", justH, justH)
	conjugate = own("Conj", justConj, justConj)
	clone     = own("Copy", tensor.Copy, func(_ context.Context, c *tensor.Array) (*tensor.Array, error) { return c, nil })
	fitted    = pair{linear{"grad.Add", fitSecond}, linear{"grad.Add", fitSecond}}
)

func justT(_ context.Context, a *tensor.Array) (*tensor.Array, error)    { return a.T(), nil }
func justH(_ context.Context, a *tensor.Array) (*tensor.Array, error)    { return a.H(), nil }
func justConj(_ context.Context, a *tensor.Array) (*tensor.Array, error) { return a.Conj(), nil }

// fitSecond is the first array, summed and stretched to the second's shape.
func fitSecond(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
	return fit(ctx, in[0], in[1].Shape())
}

// Add is flow.Add: a + b, each stretched to the other's shape. Back, what was
// stretched is summed.
//
//go:noinline
func Add(ctx context.Context, a, b *Node) *Node {
	return addAt(ctx, callers.At(callers.PCs()), "flow.Add", a, b)
}

func addAt(ctx context.Context, at callers.Site, name string, a, b *Node) *Node {
	parents := []*Node{a, b}
	return &Node{
		value: flow.ApplyAt(ctx, at, name, func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			return tensor.Add(ctx, in[0], in[1])
		}, a.Value(), b.Value()),
		parents: parents,
		back: func(ctx context.Context, k int, cotangent *Node) *Node {
			return fitted.apply(ctx, at, cotangent, parents[k].value)
		},
	}
}

// Scale is flow.Scale: alpha·a. Back, the factor is conj(alpha).
//
//go:noinline
func Scale(ctx context.Context, alpha complex128, a *Node) *Node {
	by := func(f complex128) func(context.Context, *tensor.Array) (*tensor.Array, error) {
		return func(ctx context.Context, x *tensor.Array) (*tensor.Array, error) { return tensor.Scale(ctx, f, x) }
	}
	return record(ctx, callers.At(callers.PCs()), own("Scale", by(alpha), by(complex(real(alpha), -imag(alpha)))), a)
}

// Reshape is flow.Reshape: the elements in row-major order with another shape.
//
//go:noinline
func Reshape(ctx context.Context, a *Node, shape ...int) *Node {
	shape = slices.Clone(shape)
	return record(ctx, callers.At(callers.PCs()), reshaped(linear{"flow.Reshape", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Reshape(ctx, in[0], shape...)
	}}, "grad.Reshape"), a)
}

// T is flow.T: the axes in reverse order.
//
//go:noinline
func T(ctx context.Context, a *Node) *Node {
	return record(ctx, callers.At(callers.PCs()), transpose, a)
}

// H is flow.H: the conjugate transpose.
//
//go:noinline
func H(ctx context.Context, a *Node) *Node {
	return record(ctx, callers.At(callers.PCs()), adjoint, a)
}

// Conj is flow.Conj: the conjugate. Back, the cotangent is conjugated.
//
//go:noinline
func Conj(ctx context.Context, a *Node) *Node {
	return record(ctx, callers.At(callers.PCs()), conjugate, a)
}

// Permute is flow.Permute: axis i is a's axis axes[i].
//
//go:noinline
func Permute(ctx context.Context, a *Node, axes ...int) *Node {
	axes = slices.Clone(axes)
	return record(ctx, callers.At(callers.PCs()), own("Permute",
		func(_ context.Context, x *tensor.Array) (*tensor.Array, error) { return x.Permute(axes...) },
		func(_ context.Context, c *tensor.Array) (*tensor.Array, error) {
			inverse := make([]int, len(axes))
			for i, k := range axes {
				if k < 0 {
					k += len(axes)
				}
				inverse[k] = i
			}
			return c.Permute(inverse...)
		}), a)
}

// Slice is flow.Slice: what one index for each axis takes. Back, the rest is zero.
//
//go:noinline
func Slice(ctx context.Context, a *Node, index ...tensor.Index) *Node {
	index = slices.Clone(index)
	return record(ctx, callers.At(callers.PCs()), taken("Slice", func(x *tensor.Array) (*tensor.Array, error) { return x.Slice(index...) }), a)
}

// Diagonal is flow.Diagonal: the elements whose indices on the two axes are equal.
// Back, the rest is zero.
//
//go:noinline
func Diagonal(ctx context.Context, a *Node, axis1, axis2 int) *Node {
	return record(ctx, callers.At(callers.PCs()), taken("Diagonal", func(x *tensor.Array) (*tensor.Array, error) { return x.Diagonal(axis1, axis2) }), a)
}

// Broadcast is flow.Broadcast: a stretched to shape. Back, what was stretched is
// summed.
//
//go:noinline
func Broadcast(ctx context.Context, a *Node, shape ...int) *Node {
	shape = slices.Clone(shape)
	return record(ctx, callers.At(callers.PCs()), pair{linear{"flow.Broadcast", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return in[0].Broadcast(shape...)
	}}, linear{"grad.Broadcast", fitSecond}}, a)
}

// Copy is flow.Copy: a row-major copy.
//
//go:noinline
func Copy(ctx context.Context, a *Node) *Node {
	return record(ctx, callers.At(callers.PCs()), clone, a)
}

// AsType is flow.AsType: a with another element type. Back, the cotangent gets
// a's: of a real a, its real part. Through integers there is no way back.
//
//go:noinline
func AsType(ctx context.Context, a *Node, dt tensor.DType) *Node {
	return record(ctx, callers.At(callers.PCs()), pair{
		linear{"flow.AsType", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			return tensor.AsType(ctx, in[0], dt)
		}},
		linear{"grad.AsType", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			for _, a := range in {
				if err := differentiable("grad.AsType", a); err != nil {
					return nil, err
				}
			}
			return tensor.AsType(ctx, in[0], in[1].DType())
		}},
	}, a)
}

// To is flow.To: a on another device. Back, the cotangent comes to a's.
//
//go:noinline
func To(ctx context.Context, a *Node, d runtime.Device) *Node {
	return record(ctx, callers.At(callers.PCs()), pair{
		linear{"flow.To", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			return tensor.To(ctx, in[0], d)
		}},
		linear{"grad.To", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			return tensor.To(ctx, in[0], in[1].Device())
		}},
	}, a)
}
