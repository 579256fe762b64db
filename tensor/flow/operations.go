package flow

import (
	"context"
	"errors"
	"slices"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
)

// The operations without arguments of their own are made once.
var (
	matMul = &matrixProduct{}
	add    = &made{name: "flow.Add", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Add(ctx, in[0], in[1])
	}}
	clone      = &made{name: "flow.Copy", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) { return tensor.Copy(ctx, in[0]) }}
	contiguous = &made{name: "flow.Contiguous", views: true, launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Contiguous(ctx, in[0])
	}}
	transpose = view("flow.T", func(a *tensor.Array) (*tensor.Array, error) { return a.T(), nil })
	adjoint   = view("flow.H", func(a *tensor.Array) (*tensor.Array, error) { return a.H(), nil })
	conjugate = view("flow.Conj", func(a *tensor.Array) (*tensor.Array, error) { return a.Conj(), nil })
	copyInto  = &made{name: "flow.CopyInto", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return in[1], tensor.CopyInto(ctx, in[1], in[0])
	}}
	free = &made{name: "flow.Free", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		if r := recorderOf(ctx); r != nil && !r.Made(in[0].Buffer()) {
			return nil, r.Refuse("flow.Free", "its array was not made in the program, and is gone after one replay")
		}
		return nil, in[0].Free()
	}}
)

// view is an operation that launches nothing.
func view(name string, of func(*tensor.Array) (*tensor.Array, error)) *made {
	return &made{name: name, views: true, launch: func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) { return of(in[0]) }}
}

// MatMul is tensor.MatMul: the matrix product of the last two axes, over the
// broadcast others.
func MatMul(ctx context.Context, a, b *Value, opts ...tensor.ProductOption) *Value {
	if len(opts) == 0 {
		return ask(ctx, matMul, a, b)
	}
	return ask(ctx, &matrixProduct{slices.Clone(opts)}, a, b)
}

// GemmInto is tensor.GemmInto: it changes c, in place, to alpha·a·b + beta·c, once
// all who read c before have launched or let go, and answers it.
func GemmInto(ctx context.Context, alpha complex128, a, b *Value, beta complex128, c *Value, opts ...tensor.ProductOption) *Value {
	return change(ctx, &gemm{alpha, beta, slices.Clone(opts)}, c, a, b)
}

// Einsum is tensor.Einsum: sums of products of elements over indices.
func Einsum(ctx context.Context, spec string, operands ...*Value) *Value {
	return ask(ctx, &made{name: "flow.Einsum", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Einsum(ctx, spec, in...)
	}}, operands...)
}

// EinsumWith is Einsum with options.
func EinsumWith(ctx context.Context, o tensor.EinsumOptions, spec string, operands ...*Value) *Value {
	return ask(ctx, &made{name: "flow.EinsumWith", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.EinsumWith(ctx, o, spec, in...)
	}}, operands...)
}

// Network is tensor.Network: the contraction of a tensor network whose indices
// are integers.
func Network(ctx context.Context, o tensor.EinsumOptions, operands []*Value, labels [][]int, output []int) *Value {
	labels, output = slices.Clone(labels), slices.Clone(output)
	for k, l := range labels {
		labels[k] = slices.Clone(l)
	}
	return ask(ctx, &made{name: "flow.Network", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Network(ctx, o, in, labels, output)
	}}, operands...)
}

// Add is tensor.Add: a + b, each stretched to the other's shape.
func Add(ctx context.Context, a, b *Value) *Value { return ask(ctx, add, a, b) }

// Scale is tensor.Scale: alpha·a.
func Scale(ctx context.Context, alpha complex128, a *Value) *Value {
	return ask(ctx, &made{name: "flow.Scale", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Scale(ctx, alpha, in[0])
	}}, a)
}

// AddInto is tensor.AddInto: it changes y, in place, to alpha·x + beta·y, as
// GemmInto changes c, and answers it.
func AddInto(ctx context.Context, alpha complex128, x *Value, beta complex128, y *Value) *Value {
	return change(ctx, &made{name: "flow.AddInto", launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return in[1], tensor.AddInto(ctx, alpha, in[0], beta, in[1])
	}}, y, x)
}

// Reshape is tensor.Reshape: the elements in row-major order with another shape.
func Reshape(ctx context.Context, a *Value, shape ...int) *Value {
	shape = slices.Clone(shape)
	return ask(ctx, &made{name: "flow.Reshape", views: true, launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.Reshape(ctx, in[0], shape...)
	}}, a)
}

// T is the view with the axes in reverse, as a.T().
func T(ctx context.Context, a *Value) *Value { return ask(ctx, transpose, a) }

// H is the conjugate of T, as a.H().
func H(ctx context.Context, a *Value) *Value { return ask(ctx, adjoint, a) }

// Conj is the view that reads as the conjugate.
func Conj(ctx context.Context, a *Value) *Value { return ask(ctx, conjugate, a) }

