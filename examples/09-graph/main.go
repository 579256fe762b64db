// Example 09 records a computation once and replays it.
//
// It is the power iteration: x becomes A·x / 4, again and again, until it is the
// eigenvector of the largest eigenvalue. A step is recorded as a graph, which a GPU
// does with one launch; where there are no graphs Replay runs the step, and Reason
// says why.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

func main() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly})
	if err != nil {
		log.Fatal(err)
	}
	ctx, free := tensor.Scope(context.Background())
	if err := errors.Join(iterate(ctx), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func iterate(ctx context.Context) (err error) {
	a, err := tensor.From(ctx, []float64{3, 1, 1, 3}, 2, 2) // its eigenvalues are 4 and 2
	if err != nil {
		return err
	}
	x, err := tensor.From(ctx, []float64{1, 0}, 2, 1)
	if err != nil {
		return err
	}
	step, err := flow.Record(ctx, func(ctx context.Context, in []*flow.Value) ([]*flow.Value, error) {
		next := flow.Scale(ctx, 0.25, flow.MatMul(ctx, in[0], in[1]))
		return []*flow.Value{flow.CopyInto(ctx, in[1], next)}, nil // in place: the next replay goes on from it
	}, a, x)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, step.Close()) }()
	if why := step.Reason(); why != nil {
		fmt.Println("each step is run:", why)
	}
	for range 40 {
		if _, err := step.Replay(ctx); err != nil {
			return err
		}
	}
	text, err := tensor.Format(ctx, x)
	fmt.Println(text)
	return err
}
