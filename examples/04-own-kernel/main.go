// Example 04 runs an operation of one's own among Weir's.
//
// Beside what 03 has, it shows what operations are made of: memory, a stream,
// and one access scope over all operands, which makes the stream wait for what
// wrote them and publishes one completion for what comes after. So nobody waits
// on the host. The kernel is a Go function, which only the host device runs; on
// a GPU, a launch on the stream that Native answers takes its place.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

func main() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	ctx, free := tensor.Scope(context.Background())
	if err := errors.Join(rectifiedProduct(ctx), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func rectifiedProduct(ctx context.Context) error {
	a, err := tensor.LoadNPY(ctx, "examples/data/left.npy")
	if err != nil {
		return err
	}
	gram, err := tensor.Einsum(ctx, "asb,atb->st", a, a) // may still run …
	if err != nil {
		return err
	}
	positive, err := rectify(ctx, gram) // … when this is submitted
	fmt.Println(gram, "\nrectified:", positive)
	return err
}

// rectify answers max(x, 0) of every element of a row-major float64 array.
func rectify(ctx context.Context, x *tensor.Array) (*tensor.Array, error) {
	if x.DType() != tensor.Float64 || !x.IsContiguous() {
		return nil, fmt.Errorf("rectify: got %v; expected row-major float64", x.DType())
	}
	y, err := tensor.Empty(runtime.On(ctx, x.Device()), tensor.Float64, x.Shape()...)
	if err != nil {
		return nil, err
	}
	r, err := runtime.For(x.Device())
	if err != nil {
		return nil, err
	}
	s, err := r.Streams().Acquire(ctx) // the only wait
	if err != nil {
		return nil, err
	}
	scope := buffer.Begin(s)
	from, to := scope.Read(x.Buffer()), scope.Write(y.Buffer())
	if scope.Err() == nil {
		err = s.Call(func() {
			out := buffer.Elements[float64](to, y.Size())
			for i, v := range buffer.Elements[float64](from, x.Offset()+x.Size())[x.Offset():] {
				out[i] = max(v, 0)
			}
		})
	}
	return y, errors.Join(err, scope.End(), s.Release())
}