// Permute is the view whose axis i is a's axis axes[i].
func Permute(ctx context.Context, a *Value, axes ...int) *Value {
	axes = slices.Clone(axes)
	return ask(ctx, view("flow.Permute", func(a *tensor.Array) (*tensor.Array, error) { return a.Permute(axes...) }), a)
}

// Slice is the view of what one index for each axis takes.
func Slice(ctx context.Context, a *Value, index ...tensor.Index) *Value {
	index = slices.Clone(index)
	return ask(ctx, view("flow.Slice", func(a *tensor.Array) (*tensor.Array, error) { return a.Slice(index...) }), a)
}

// Broadcast is the view stretched to shape.
func Broadcast(ctx context.Context, a *Value, shape ...int) *Value {
	shape = slices.Clone(shape)
	return ask(ctx, view("flow.Broadcast", func(a *tensor.Array) (*tensor.Array, error) { return a.Broadcast(shape...) }), a)
}

// Diagonal is the view of the elements whose indices on the two axes are equal.
func Diagonal(ctx context.Context, a *Value, axis1, axis2 int) *Value {
	return ask(ctx, view("flow.Diagonal", func(a *tensor.Array) (*tensor.Array, error) { return a.Diagonal(axis1, axis2) }), a)
}

// Copy is tensor.Copy: a row-major copy.
func Copy(ctx context.Context, a *Value) *Value { return ask(ctx, clone, a) }

// Contiguous is tensor.Contiguous: a itself if it is row-major, else a copy.
func Contiguous(ctx context.Context, a *Value) *Value { return ask(ctx, contiguous, a) }

// CopyInto is tensor.CopyInto: it writes src, stretched and converted, over dst, in
// place, as GemmInto changes c, and answers dst.
func CopyInto(ctx context.Context, dst, src *Value) *Value { return change(ctx, copyInto, dst, src) }

// AsType is tensor.AsType: a itself if it has the element type, else a converted
// copy.
func AsType(ctx context.Context, a *Value, dt tensor.DType) *Value {
	return ask(ctx, &made{name: "flow.AsType", views: true, launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.AsType(ctx, in[0], dt)
	}}, a)
}

// To is tensor.To: a itself if it is on the device, else a copy there.
func To(ctx context.Context, a *Value, d runtime.Device) *Value {
	return ask(ctx, &made{name: "flow.To", views: true, launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.To(ctx, in[0], d)
	}}, a)
}

// SVD is tensor.SVD: a = u·diag(s)·vh. It runs as a task of its own, since a
// decomposition may wait for the device.
//
//go:noinline
func SVD(ctx context.Context, a *Value, opts ...tensor.SVDOption) (u, s, vh *Value) {
	u, s, vh = async.New[*tensor.Array]("flow.SVD: u"), async.New[*tensor.Array]("flow.SVD: s"), async.New[*tensor.Array]("flow.SVD: vh")
	if r := recorderOf(ctx); r != nil {
		why, at := r.Refuse("flow.SVD", "it waits for the device"), callers.At(callers.PCs())
		for _, v := range []**Value{&u, &s, &vh} {
			*v = async.Poisoned[*tensor.Array]("flow.SVD", at, why)
		}
		return u, s, vh
	}
	if a == nil {
		a = async.Poisoned[*tensor.Array]("flow.SVD", callers.At(callers.PCs()), present("flow.SVD", []*Value{nil}))
	}
	opts = slices.Clone(opts)
	wu, ws, wvh := u.Write(), s.Write(), vh.Write()
	r, under := a.ReadMemory()
	gates := []async.Gate{r, wu, ws, wvh}
	if under != nil {
		gates = append(gates, under)
	}
	t := async.Go(ctx, "flow.SVD", func(ctx context.Context) error {
		x, err := r.Await(ctx)
		if err != nil {
			return err
		}
		if under != nil {
			if _, err := under.Await(ctx); under.Describe().Phase == scheduler.Closed { // else what it answers is not what x is
				return err
			}
		}
		au, as, avh, err := tensor.SVD(ctx, x, opts...)
		if err != nil {
			return err
		}
		return errors.Join(wu.Set(au), ws.Set(as), wvh.Set(avh))
	}, gates...)
	tensor.BeforeFree(ctx, decomposition{r, under, t})
	return u, s, vh
}

// decomposition is an SVD that a scope waits for.
type decomposition struct {
	in    *async.Reader[*tensor.Array]
	under *async.Reader[*tensor.Array] // of what in's value is a view of, or nil
	task  *scheduler.Task
}

// Flush waits until it is launched, unless it waits for what is not written yet.
func (d decomposition) Flush(ctx context.Context) uint64 {
	for _, r := range [...]*async.Reader[*tensor.Array]{d.in, d.under} {
		if r != nil && r.Describe().Phase == scheduler.Closed {
			return 0
		}
	}
	_ = d.task.Wait(ctx) // its failure is its values'
	return 1
}

// Free gives a's array back once all who read a before have launched or let go; a
// is then a value that was never written. Views of the array end with it, as with
// Array.Free. It is done though ctx has ended.
func Free(ctx context.Context, a *Value) { take(ctx, free, a) }
