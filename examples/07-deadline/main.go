// Example 07 gives up in time.
//
// A context's end ends the waits of the tasks and operations under it. What they
// were to write is poisoned, and so is what is computed from that; everything else
// goes on, and what was submitted to a device is never abandoned half way.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weirgo/weir"
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
	if err := errors.Join(serve(ctx), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context) error {
	weights, err := tensor.From(ctx, []float32{2, 0, 0, 2}, 2, 2)
	if err != nil {
		return err
	}
	w := async.Named("weights", weights)

	// Two requests. One waits for an input that somebody has said he will write, and
	// does not in time.
	input := async.New[*tensor.Array]("input")
	arrives := input.Write()
	deadline, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	late := answer(deadline, w, input)
	prompt := answer(ctx, w, w)

	_, err = late.Get(ctx)
	var poison *async.Poison
	if !errors.As(err, &poison) {
		return fmt.Errorf("the late request: %w; expected poison", err)
	}
	fmt.Println("late:", poison.Op, "was cancelled:", errors.Is(err, weir.ErrCancelled))
	fmt.Println("      by its deadline:", errors.Is(err, context.DeadlineExceeded))

	a, err := prompt.Get(ctx)
	if err != nil {
		return err
	}
	fmt.Println("prompt:", a)

	// The input that comes too late is no harm, and the same operation works now.
	if err := arrives.Set(weights); err != nil {
		return err
	}
	a, err = answer(ctx, w, input).Get(ctx)
	fmt.Println("again:", a)
	return err
}

// answer is what a request asks for: w·x·x.
func answer(ctx context.Context, w, x *flow.Value) *flow.Value {
	return flow.MatMul(ctx, flow.MatMul(ctx, w, x), x)
}
