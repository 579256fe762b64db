package grad_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
	"github.com/weirgo/weir/tensor/grad"
)

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

func from[T tensor.Element](ctx context.Context, data []T, shape ...int) *flow.Value {
	a, err := tensor.From(ctx, data, shape...)
	if err != nil {
		log.Fatal(err)
	}
	return async.Of(a)
}

// print waits for a value.
func print(ctx context.Context, v *flow.Value) {
	a, err := v.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a)
}

// A linear model, fitted to y = 2·x0 - x1 + 0.5 by gradient descent. Nothing waits
// until the end.
func Example() {
	ctx, end := begin()
	defer end()
	x := grad.Leaf(from(ctx, []float64{0, 0, 1, 0, 0, 1, 1, 1, 2, 1}, 5, 2))
	y := grad.Leaf(from(ctx, []float64{0.5, 2.5, -0.5, 1.5, 3.5}))
	weights, bias := from(ctx, []float64{0, 0}), from(ctx, []float64{0})

	for range 500 {
		w, b := grad.Leaf(weights), grad.Leaf(bias)
		model := grad.Add(ctx, grad.MatMul(ctx, x, w), b)
		r := grad.Add(ctx, model, grad.Scale(ctx, -1, y))
		loss := grad.Einsum(ctx, "i,i->", r, r)
		g := grad.Gradients(ctx, loss, w, b)
		flow.AddInto(ctx, -0.05, g[0].Value(), 1, weights)
		flow.AddInto(ctx, -0.05, g[1].Value(), 1, bias)
	}

	for _, v := range []*flow.Value{weights, bias} {
		a, err := v.Get(ctx)
		if err != nil {
			log.Fatal(err)
		}
		data, err := tensor.Data[float64](ctx, a)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.3f\n", data)
	}
	// Output:
	// [2.000 -1.000]
	// [0.500]
}

func ExampleGradients() {
	ctx, end := begin()
	defer end()
	a := grad.Leaf(from(ctx, []float64{1, 2, 3, 4}, 2, 2))
	x := grad.Leaf(from(ctx, []float64{1, -1}))
	form := grad.Einsum(ctx, "i,ij,j->", x, a, x)
	g := grad.Gradients(ctx, form, a, x)
	print(ctx, g[0].Value())
	print(ctx, g[1].Value())
	// Output:
	// float64 2×2 on host:0
	// [[ 1 -1]
	//  [-1  1]]
	// float64 2 on host:0
	// [-3 -3]
}

// A gradient can be differentiated again: here along a direction, which is the
// Hessian times a vector.
func ExampleGradients_twice() {
	ctx, end := begin()
	defer end()
	x := grad.Leaf(from(ctx, []float64{1, 2, 3}))
	direction := grad.Leaf(from(ctx, []float64{1, 0, -1}))
	cubes := grad.Einsum(ctx, "i,i,i->", x, x, x)
	g := grad.Gradients(ctx, cubes, x)[0]
	along := grad.Einsum(ctx, "i,i->", g, direction)
	print(ctx, grad.Gradients(ctx, along, x)[0].Value())
	// Output:
	// float64 3 on host:0
	// [  6   0 -18]
}

func ExampleVJP() {
	ctx, end := begin()
	defer end()
	z := grad.Leaf(from(ctx, []complex64{1, 2i}))
	y := grad.Scale(ctx, 1i, z)
	cotangent := grad.Leaf(from(ctx, []complex64{1, 1}))
	print(ctx, grad.VJP(ctx, y, cotangent, z)[0].Value())
	// Output:
	// complex64 2 on host:0
	// [0-1i 0-1i]
}
