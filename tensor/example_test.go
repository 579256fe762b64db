package tensor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// begin starts a runtime for an example and answers how to end it. What arrays
// print names their device.
func begin() (ctx context.Context, end func()) {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	ctx, free := tensor.Scope(context.Background())
	return ctx, func() {
		if err := free(); err != nil {
			log.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

func Example() {
	ctx, end := begin()
	defer end()
	a, err := tensor.From(ctx, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	c, err := tensor.MatMul(ctx, a, a.T()) // returns when submitted
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c)
	// Output:
	// float32 2×2 on host:0
	// [[14 32]
	//  [32 77]]
}

func ExampleEinsum() {
	ctx, end := begin()
	defer end()
	a, err := tensor.From(ctx, []float64{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	trace, err := tensor.Einsum(ctx, "ij,jk,ki->", a, a, a)
	if err != nil {
		log.Fatal(err)
	}
	x, err := tensor.Item[float64](ctx, trace)
	fmt.Println(x, err)
	// Output: 155 <nil>
}

func ExampleGemmInto() {
	ctx, end := begin()
	defer end()
	a, err := tensor.From(ctx, []complex64{1i, 0, 0, 2}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	c, err := tensor.Full(ctx, 1, tensor.Complex64, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	if err := tensor.GemmInto(ctx, 1, a.H(), a, 10, c); err != nil { // c = aᴴ·a + 10·c
		log.Fatal(err)
	}
	fmt.Println(c)
	// Output:
	// complex64 2×2 on host:0
	// [[11+0i 10+0i]
	//  [10+0i 14+0i]]
}

func ExampleArray_Slice() {
	ctx, end := begin()
	defer end()
	a, err := tensor.From(ctx, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 3, 4)
	if err != nil {
		log.Fatal(err)
	}
	v, err := a.Slice(tensor.Reverse(), tensor.Steps(1, tensor.End, 2)) // shares a's memory
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v)
	// Output:
	// int32 3×2 on host:0
	// [[ 9 11]
	//  [ 5  7]
	//  [ 1  3]]
}
