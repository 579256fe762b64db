package tensor_test

import (
	"fmt"
	"log"

	"github.com/weirgo/weir/tensor"
)

func ExampleSVD() {
	ctx, end := begin()
	defer end()
	a, err := tensor.From(ctx, []float64{3, 0, 0, 0, 0, -4}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	u, s, vh, err := tensor.SVD(ctx, a, tensor.Rank(1)) // the nearest matrix of rank 1
	if err != nil {
		log.Fatal(err)
	}
	largest, err := tensor.Item[float64](ctx, s)
	if err != nil {
		log.Fatal(err)
	}
	nearest, err := tensor.Einsum(ctx, "ik,k,kj->ij", u, s, vh)
	if err != nil {
		log.Fatal(err)
	}
	values, err := tensor.Data[float64](ctx, nearest)
	fmt.Printf("%.3f\n%.3f %v\n", largest, values[5], err)
	// Output:
	// 4.000
	// -4.000 <nil>
}

func ExampleSingularValues() {
	ctx, end := begin()
	defer end()
	a, err := tensor.From(ctx, []complex64{0, 2i, 1, 0}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	s, err := tensor.SingularValues(ctx, a)
	if err != nil {
		log.Fatal(err)
	}
	values, err := tensor.Data[float32](ctx, s)
	fmt.Printf("%.3f %v\n", values, err)
	// Output: [2.000 1.000] <nil>
}
