//go:build cuda

package cuda

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/csrc/kernels"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// TestPlansVisitJustTheElementsOfTheirViews compares the addresses that a kernel
// goes through with those that the views name.
func TestPlansVisitJustTheElementsOfTheirViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]driver.KernelOp{driver.KernelCopy, driver.KernelMul, driver.KernelSum, driver.KernelFill}).Draw(t, "op")
		rank := rapid.IntRange(0, 6).Draw(t, "rank")
		shape := rapid.SliceOfN(rapid.Int64Range(1, 4), rank, rank).Draw(t, "shape")
		view := func(name string, shape []int64) driver.View {
			v := driver.View{Ptr: 1 << 20, DType: dtype.Float32, Shape: shape, Strides: make([]int64, len(shape))}
			step := int64(1)
			for _, i := range rapid.Permutation(indices(len(shape))).Draw(t, name+" order") {
				v.Strides[i] = step * rapid.SampledFrom([]int64{1, 1, 1, -1}).Draw(t, name+" sign")
				step *= shape[i] + rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, name+" gap")
			}
			return v
		}
		k := driver.Kernel{Op: op, Out: view("out", shape), A: view("a", shape), B: view("b", shape)}
		outer, operands := shape, map[driver.KernelOp]int{driver.KernelFill: 1, driver.KernelMul: 3}[op]
		if operands == 0 {
			operands = 2
		}
		if op == driver.KernelSum {
			outer = shape[:rapid.IntRange(0, rank).Draw(t, "kept")]
			k.Out = view("sum", outer)
		}
		var want []string
		for i := range product(outer) {
			index := split(i, outer)
			at := [3]int64{addressOf(k.Out, index)}
			switch op {
			case driver.KernelSum:
				for j := range product(shape[len(outer):]) {
					at[1] = addressOf(k.A, append(slices.Clone(index), split(j, shape[len(outer):])...))
					want = append(want, fmt.Sprint(at))
				}
				continue
			case driver.KernelCopy:
				at[1] = addressOf(k.A, index)
			case driver.KernelMul:
				at[1], at[2] = addressOf(k.A, index), addressOf(k.B, index)
			}
			want = append(want, fmt.Sprint(at))
		}
		var v kernels.Views
		if !views(&k, operands, &v) {
			t.Fatal("no room for six axes")
		}
		var got []string
		for i := range v.Count {
			for j := range v.InnerCount {
				at := [3]int64{int64(v.Base[0]), int64(v.Base[1]), int64(v.Base[2])}
				walk(&v, 0, int(v.Outer), i, &at)
				walk(&v, int(v.Outer), int(v.Outer+v.Inner), j, &at)
				for o := operands; o < 3; o++ {
					at[o] = 0
				}
				got = append(got, fmt.Sprint(at))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%v of %v: the plan visits %v; expected %v", op, k, got, want)
		}
	})
}

// walk is what the kernels do with an element's number, by the reciprocals.
func walk(v *kernels.Views, begin, end int, i int64, at *[3]int64) {
	for k := end - 1; k >= begin; k-- {
		high, _ := bits.Mul32(uint32(i), v.Magic[k])
		quotient := int64((high + uint32(i)) >> v.Shift[k])
		for o := range at {
			at[o] += (i - quotient*v.Extent[k]) * v.Step[o][k]
		}
		i = quotient
	}
}

func TestContiguousViewsBecomeOneAxis(t *testing.T) {
	k := driver.Kernel{Op: driver.KernelMul}
	for _, v := range []*driver.View{&k.Out, &k.A, &k.B} {
		*v = driver.View{Ptr: 1 << 20, DType: dtype.Float64, Shape: []int64{3, 1, 4, 5}, Strides: []int64{1, 77, 15, 3}}
	}
	var v kernels.Views
	if !views(&k, 3, &v) || v.Outer != 1 || v.Extent[0] != 60 || v.Step[2][0] != 8 || !even(&v, 3, 8) {
		t.Errorf("the plan has %d axes, %v", v.Outer, v.Extent[:3])
	}
}

func TestAPlanWithTooManyAxesIsRefused(t *testing.T) {
	const rank = kernels.MaxAxes + 1
	v := driver.View{Ptr: 1 << 20, DType: dtype.Float16, Shape: slices.Repeat([]int64{2}, rank), Strides: make([]int64, rank)}
	for i := range v.Strides {
		v.Strides[i] = int64(2)<<i + 1 // none is twice the next
	}
	if views(&driver.Kernel{Op: driver.KernelFill, Out: v}, 1, new(kernels.Views)) {
		t.Errorf("%d axes were taken", rank)
	}
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, x := range shape {
		n *= x
	}
	return n
}

// split is index number i of a shape.
func split(i int64, shape []int64) []int64 {
	index := make([]int64, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		index[k] = i % shape[k]
		i /= shape[k]
	}
	return index
}

func addressOf(v driver.View, index []int64) int64 {
	at := int64(v.Ptr)
	for i, x := range index {
		at += x * v.Strides[i] * v.DType.Size()
	}
	return at
}
