package hostblas

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// fortranCall holds the arguments of one call of xgemm_, all of which are
// passed by address, and the addresses. It is made once and lives on the Go
// heap, whose objects do not move, so a call neither allocates nor converts.
type fortranCall struct {
	opA, opB      byte
	m, n, k       int64
	lda, ldb, ldc int64
	alpha, beta   [2]float64 // room for the largest type
	args          [15]uintptr
}

// The places of what changes from call to call among the arguments: xgemm_(
// transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) and the hidden
// lengths of the two strings, which compilers pass last.
const (
	argA = 6
	argB = 8
	argC = 11
)

func newFortranCall() *fortranCall {
	f := new(fortranCall)
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	f.args = [15]uintptr{
		at(unsafe.Pointer(&f.opA)), at(unsafe.Pointer(&f.opB)),
		at(unsafe.Pointer(&f.m)), at(unsafe.Pointer(&f.n)), at(unsafe.Pointer(&f.k)),
		at(unsafe.Pointer(&f.alpha)), 0, at(unsafe.Pointer(&f.lda)), 0, at(unsafe.Pointer(&f.ldb)),
		at(unsafe.Pointer(&f.beta)), 0, at(unsafe.Pointer(&f.ldc)),
		1, 1,
	}
	return f
}

// multiply is one call of the library.
func (e *external) multiply(f *fortranCall, p *product) {
	f.opA, f.opB = opLetters[p.opA], opLetters[p.opB]
	f.m, f.n, f.k = p.m, p.n, p.k
	f.lda, f.ldb, f.ldc = p.lda, p.ldb, p.ldc
	putScalar(&f.alpha, p.dt, p.alpha)
	putScalar(&f.beta, p.dt, p.beta)
	f.args[argA], f.args[argB], f.args[argC] = p.a, p.b, p.c
	invoke(e.gemm[routineOf(p.dt)], f.args[:])
	runtime.KeepAlive(f)
}

var opLetters = [...]byte{driver.NoTrans: 'N', driver.Trans: 'T', driver.ConjTrans: 'C'}

// inBLAS says whether BLAS has routines for a type.
func inBLAS(dt dtype.DType) bool {
	return dt == dtype.Float32 || dt == dtype.Float64 || dt.IsComplex()
}

// routineOf is the place of a type's routine in symbols.gemm.
func routineOf(dt dtype.DType) int {
	switch dt {
	case dtype.Float32:
		return 0
	case dtype.Float64:
		return 1
	case dtype.Complex64:
		return 2
	}
	return 3
}

func putScalar(at *[2]float64, dt dtype.DType, x complex128) {
	switch dt {
	case dtype.Float32:
		*(*float32)(unsafe.Pointer(at)) = float32(real(x))
	case dtype.Float64:
		at[0] = real(x)
	case dtype.Complex64:
		*(*complex64)(unsafe.Pointer(at)) = complex64(x)
	default:
		*(*complex128)(unsafe.Pointer(at)) = x
	}
}

// check multiplies small matrices with each routine, so that a library that is
// not what its symbols promise is found out here:
// (1 2; 3 4)·(5 6; 7 8) = (19 22; 43 50).
func (e *external) check() error {
	for _, dt := range []dtype.DType{dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128} {
		var right bool
		switch dt {
		case dtype.Float32:
			right = checkRoutine[float32](e, dt)
		case dtype.Float64:
			right = checkRoutine[float64](e, dt)
		case dtype.Complex64:
			right = checkRoutine[complex64](e, dt)
		case dtype.Complex128:
			right = checkRoutine[complex128](e, dt)
		}
		if !right {
			return fmt.Errorf("multiplies %s matrices wrongly", dt)
		}
	}
	return nil
}

func checkRoutine[T float32 | float64 | complex64 | complex128](e *external, dt dtype.DType) bool {
	m := &struct{ a, b, c [4]T }{a: [4]T{1, 3, 2, 4}, b: [4]T{5, 6, 7, 8}}
	e.multiply(newFortranCall(), &product{
		dt: dt, opB: driver.Trans, m: 2, n: 2, k: 2, alpha: 1,
		a: uintptr(unsafe.Pointer(&m.a)), lda: 2,
		b: uintptr(unsafe.Pointer(&m.b)), ldb: 2,
		c: uintptr(unsafe.Pointer(&m.c)), ldc: 2,
	})
	runtime.KeepAlive(m)
	return m.c == [4]T{19, 43, 22, 50}
}
