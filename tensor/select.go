package tensor

import (
	"context"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/rows"
	"github.com/weirgo/weir/provider/raft"
)

// Selection says which elements SelectK takes.
type Selection uint8

const (
	Largest  Selection = iota // from large to small
	Smallest                  // from small to large
)

// SelectK takes the k largest or smallest elements along the last axis of a, in their
// order, and where they are: values has a's element type, float32 or float64, and
// indices are int64, from 0; in both k is the last extent in the place of a's. k is at
// least 1 and at most that. a is any view and is not changed; the results are new
// row-major arrays.
//
// A NaN counts as larger than infinity, or as smaller than negative infinity if its
// sign bit is set. Which of equal elements are taken, and their order, is not said; on
// a host device the first are.
//
// On a GPU it is RAFT's; see RAFT. SelectK returns when submitted.
func SelectK(ctx context.Context, a *Array, k int, which Selection) (values, indices *Array, err error) {
	const op = "tensor.SelectK"
	if err := sameDevice(op, namesA, a); err != nil {
		return nil, nil, err
	}
	if err := realOnly(op, a); err != nil {
		return nil, nil, err
	}
	if a.rank == 0 {
		return nil, nil, weir.Argf(op, "a is %s; expected at least one axis", shapeString(a.shape()))
	}
	n := a.shape()[a.rank-1]
	switch {
	case which > Smallest:
		return nil, nil, weir.Argf(op, "selection %d; expected Largest or Smallest", which)
	case k < 1 || int64(k) > n:
		return nil, nil, weir.Argf(op, "k is %d and a %s; expected at least 1 and at most a's last extent, %d", k, shapeString(a.shape()), n)
	}
	if err := recordable(ctx, op, noGraphs); err != nil {
		return nil, nil, err
	}
	from, free, err := packedRows(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	shape := append([]int64(nil), a.shape()...)
	shape[a.rank-1] = int64(k)
	if values, err = emptyOn(ctx, op, a.memory(), a.dtype, shape); err == nil {
		if indices, err = emptyOn(ctx, op, a.memory(), Int64, shape); err == nil && values.size() > 0 {
			err = choose(ctx, from, int64(k), which, values, indices)
		}
	}
	if err = join(err, free()); err != nil {
		return nil, nil, join(err, values.Free(), indices.Free())
	}
	return values, indices, nil
}

func choose(ctx context.Context, from *Array, k int64, which Selection, values, indices *Array) error {
	n := from.shape()[from.rank-1]
	count := from.size() / n
	return onRows(ctx, from,
		func(at driver.Ptr, to []driver.Ptr) {
			rows.Select(from.dtype, which == Smallest, count, n, k, uintptr(at), uintptr(to[0]), uintptr(to[1]))
		},
		func(l *raft.Lease, at driver.Ptr, to []driver.Ptr) error {
			return raft.SelectK(l, &raft.Selection{DType: from.dtype, Smallest: which == Smallest, Rows: count, N: n, K: k, A: at, Values: to[0], Indices: to[1]})
		},
		values, indices)
}
