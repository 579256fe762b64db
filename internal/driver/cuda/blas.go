//go:build cuda

package cuda

// #include "blas.h"
// #cgo noescape weir_blas_new
// #cgo nocallback weir_blas_move
// #cgo noescape weir_blas_gemm
// #cgo nocallback weir_blas_gemm
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/weirgo/weir/csrc/kernels"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// workspaceBytes is what NVIDIA recommends for cuBLAS: 32 MiB on Hopper and
// later, 4 MiB before.
func (d *device) workspaceBytes() int64 {
	if d.caps.ComputeMajor >= 9 {
		return 32 << 20
	}
	return 4 << 20
}

// blas is a cuBLAS handle with a workspace of its own, and with device memory for
// the addresses of groups. last is entered until the handle leaves it, so that it
// outlives the handle's move to another stream; blas.c says what for.
type blas struct {
	device    *device
	context   *context
	handle    *C.struct_weir_blas
	bytes     int64
	destroyed atomic.Bool

	last  *stream // of the last product
	bound bool    // the library has that stream

	at C.uint64_t // where addresses go
	groups
}

func (d *device) NewBLAS() (driver.BLAS, error) {
	const op = "Device.NewBLAS"
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	b := &blas{device: d, context: c, bytes: d.workspaceBytes() + addressBytes}
	result := C.weir_blas_new(c.handle, C.size_t(d.workspaceBytes()), addressBytes, &b.handle, &b.at)
	if err := d.checkLibrary(op, "cublas", c, result); err != nil {
		d.release()
		return nil, err
	}
	return b, nil
}

// Native is the cublasHandle_t, for foreign code while the handle lives. Foreign code
// that sets its stream takes the workspace from it, so Weir's products are not on it.
func (b *blas) Native() uintptr { return uintptr(C.weir_blas_native(b.handle)) }

func (b *blas) Gemm(st driver.Stream, g *driver.Gemm) error {
	const op = "BLAS.Gemm"
	s, err := b.device.ours(op, st)
	if err != nil {
		return err
	}
	if err := driver.CheckGemm(op, b.device.name, g); err != nil {
		return err
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if b.destroyed.Load() {
		return b.device.closed(op, "handle")
	}
	switch {
	case g.M == 0 || g.N == 0 || g.Batch == 0:
		return nil
	case g.K == 0:
		return s.scale(op, g)
	case g.DType.IsInteger():
		return s.integers(op, g)
	}
	return b.multiply(op, s, g)
}

// multiply submits a product that cuBLAS has, on a stream that was entered.
func (b *blas) multiply(op string, s *stream, g *driver.Gemm) error {
	if err := b.move(op, s); err != nil {
		return err
	}
	call := describe(g)
	return b.device.checkLibrary(op, "cublas", b.context, C.weir_blas_gemm(b.context.handle, b.handle, &call))
}

// move has the handle's products run on s.
func (b *blas) move(op string, s *stream) error {
	if b.last == s && b.bound {
		return nil
	}
	last := C.uintptr_t(0)
	if b.last != s {
		if !s.guard.enter() {
			return s.device.closed(op, "stream")
		}
		if b.last != nil {
			last = b.last.handle
		}
	}
	b.bound = false // also if the library takes only a part of it
	err := b.device.checkLibrary(op, "cublas", b.context, C.weir_blas_move(b.context.handle, b.handle, s.handle, last))
	b.bound = err == nil
	if b.last == s {
		return err
	}
	if err != nil {
		s.leave()
		return err
	}
	if b.last != nil {
		b.last.leave()
	}
	b.last = s
	return nil
}

// describe is g as C reads it.
func describe(g *driver.Gemm) C.struct_weir_gemm {
	opA, opB := g.OpA, g.OpB
	if !g.DType.IsComplex() {
		opA, opB = min(opA, driver.Trans), min(opB, driver.Trans)
	}
	return C.struct_weir_gemm{
		dtype: C.int32_t(g.DType), compute: C.int32_t(g.Compute), op_a: C.int32_t(opA), op_b: C.int32_t(opB),
		m: C.int64_t(g.M), n: C.int64_t(g.N), k: C.int64_t(g.K), batch: C.int64_t(g.Batch),
		alpha: [2]C.double{C.double(real(g.Alpha)), C.double(imag(g.Alpha))},
		beta:  [2]C.double{C.double(real(g.Beta)), C.double(imag(g.Beta))},
		a:     C.uint64_t(g.A), b: C.uint64_t(g.B), c: C.uint64_t(g.C),
		lda: C.int64_t(g.LDA), ldb: C.int64_t(g.LDB), ldc: C.int64_t(g.LDC),
		stride_a: C.int64_t(g.StrideA), stride_b: C.int64_t(g.StrideB), stride_c: C.int64_t(g.StrideC),
	}
}

// scale is a product without terms: C = Beta·C.
func (s *stream) scale(op string, g *driver.Gemm) error {
	shape, strides := [3]int64{g.Batch, g.N, g.M}, [3]int64{g.StrideC, g.LDC, 1}
	c := driver.View{Ptr: g.C, DType: g.DType, Shape: shape[:], Strides: strides[:]}
	if g.Beta == 0 {
		return s.launch(op, &driver.Kernel{Op: driver.KernelFill, Out: c}, 1)
	}
	return s.launch(op, &driver.Kernel{Op: driver.KernelAxpby, Out: c, A: c, Alpha: g.Beta}, 2)
}

// integers is a product that cuBLAS has not.
func (s *stream) integers(op string, g *driver.Gemm) error {
	p := kernels.Product{
		A: uint64(g.A), B: uint64(g.B), C: uint64(g.C),
		M: g.M, N: g.N, K: g.K, Batch: g.Batch,
		LDA: g.LDA, LDB: g.LDB, LDC: g.LDC,
		StrideA: g.StrideA, StrideB: g.StrideB, StrideC: g.StrideC,
		Alpha: integer(g.DType, real(g.Alpha)), Beta: integer(g.DType, real(g.Beta)),
		TransA: flag(g.OpA != driver.NoTrans), TransB: flag(g.OpB != driver.NoTrans),
	}
	return s.run(op, s.context.kernels.product[g.DType], unsafe.Pointer(&p), g.M*g.N*g.Batch, kernels.Block)
}

func integer(t dtype.DType, x float64) int64 {
	if t == dtype.Int32 {
		return int64(int32(int64(x)))
	}
	return int64(x)
}

func (b *blas) WorkspaceBytes() int64 {
	if b.destroyed.Load() {
		return 0
	}
	return b.bytes
}

func (b *blas) Destroy() error {
	const op = "BLAS.Destroy"
	if b.destroyed.Swap(true) {
		return b.device.alive(op)
	}
	defer b.device.release()
	last := C.uintptr_t(0)
	if b.last != nil {
		defer b.last.leave()
		last = b.last.handle
	}
	if err := b.device.alive(op); err != nil {
		C.weir_blas_forget(b.handle)
		return err
	}
	return b.device.check(op, C.weir_blas_destroy(b.context.handle, b.handle, last))
}
