package tensor

import (
	"context"
	"math"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/rows"
	"github.com/weirgo/weir/provider/raft"
)

// Reduction is what Reduce makes of the elements along an axis.
type Reduction uint8

const (
	ReduceSum  Reduction = iota
	ReduceMean           // the sum over the number of elements
	ReduceNorm           // the root of the sum of squares
	ReduceMin
	ReduceMax
)

// The numbers are those of the packages that compute it.
var _ = [1]int{}[ReduceMax-Reduction(rows.Max)]

// Reduce reduces an axis of a, negative ones counted from the end: the result is a new
// row-major array of a's element type, float32 or float64, without that axis. a is any
// view and is not changed.
//
// Sums are of float64, rounded to the element type once: they are within n·2^-53 of the
// sum of the n magnitudes, and float32 rounds that. Squares of float64 may overflow, or
// vanish. A NaN along the axis makes the result NaN. Of an axis without elements the sum
// and the norm are 0 and the mean is NaN; the minimum and the maximum are ErrArguments.
//
// On a GPU it is RAFT's; see RAFT. Reduce returns when submitted.
func Reduce(ctx context.Context, a *Array, axis int, to Reduction) (*Array, error) {
	const op = "tensor.Reduce"
	if err := sameDevice(op, namesA, a); err != nil {
		return nil, err
	}
	if err := realOnly(op, a); err != nil {
		return nil, err
	}
	at, ok := a.axis(axis)
	switch {
	case !ok:
		return nil, weir.Argf(op, "axis %d of %s; expected one of its %d axes", axis, shapeString(a.shape()), a.rank)
	case to > ReduceMax:
		return nil, weir.Argf(op, "reduction %d; expected one of ReduceSum, ReduceMean, ReduceNorm, ReduceMin and ReduceMax", to)
	case to >= ReduceMin && a.shape()[at] == 0:
		return nil, weir.Argf(op, "axis %d of %s has no elements; expected some for a minimum or maximum", axis, shapeString(a.shape()))
	}
	if err := recordable(ctx, op, noGraphs); err != nil {
		return nil, err
	}
	axes := make([]int, 0, a.rank) // that one last
	for i := range a.rank {
		if i != at {
			axes = append(axes, i)
		}
	}
	last := a.with(a.permute(append(axes, at)), a.offset)
	out, err := emptyOn(ctx, op, a.memory(), a.dtype, last.shape()[:a.rank-1])
	if err != nil || out.size() == 0 {
		return out, err
	}
	return made(out, last.reduce(ctx, to, out))
}

// reduce reduces the last axis.
func (a *Array) reduce(ctx context.Context, to Reduction, out *Array) error {
	n := a.shape()[a.rank-1]
	if n == 0 {
		value := complex(map[bool]float64{true: math.NaN()}[to == ReduceMean], 0)
		return onStream(ctx, out, func(x *operation) error {
			return x.launch(&driver.Kernel{Op: driver.KernelFill, Out: out.view(x.acc.Write(out.Buffer())), Alpha: value})
		})
	}
	from, free, err := packedRows(ctx, a)
	if err != nil {
		return err
	}
	err = onRows(ctx, from,
		func(at driver.Ptr, results []driver.Ptr) {
			rows.Reduce(a.dtype, rows.Reduction(to), out.size(), n, uintptr(at), uintptr(results[0]))
		},
		func(l *raft.Lease, at driver.Ptr, results []driver.Ptr) error {
			return raft.Reduce(l, &raft.Reducing{DType: a.dtype, To: raft.Reduction(to), Rows: out.size(), N: n, A: at, Out: results[0]})
		},
		out)
	return join(err, free())
}
