package grad

import (
	"context"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/tensor"
)

// fit is a with another shape, aligned at the last axes: axes that the shape lacks,
// or has with extent 1, are summed, and those that a lacks, or has with extent 1,
// repeat. It is the transpose of fitting the shape to a.
func fit(ctx context.Context, a *tensor.Array, shape []int) (*tensor.Array, error) {
	return relabel(ctx, a, fromLast(a.Rank()), fromLast(len(shape)), shape)
}

// fromLast labels axes by their distance from the end: the last is -1.
func fromLast(rank int) []int {
	labels := make([]int, rank)
	for i := range labels {
		labels[i] = i - rank
	}
	return labels
}

// relabel is fit for axes that are aligned by labels, each at most once in a list:
// have are those of a, want those of shape.
func relabel(ctx context.Context, a *tensor.Array, have, want []int, shape []int) (*tensor.Array, error) {
	var (
		take   []tensor.Index // drops what has extent 1 and is not kept
		labels []int          // of what is left then
		kept   []int          // of what is left in the end, by a's axes
		err    error
	)
	for i, l := range have {
		n, k := a.Shape()[i], slices.Index(want, l)
		switch {
		case k >= 0 && shape[k] == n:
			kept = append(kept, l)
		case n == 1:
			take = append(take, tensor.At(0))
			continue
		case k >= 0 && shape[k] != 1:
			return nil, weir.Argf("grad", "a cotangent of shape %v does not fit %v", a.Shape(), shape)
		}
		take, labels = append(take, tensor.All()), append(labels, l)
	}
	if a, err = a.Slice(take...); err != nil {
		return nil, err
	}
	if len(kept) < len(labels) {
		if a, err = tensor.Network(ctx, tensor.EinsumOptions{}, []*tensor.Array{a}, [][]int{labels}, kept); err != nil {
			return nil, err
		}
	}
	var axes []int
	var index []tensor.Index
	for _, l := range want {
		if k := slices.Index(kept, l); k >= 0 {
			axes, index = append(axes, k), append(index, tensor.All())
		} else {
			index = append(index, tensor.NewAxis())
		}
	}
	if a, err = a.Permute(axes...); err != nil {
		return nil, err
	}
	if a, err = a.Slice(index...); err != nil {
		return nil, err
	}
	return a.Broadcast(shape...)
}

// diagonal is the view in which axes of equal labels are one, and its labels.
func diagonal(a *tensor.Array, labels []int) (*tensor.Array, []int, error) {
	labels = slices.Clone(labels)
	for i := 0; i < len(labels); i++ {
		k := slices.Index(labels[i+1:], labels[i])
		if k < 0 {
			continue
		}
		var err error
		if a, err = a.Diagonal(i, i+1+k); err != nil {
			return nil, nil, err
		}
		l := labels[i]
		labels = append(slices.Delete(slices.Delete(labels, i+1+k, i+2+k), i, i+1), l)
		i--
	}
	return a, labels, nil
}
