package grad

import (
	"context"
	"slices"

	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// MatMul is flow.MatMul: the matrix product of the last two axes, over the
// broadcast others. The steps back are products too, c·bᴴ and aᴴ·c for the
// cotangent c, with the same options, summed over what was broadcast.
//
//go:noinline
func MatMul(ctx context.Context, a, b *Node, opts ...tensor.ProductOption) *Node {
	return matMulAt(ctx, callers.At(callers.PCs()), a, b, slices.Clone(opts))
}

func matMulAt(ctx context.Context, at callers.Site, a, b *Node, opts []tensor.ProductOption) *Node {
	return &Node{
		value:   flow.MatMulAt(ctx, at, a.Value(), b.Value(), opts...),
		parents: []*Node{a, b},
		back: func(ctx context.Context, k int, cotangent *Node) *Node {
			c := withMatrixAxes.apply(ctx, at, cotangent, a.Value(), b.Value())
			if k == 0 {
				return fittedLeft.apply(ctx, at, matMulAt(ctx, at, c, adjointRight.apply(ctx, at, b), opts), a.value)
			}
			return fittedRight.apply(ctx, at, matMulAt(ctx, at, adjointLeft.apply(ctx, at, a), c, opts), b.value)
		},
	}
}

// A vector on the left is a row and one on the right a column, which only their
// ranks say, when they are launched.
var (
	adjointLeft  = adjointOf(1)
	adjointRight = adjointOf(0)

	fittedLeft = pair{linear{"grad.MatMul", fitSecond}, linear{"grad.MatMul", fitSecond}}

	// fittedRight fits a product to the right operand.
	fittedRight = pair{
		linear{"grad.MatMul", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			x, b := in[0], in[1]
			return relabel(ctx, x, fromLast(x.Rank()), rightLabels(b), b.Shape())
		}},
		linear{"grad.MatMul", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			c, x, b := in[0], in[1], in[2]
			return relabel(ctx, c, rightLabels(b), fromLast(x.Rank()), x.Shape())
		}},
	}

	// withMatrixAxes gives a product of a and b the axes back that it lost to
	// vectors.
	withMatrixAxes = reshaped(linear{"grad.MatMul", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) {
		y, a, b := in[0], in[1], in[2]
		index := slices.Repeat([]tensor.Index{tensor.All()}, y.Rank())
		if b.Rank() == 1 {
			index = append(index, tensor.NewAxis())
		}
		if a.Rank() == 1 {
			index = slices.Insert(index, len(index)-1, tensor.NewAxis())
		}
		return y.Slice(index...)
	}}, "grad.MatMul")
)

// rightLabels are those of the axes of a right operand.
func rightLabels(b *tensor.Array) []int {
	if b.Rank() == 1 {
		return []int{-2}
	}
	return fromLast(b.Rank())
}

// adjointOf is the pair of the conjugate transpose of the last two axes, of which
// a vector lacks the one that is then at place missing.
func adjointOf(missing int) pair {
	return pair{
		linear{"grad.MatMul", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) {
			if in[0].Rank() > 1 {
				return matrixAdjoint(in[0])
			}
			x, err := in[0].Slice(slices.Insert([]tensor.Index{tensor.All()}, missing, tensor.NewAxis())...)
			if err != nil {
				return nil, err
			}
			return x.Conj(), nil
		}},
		linear{"grad.MatMul", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) {
			if in[1].Rank() > 1 {
				return matrixAdjoint(in[0])
			}
			c, err := in[0].Slice(slices.Insert([]tensor.Index{tensor.All()}, missing, tensor.At(0))...)
			if err != nil {
				return nil, err
			}
			return c.Conj(), nil
		}},
	}
}

func matrixAdjoint(a *tensor.Array) (*tensor.Array, error) {
	axes := make([]int, a.Rank())
	for i := range axes {
		axes[i] = i
	}
	n := len(axes)
	axes[n-2], axes[n-1] = n-1, n-2
	v, err := a.Permute(axes...)
	if err != nil {
		return nil, err
	}
	return v.Conj(), nil
}
