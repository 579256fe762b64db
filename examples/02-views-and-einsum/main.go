// Example 02 looks at parts of an array and contracts several.
//
// Beside what 01 has, it shows a scope, which frees all that is made under it
// and saves the many calls of Free; views, which copy nothing; and Einsum, which
// contracts any number of operands in an order that a plan explains.
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
	ctx, free := tensor.Scope(context.Background())
	if err := errors.Join(look(ctx), contract(ctx), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func look(ctx context.Context) error {
	m, err := tensor.From(ctx, []int64{11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34}, 3, 4)
	if err != nil {
		return err
	}
	corner, err := m.Slice(tensor.Span(1, tensor.End), tensor.Steps(0, tensor.End, 2))
	if err != nil {
		return err
	}
	fmt.Println("every second column of the last rows:", corner)
	upsideDown, err := m.Slice(tensor.Reverse())
	if err != nil {
		return err
	}
	fmt.Println("upside down:", upsideDown)
	return nil
}

func contract(ctx context.Context) error {
	v, err := tensor.From(ctx, []float64{1, 2, 3})
	if err != nil {
		return err
	}
	m, err := tensor.From(ctx, []float64{2, 1, 0, 1, 2, 1, 0, 1, 2}, 3, 3)
	if err != nil {
		return err
	}
	// vᵀ·M·M·v, from the left or from both ends, but never M·M first.
	const spec = "i,ij,jk,k->"
	plan, err := tensor.PlanEinsum(tensor.EinsumOptions{}, spec, v, m, m, v)
	if err != nil {
		return err
	}
	fmt.Print(plan)
	x, err := tensor.Einsum(ctx, spec, v, m, m, v)
	if err != nil {
		return err
	}
	value, err := tensor.Item[float64](ctx, x)
	fmt.Println("v·M·M·v =", value)
	return err
}
