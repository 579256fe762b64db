//go:build cuda

package cuda

// #include <stdlib.h>
// #include "driver.h"
// #cgo noescape weir_launch
// #cgo nocallback weir_launch
// #cgo noescape weir_module_load
// #cgo noescape weir_module_function
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/x448/float16"

	"github.com/weirgo/weir/csrc/kernels"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// functions are the kernels of a loaded module. What a type or size has no
// kernel for is 0.
type functions struct {
	module         C.uintptr_t
	copy, fill     [17]C.uintptr_t // by element size
	convert        C.uintptr_t
	mul, sum, axpy [8]C.uintptr_t // by dtype
	product        [8]C.uintptr_t
}

// load loads all kernels: a launch that loaded its own would wait for the device.
func (f *functions) load(op string, c *context) error {
	if err := c.device.check(op, C.weir_module_load(c.handle, unsafe.Pointer(&kernels.Fatbin[0]), &f.module)); err != nil {
		return err
	}
	err := f.find(op, c)
	if err != nil {
		f.unload(c)
	}
	return err
}

func (f *functions) unload(c *context) { C.weir_module_unload(c.handle, f.module) }

func (f *functions) find(op string, c *context) error {
	var failed error
	find := func(to *C.uintptr_t, format string, args ...any) {
		name := C.CString(fmt.Sprintf(format, args...))
		defer C.free(unsafe.Pointer(name))
		if err := c.device.check(op, C.weir_module_function(c.handle, f.module, name, to)); failed == nil {
			failed = err
		}
	}
	for _, size := range []int{2, 4, 8, 16} {
		find(&f.copy[size], "weir_copy_%d", size)
		find(&f.fill[size], "weir_fill_%d", size)
	}
	find(&f.convert, "weir_convert")
	for _, t := range dtype.All() {
		find(&f.mul[t], "weir_mul_%v", t)
		find(&f.sum[t], "weir_sum_%v", t)
		find(&f.axpy[t], "weir_axpby_%v", t)
		if t.IsInteger() {
			find(&f.product[t], "weir_product_%v", t)
		}
	}
	return failed
}

func (s *stream) Launch(k *driver.Kernel) error {
	const op = "Stream.Launch"
	operands, empty, err := driver.CheckKernel(op, s.device.name, k)
	if err != nil {
		return err
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if empty {
		return nil
	}
	return s.launch(op, k, operands)
}

// launch submits a kernel that has been checked, on a stream that was entered.
func (s *stream) launch(op string, k *driver.Kernel, operands int) error {
	f := &s.context.kernels
	var v kernels.Views
	if !views(k, operands, &v) {
		return s.device.unsupported(op, fmt.Sprintf("%v: the operands have more than %d axes that cannot be merged", k.Op, kernels.MaxAxes))
	}
	v.Alpha, v.Beta = scalar(k.Out.DType, k.Alpha), scalar(k.Out.DType, k.Beta)
	v.Conj = [2]int32{flag(k.ConjA), flag(k.ConjB)}
	t, perBlock := k.Out.DType, int64(kernels.Block)
	var function C.uintptr_t
	switch k.Op {
	case driver.KernelCopy:
		v.From, v.To = int32(k.A.DType), int32(t)
		switch {
		case k.A.DType != t || k.ConjA && t.IsComplex():
			function = f.convert
		case even(&v, 2, t.Size()):
			return s.device.check(op, C.weir_copy(s.context.handle, s.handle, C.uint64_t(k.Out.Ptr), C.uint64_t(k.A.Ptr), C.size_t(v.Count*t.Size())))
		default:
			function = f.copy[t.Size()]
		}
	case driver.KernelMul:
		function = f.mul[t]
	case driver.KernelSum:
		function = f.sum[t]
		v.Lanes = s.device.lanes(&v)
		perBlock /= int64(v.Lanes)
	case driver.KernelFill:
		function = f.fill[t.Size()]
		v.Value = element(t, k.Alpha)
	case driver.KernelAxpby:
		function = f.axpy[t]
	}
	return s.run(op, function, unsafe.Pointer(&v), v.Count, perBlock)
}

// run launches blocks enough for count elements, and no more than keep the
// device busy; kernels stride over the rest.
func (s *stream) run(op string, function C.uintptr_t, parameter unsafe.Pointer, count, perBlock int64) error {
	const waves = 16 // blocks for each multiprocessor: twice what it runs at a time
	blocks := min((count+perBlock-1)/perBlock, int64(s.device.caps.Multiprocessors)*waves)
	return s.device.check(op, C.weir_launch(s.context.handle, s.handle, function, C.uint(blocks), kernels.Block, parameter))
}

// lanes is how many threads add up one element of a sum. Where there are sums
// enough for all threads and neighbouring ones read neighbouring elements, one;
// else a warp or a block, by the number of terms.
func (d *device) lanes(v *kernels.Views) int32 {
	const few, many = 16, 1024
	if v.InnerCount <= few {
		return 1
	}
	if v.Outer > 0 && v.Inner > 0 && v.Count >= int64(d.caps.Multiprocessors)*kernels.Block {
		if magnitude(v.Step[1][v.Outer-1]) < magnitude(v.Step[1][v.Outer+v.Inner-1]) {
			return 1
		}
	}
	if v.InnerCount <= many {
		return 32
	}
	return kernels.Block
}

// scalar is z as kernels take it; for int32 it is reduced to the type, as products
// do.
func scalar(t dtype.DType, z complex128) [2]float64 {
	if t == dtype.Int32 {
		return [2]float64{float64(int32(int64(real(z))))}
	}
	return [2]float64{real(z), imag(z)}
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// element is z as an element of t lies in memory, on the little-endian machines
// that CUDA has.
func element(t dtype.DType, z complex128) [2]uint64 {
	re, im := real(z), imag(z)
	switch t {
	case dtype.Float32:
		return [2]uint64{uint64(math.Float32bits(float32(re)))}
	case dtype.Float64:
		return [2]uint64{math.Float64bits(re)}
	case dtype.Int32:
		return [2]uint64{uint64(uint32(int64(re)))}
	case dtype.Int64:
		return [2]uint64{uint64(int64(re))}
	case dtype.Complex64:
		return [2]uint64{uint64(math.Float32bits(float32(re))) | uint64(math.Float32bits(float32(im)))<<32}
	case dtype.Complex128:
		return [2]uint64{math.Float64bits(re), math.Float64bits(im)}
	case dtype.Float16:
		return [2]uint64{uint64(float16.Fromfloat32(float32(re)))}
	}
	return [2]uint64{uint64(dtype.ToBF16(float32(re)))}
}
