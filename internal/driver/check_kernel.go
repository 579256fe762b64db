package driver

import (
	"math"
	"slices"
)

// CheckKernel says how many operands k has, with the result, and whether there
// is nothing to do; or answers the ErrArgument that says what is wrong with it,
// of call op on the named device.
func CheckKernel(op, device string, k *Kernel) (operands int, empty bool, err error) {
	switch k.Op {
	case KernelFill:
		operands = 1
	case KernelCopy, KernelSum, KernelAxpby:
		operands = 2
	case KernelMul:
		operands = 3
	default:
		return 0, false, argument(op, device, "kernel %d; expected a known one", uint8(k.Op))
	}
	for i, v := range [...]*View{&k.Out, &k.A, &k.B} {
		if i == operands {
			break
		}
		if err := checkOperand(op, device, k, i, v); err != nil {
			return 0, false, err
		}
	}
	return operands, slices.Contains(k.Out.Shape, 0), nil
}

// checkOperand gives messages copies of slices: the caller's stay off the heap.
func checkOperand(op, device string, k *Kernel, i int, v *View) error {
	if !v.DType.Valid() || len(v.Shape) != len(v.Strides) || slices.ContainsFunc(v.Shape, negative) {
		return argument(op, device, "%v: operand %d has dtype %v, shape %v, strides %v; expected one stride for each extent of 0 or more",
			k.Op, i, v.DType, slices.Clone(v.Shape), slices.Clone(v.Strides))
	}
	if k.Op != KernelCopy && v.DType != k.Out.DType {
		return argument(op, device, "%v: operand %d is %v and the result %v; expected one dtype", k.Op, i, v.DType, k.Out.DType)
	}
	same := slices.Equal(v.Shape, k.Out.Shape)
	if k.Op == KernelSum {
		same = len(v.Shape) >= len(k.Out.Shape) && slices.Equal(v.Shape[:len(k.Out.Shape)], k.Out.Shape)
	}
	if !same {
		return argument(op, device, "%v: operand %d has shape %v; expected that of the result, %v",
			k.Op, i, slices.Clone(v.Shape), slices.Clone(k.Out.Shape))
	}
	if !v.Ptr.Valid() && !slices.Contains(v.Shape, 0) {
		return argument(op, device, "%v: operand %d is at %#x; expected an address", k.Op, i, v.Ptr)
	}
	if !v.reachable() {
		return argument(op, device, "%v: operand %d has shape %v and strides %v; expected to reach less than 2^62 bytes",
			k.Op, i, slices.Clone(v.Shape), slices.Clone(v.Strides))
	}
	return nil
}

func negative(n int64) bool { return n < 0 }

// reachable says whether the elements lie within reach of the address.
func (v *View) reachable() bool {
	reach, count := 0.0, 1.0
	for i, n := range v.Shape {
		reach += math.Abs(float64(n) * float64(v.Strides[i]))
		count *= max(float64(n), 1)
	}
	return max(reach, count)*float64(v.DType.Size()) < mostBytes
}
