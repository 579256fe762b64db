// Example 05 asks for a whole computation before any of it is done.
//
// It is an update of two sites, as DMRG does them: the ground state of four spins
// of the Heisenberg chain, H = Σ S·S' over neighbours, is found for the two in the
// middle, with one spin as the environment on each side, and then cut in two by a
// singular value decomposition of which the two largest values are kept.
//
// Operations of package flow take values that are written in the future and answer
// such values. They never wait and never fail: what goes wrong comes out of Get,
// with the line that asked for it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

func main() {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, free := tensor.Scope(context.Background())
	if err := errors.Join(update(ctx), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func update(ctx context.Context) error {
	// S·S' of two spins, as a tensor of two new and two old indices.
	bond, err := tensor.From(ctx, []float64{
		0.25, 0, 0, 0,
		0, -0.25, 0.5, 0,
		0, 0.5, -0.25, 0,
		0, 0, 0, 0.25,
	}, 2, 2, 2, 2)
	if err != nil {
		return err
	}
	start := make([]float64, 16)
	start[0b0101] = 1 // up and down in turn
	state, err := tensor.From(ctx, start, 2, 2, 2, 2)
	if err != nil {
		return err
	}

	h, theta := async.Of(bond), async.Of(state)
	for range 120 { // theta = (1 - H/2)·theta brings out the lowest state
		theta = flow.Add(ctx, theta, flow.Scale(ctx, -0.5, energy(ctx, h, theta)))
	}
	above := flow.Einsum(ctx, "ijkl,ijkl->", theta, energy(ctx, h, theta))
	norm := flow.Einsum(ctx, "ijkl,ijkl->", theta, theta)
	u, s, vh := flow.SVD(ctx, flow.Reshape(ctx, theta, 4, 4), tensor.Rank(2))
	cut := flow.MatMul(ctx, flow.Einsum(ctx, "ij,j->ij", u, s), vh)
	overlap := flow.Einsum(ctx, "ij,ij->", cut, flow.Reshape(ctx, theta, 4, 4))

	// All of that was asked for; the first wait is here.
	numbers := make([]float64, 3)
	for k, v := range []*flow.Value{above, norm, overlap} {
		a, err := v.Get(ctx)
		if err != nil {
			return err
		}
		if numbers[k], err = tensor.Item[float64](ctx, a); err != nil {
			return err
		}
	}
	fmt.Printf("energy          %.10f\n", numbers[0]/numbers[1])
	fmt.Printf("exact           %.10f\n", -(3+2*math.Sqrt(3))/4)
	fmt.Printf("weight that two singular values keep  %.6f\n", numbers[2]/numbers[1])

	// A mistake is found where the value is asked for, and says where it was made.
	_, err = flow.MatMul(ctx, cut, flow.MatMul(ctx, theta, s)).Get(ctx)
	var poison *async.Poison
	fmt.Printf("poisoned by %s: %v\n", name(err, &poison), poison.Unwrap())
	return nil
}

// energy is H·theta.
func energy(ctx context.Context, h, theta *flow.Value) *flow.Value {
	left := flow.Einsum(ctx, "abij,ijkl->abkl", h, theta)
	middle := flow.Einsum(ctx, "bcjk,ijkl->ibcl", h, theta)
	right := flow.Einsum(ctx, "cdkl,ijkl->ijcd", h, theta)
	return flow.Add(ctx, flow.Add(ctx, left, middle), right)
}

func name(err error, p **async.Poison) string {
	if errors.As(err, p) {
		return (*p).Op
	}
	return "nothing"
}
