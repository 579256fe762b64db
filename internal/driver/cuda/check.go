//go:build cuda

package cuda

import (
	"math"
	"slices"

	"github.com/weirgo/weir/internal/driver"
)

// checkKernel says what is wrong with a launch, how many operands it has, and
// whether it has nothing to do.
func (d *device) checkKernel(op string, k *driver.Kernel) (operands int, empty bool, err error) {
	switch k.Op {
	case driver.KernelFill:
		operands = 1
	case driver.KernelCopy, driver.KernelSum, driver.KernelAxpby:
		operands = 2
	case driver.KernelMul:
		operands = 3
	default:
		return 0, false, d.argument(op, "kernel %d; expected a known one", uint8(k.Op))
	}
	for i, v := range [...]*driver.View{&k.Out, &k.A, &k.B} {
		if i == operands {
			break
		}
		if !v.DType.Valid() || len(v.Shape) != len(v.Strides) || slices.ContainsFunc(v.Shape, negative) {
			return 0, false, d.argument(op, "%v: operand %d has dtype %v, shape %v, strides %v; expected one stride for each extent of 0 or more",
				k.Op, i, v.DType, slices.Clone(v.Shape), slices.Clone(v.Strides))
		}
		if k.Op != driver.KernelCopy && v.DType != k.Out.DType {
			return 0, false, d.argument(op, "%v: operand %d is %v and the result %v; expected one dtype", k.Op, i, v.DType, k.Out.DType)
		}
		same := slices.Equal(v.Shape, k.Out.Shape)
		if k.Op == driver.KernelSum {
			same = len(v.Shape) >= len(k.Out.Shape) && slices.Equal(v.Shape[:len(k.Out.Shape)], k.Out.Shape)
		}
		if !same {
			return 0, false, d.argument(op, "%v: operand %d has shape %v; expected that of the result, %v", k.Op, i, slices.Clone(v.Shape), slices.Clone(k.Out.Shape))
		}
		hollow := slices.Contains(v.Shape, 0)
		if !address(v.Ptr) && !hollow {
			return 0, false, d.argument(op, "%v: operand %d is at %#x; expected an address", k.Op, i, v.Ptr)
		}
		if !addressable(v) {
			return 0, false, d.argument(op, "%v: operand %d has shape %v and strides %v; expected to reach less than 2^62 bytes",
				k.Op, i, slices.Clone(v.Shape), slices.Clone(v.Strides))
		}
		empty = empty || i == 0 && hollow
	}
	return operands, empty, nil
}

func negative(n int64) bool { return n < 0 }

// addressable says whether a view's elements lie within reach of its address.
func addressable(v *driver.View) bool {
	reach, count := 0.0, 1.0
	for i, n := range v.Shape {
		reach += math.Abs(float64(n) * float64(v.Strides[i]))
		count *= max(float64(n), 1)
	}
	return max(reach, count)*float64(v.DType.Size()) < math.MaxInt64/2
}

// checkGemm says what is wrong with a product.
func (d *device) checkGemm(op string, g *driver.Gemm) error {
	if !g.DType.Valid() || g.OpA > driver.ConjTrans || g.OpB > driver.ConjTrans {
		return d.argument(op, "dtype %v, operations %d and %d; expected known ones", g.DType, g.OpA, g.OpB)
	}
	if g.M < 0 || g.N < 0 || g.K < 0 || g.Batch < 0 {
		return d.argument(op, "m, n, k, batch = %d, %d, %d, %d; expected 0 or more", g.M, g.N, g.K, g.Batch)
	}
	rowsA, colsA, rowsB, colsB := g.M, g.K, g.K, g.N
	if g.OpA != driver.NoTrans {
		rowsA, colsA = colsA, rowsA
	}
	if g.OpB != driver.NoTrans {
		rowsB, colsB = colsB, rowsB
	}
	for _, x := range [...]struct {
		name                   string
		rows, cols, ld, stride int64
		at                     driver.Ptr
	}{{"a", rowsA, colsA, g.LDA, g.StrideA, g.A}, {"b", rowsB, colsB, g.LDB, g.StrideB, g.B}, {"c", g.M, g.N, g.LDC, g.StrideC, g.C}} {
		if x.ld < max(1, x.rows) {
			return d.argument(op, "ld%s = %d; expected at least %d", x.name, x.ld, max(1, x.rows))
		}
		if g.M == 0 || g.N == 0 || g.Batch == 0 || x.rows == 0 || x.cols == 0 {
			continue
		}
		if !address(x.at) {
			return d.argument(op, "%s at %#x; expected an address", x.name, x.at)
		}
		reach := float64(x.cols)*float64(x.ld) + math.Abs(float64(g.Batch)*float64(x.stride))
		if reach*float64(g.DType.Size()) > math.MaxInt64/2 {
			return d.argument(op, "%s of %d×%d, ld %d, %d times at stride %d; expected less than 2^62 bytes", x.name, x.rows, x.cols, x.ld, g.Batch, x.stride)
		}
	}
	return nil
}
