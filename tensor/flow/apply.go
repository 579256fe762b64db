package flow

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/tensor"
)

// Apply is an operation of one's own: fn makes an array of the arrays that the
// inputs are, once they are launched. The log launches it in its turn, as it does
// this package's operations; name is for messages and listings.
//
// fn returns when its work is submitted. It may wait for memory, streams and
// handles under its ctx, but not for a value, nor long for anything: operations
// behind it wait too. Its ctx carries the device, the scope and the cancellation
// of Apply's; other values of that may be missing. It changes none of the arrays,
// may answer the first or a view of it, and keeps no hold of the slice. Its error, or panic,
// poisons the value; after an ErrOutOfMemory it may be called once more, when others
// have given memory back.
//
//go:noinline
func Apply(ctx context.Context, name string, fn func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error), inputs ...*Value) *Value {
	if r := recorderOf(ctx); r != nil { // whatever it submits, it would to a stream
		why := r.Refuse(fmt.Sprintf("flow.Apply %q", name), "it is not known to be recordable")
		return async.Poisoned[*tensor.Array](name, callers.At(callers.PCs()), why)
	}
	return ask(ctx, applied(name, fn), inputs...)
}

// ApplyAt is Apply on behalf of whoever called at that site. It is for packages of
// this module, as is MatMulAt, whose functions submit through package tensor alone, so
// that they can be recorded.
func ApplyAt(ctx context.Context, at callers.Site, name string, fn func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error), inputs ...*Value) *Value {
	return askAt(ctx, at, applied(name, fn), inputs...)
}

// MatMulAt is MatMul on behalf of whoever called at that site.
func MatMulAt(ctx context.Context, at callers.Site, a, b *Value, opts ...tensor.ProductOption) *Value {
	if len(opts) == 0 {
		return askAt(ctx, at, matMul, a, b)
	}
	return askAt(ctx, at, &matrixProduct{slices.Clone(opts)}, a, b)
}

func applied(name string, fn func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error)) *made {
	return &made{name: name, views: true, launch: func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		if fn == nil {
			return nil, weir.Argf(name, "the function is nil; expected one that makes an array")
		}
		a, err := fn(ctx, in)
		if a == nil && err == nil {
			err = weir.Argf(name, "the function made a nil array; expected an array")
		}
		return a, err
	}}
}
