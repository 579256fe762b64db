package driver

import (
	"testing"

	"github.com/weirgo/weir/dtype"
)

func TestWhatIsWrongWithAKernelIsNamed(t *testing.T) {
	view := func(shape ...int64) View {
		v := View{Ptr: 4096, DType: dtype.Float32, Shape: shape, Strides: make([]int64, len(shape))}
		for i := range v.Strides {
			v.Strides[i] = 1
		}
		return v
	}
	far := view(2)
	far.Strides[0] = 1 << 61
	other := view(2)
	other.DType = dtype.Int32
	nowhere := view(2)
	nowhere.Ptr = 0
	for want, k := range map[string]Kernel{
		"kernel 77; expected a known one": {Op: 77},
		"fill: operand 0 has dtype float32, shape [-1], strides [1]; expected one stride for each extent of 0 or more": {Op: KernelFill, Out: view(-1)},
		"mul: operand 2 is int32 and the result float32; expected one dtype":                                           {Op: KernelMul, Out: view(2), A: view(2), B: other},
		"copy: operand 1 has shape [3]; expected that of the result, [2]":                                              {Op: KernelCopy, Out: view(2), A: view(3)},
		"sum: operand 1 has shape [3 2]; expected that of the result, [2]":                                             {Op: KernelSum, Out: view(2), A: view(3, 2)},
		"axpby: operand 1 is at 0x0; expected an address":                                                              {Op: KernelAxpby, Out: view(2), A: nowhere},
		"copy: operand 1 has shape [2] and strides [2305843009213693952]; expected to reach less than 2^62 bytes":      {Op: KernelCopy, Out: view(2), A: far},
	} {
		_, _, err := CheckKernel("Stream.Launch", "host:0", &k)
		refusal(t, err, "Stream.Launch", want)
	}
	for _, c := range []struct {
		k        Kernel
		operands int
		empty    bool
	}{
		{Kernel{Op: KernelFill, Out: view(2)}, 1, false},
		{Kernel{Op: KernelCopy, Out: view(2), A: other}, 2, false},
		{Kernel{Op: KernelSum, Out: view(2), A: view(2, 0)}, 2, false},
		{Kernel{Op: KernelMul, Out: view(0), A: view(0), B: view(0)}, 3, true},
	} {
		operands, empty, err := CheckKernel("Stream.Launch", "host:0", &c.k)
		if operands != c.operands || empty != c.empty || err != nil {
			t.Errorf("%v of %v: %d operands, empty %v, %v; expected %d, %v", c.k.Op, c.k.Out.Shape, operands, empty, err, c.operands, c.empty)
		}
	}
}
