// Example 01 multiplies two matrices.
//
// It shows the shape of every program: start the runtime once, make arrays from
// Go slices, submit operations, and read a result. MatMul returns when its work
// is submitted; Data is what waits for it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

func main() {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	// Close says what outlived the runtime, so its error matters too.
	if err := errors.Join(multiply(context.Background()), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func multiply(ctx context.Context) error {
	a, err := tensor.From(ctx, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		return err
	}
	defer a.Free()
	c, err := tensor.MatMul(ctx, a, a.T()) // a.T() is a view: nothing is copied
	if err != nil {
		return err
	}
	defer c.Free()
	fmt.Println("c =", c) // printing waits, as Data does

	elements, err := tensor.Data[float32](ctx, c)
	if err != nil {
		return err
	}
	fmt.Println("its elements are", elements)

	// A wrong shape is an error that says so, never a panic.
	_, err = tensor.MatMul(ctx, a, a)
	fmt.Println("error:", err)
	return nil
}
