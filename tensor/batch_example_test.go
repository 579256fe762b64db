package tensor_test

import (
	"fmt"
	"log"

	"github.com/weirgo/weir/tensor"
)

// The sectors of a block-sparse product have shapes of their own; all of them are
// one operation.
func ExampleGemmBatchInto() {
	ctx, end := begin()
	defer end()
	var a, b, c []*tensor.Array
	for sector := 1; sector <= 3; sector++ {
		left, err := tensor.Full(ctx, 1, tensor.Float64, sector, 2)
		if err != nil {
			log.Fatal(err)
		}
		right, err := tensor.Full(ctx, complex(float64(sector), 0), tensor.Float64, 2, 2)
		if err != nil {
			log.Fatal(err)
		}
		result, err := tensor.Empty(ctx, tensor.Float64, sector, 2)
		if err != nil {
			log.Fatal(err)
		}
		a, b, c = append(a, left), append(b, right), append(c, result)
	}
	if err := tensor.GemmBatchInto(ctx, 1, a, b, 0, c); err != nil {
		log.Fatal(err)
	}
	for _, sector := range c {
		values, err := tensor.Data[float64](ctx, sector)
		fmt.Println(sector.Shape(), values, err)
	}

	// What one member reads, no other may write.
	fmt.Println(tensor.GemmBatchInto(ctx, 1, a[:2], b[:2], 0, []*tensor.Array{c[0], b[0]}))
	// Output:
	// [1 2] [2 2] <nil>
	// [2 2] [4 4 4 4] <nil>
	// [3 2] [6 6 6 6 6 6] <nil>
	// tensor.GemmBatchInto: c of member 1 overlaps b of member 0 in memory; expected results that no other member reads or writes
}

// On devices with units for narrow numbers a product may trade bits for speed.
func ExamplePrecision() {
	ctx, end := begin()
	defer end()
	a, err := tensor.From(ctx, []float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	c, err := tensor.MatMul(ctx, a, a, tensor.FastTF32) // small whole numbers lose nothing
	if err != nil {
		log.Fatal(err)
	}
	values, err := tensor.Data[float32](ctx, c)
	fmt.Println(values, err)
	// Output: [7 10 15 22] <nil>
}
