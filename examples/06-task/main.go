// Example 06 is a task that submits work of its own.
//
// The task is given the right to read one value and to write another one. It takes
// memory first, then a BLAS handle with a stream, and then submits two things on
// that stream, a product of Weir's and a function of its own, in one access scope:
// the normal matrix of ridge regression, XᵀX + λ. While it waits, for its input or
// for the lease, other tasks run in its place. When it returns it lets go of what
// it was given; had it failed, who reads the result would find out why.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

func main() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	ctx, free := tensor.Scope(context.Background())
	if err := errors.Join(ridge(ctx), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func ridge(ctx context.Context) error {
	data, normal := async.New[*tensor.Array]("data"), async.New[*tensor.Array]("normal matrix")

	// What reads what is fixed here, by the order of these calls, not by when the
	// tasks run: the second one is started first.
	toData := data.Write()
	fromData, toNormal := data.Read(), normal.Write()
	async.Go(ctx, "ridge", func(ctx context.Context) error {
		x, err := fromData.Await(ctx)
		if err != nil {
			return err
		}
		y, err := regularised(ctx, x, 0.5)
		if err != nil {
			return err
		}
		return toNormal.Set(y)
	}, fromData, toNormal)

	async.Go(ctx, "load", func(ctx context.Context) error {
		x, err := tensor.From(ctx, []float64{1, 2, 3, 4, 5, 6}, 3, 2)
		if err != nil {
			return err
		}
		return toData.Set(x)
	}, toData)

	a, err := normal.Get(ctx)
	if err != nil {
		return err
	}
	fmt.Println(a)
	return nil
}

// regularised is xᵀ·x + λ on the diagonal, of a row-major float64 matrix.
func regularised(ctx context.Context, x *tensor.Array, lambda float64) (*tensor.Array, error) {
	rows, columns := int64(x.Shape()[0]), int64(x.Shape()[1])
	y, err := tensor.Empty(ctx, tensor.Float64, int(columns), int(columns)) // memory first
	if err != nil {
		return nil, err
	}
	lease, err := blas.Acquire(ctx) // a handle, then an idle stream; the task gives its lane back while it waits
	if err != nil {
		return nil, err
	}
	scope := buffer.Begin(lease.Stream())
	px, py := scope.Read(x.Buffer()), scope.Write(y.Buffer())
	err = scope.Err()
	if err == nil { // BLAS has columns where x has rows: it sees xᵀ, and multiplies it with its transpose
		err = blas.Gemm(&lease, &blas.Product{DType: tensor.Float64, OpB: blas.Trans, M: columns, N: columns, K: rows,
			Alpha: 1, A: px, LDA: columns, B: px, LDB: columns, C: py, LDC: columns, Batch: 1})
	}
	if err == nil { // the same stream: after the product, with no wait
		err = lease.Stream().Call(func() {
			for i, all := 0, buffer.Elements[float64](py, y.Size()); i < len(all); i += int(columns) + 1 {
				all[i] += lambda
			}
		})
	}
	return y, errors.Join(err, scope.End(), lease.Release())
}
