package hostblas

import (
	"unsafe"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// product is one matrix product in memory: a tile of a member, or a block of a
// tile. alpha and beta are values of dt, and k = 0 where A and B are not read.
type product struct {
	dt            dtype.DType
	opA, opB      driver.Op
	m, n, k       int64
	alpha, beta   complex128
	a, b, c       uintptr
	lda, ldb, ldc int64
}

// block is the part of p that starts at (row, column) of C and at inner index l,
// with beta as it stands.
func (p product) block(row, column, l int64, e extent) product {
	size := p.dt.Size()
	if p.opA == driver.NoTrans {
		p.a = offset(p.a, row+l*p.lda, size)
	} else {
		p.a = offset(p.a, l+row*p.lda, size)
	}
	if p.opB == driver.NoTrans {
		p.b = offset(p.b, l+column*p.ldb, size)
	} else {
		p.b = offset(p.b, column+l*p.ldb, size)
	}
	p.c = offset(p.c, row+column*p.ldc, size)
	p.m, p.n, p.k = e.m, e.n, e.k
	return p
}

func offset(p uintptr, elements, size int64) uintptr { return p + uintptr(elements*size) }

// number is the element types that Go computes with.
type number interface {
	float32 | float64 | int32 | int64 | complex64 | complex128
}

// column j, with rows elements, of the matrix at p.
func column[T any](p uintptr, j, ld, rows int64) []T {
	var zero T
	return hostmem.Slice[T](offset(p, j*ld, int64(unsafe.Sizeof(zero))), rows)
}

// stored is the matrix at p as one slice.
func stored[T any](p uintptr, ld, rows, columns int64) []T {
	return column[T](p, 0, ld, (columns-1)*ld+rows)
}

// address is where x begins. Its memory is outside the Go heap or in a worker,
// which outlives every use.
func address[T any](x []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(x))) }
