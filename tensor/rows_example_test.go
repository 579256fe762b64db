package tensor_test

import (
	"context"
	"fmt"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// The nearest two of three points to each of two others.
func ExampleSelectK() {
	rt, err := runtime.Start(runtime.Options{Devices: []string{"host:0"}})
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	ctx, free := tensor.Scope(context.Background())
	defer free()

	distances, err := tensor.From(ctx, []float32{3, 1, 2, 0.5, 4, 0.25}, 2, 3)
	if err != nil {
		panic(err)
	}
	values, indices, err := tensor.SelectK(ctx, distances, 2, tensor.Smallest)
	if err != nil {
		panic(err)
	}
	near, err := tensor.Data[float32](ctx, values)
	if err != nil {
		panic(err)
	}
	which, err := tensor.Data[int64](ctx, indices)
	if err != nil {
		panic(err)
	}
	fmt.Println(near, which)
	// Output: [1 2 0.25 0.5] [1 2 2 0]
}

func ExampleReduce() {
	rt, err := runtime.Start(runtime.Options{Devices: []string{"host:0"}})
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	ctx, free := tensor.Scope(context.Background())
	defer free()

	a, err := tensor.From(ctx, []float64{3, 4, 6, 8}, 2, 2)
	if err != nil {
		panic(err)
	}
	for _, to := range []tensor.Reduction{tensor.ReduceSum, tensor.ReduceNorm, tensor.ReduceMax} {
		x, err := tensor.Reduce(ctx, a, 1, to)
		if err != nil {
			panic(err)
		}
		fmt.Println(tensor.Data[float64](ctx, x))
	}
	// Output:
	// [7 14] <nil>
	// [5 10] <nil>
	// [4 8] <nil>
}
