package hostblas

import (
	"math"

	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// Products whose matrices are first copied to a workspace, block by block, in
// the form that the engine below takes: 16-bit elements as float32, and
// matrices whose leading dimension a library's integers cannot hold.

// Blocks of 1024 rows and columns keep the copies small against the work: an
// element is converted once for 1024 multiply-adds. With float32 they take
// 6 MiB.
var (
	stagedBlock      = extent{1024, 1024, 256}
	stagedBlockSmall = extent{16, 16, 16}
)

func stagedNeed(e extent) int64 { return e.m*e.k + e.k*e.n + e.m*e.n }

// staged does p, whose elements are S, on blocks of T. The engine gets type dt.
func staged[S, T any](w *worker, p product, dt dtype.DType, load func([]T, []S), store func([]S, []T)) {
	block, buf := room[T](&w.staging, p.m, p.n, p.k, stagedBlock, stagedBlockSmall, stagedNeed)
	a, buf := buf[:block.m*block.k], buf[block.m*block.k:]
	b, c := buf[:block.k*block.n], buf[block.k*block.n:]
	for j := int64(0); j < p.n; j += block.n {
		for i := int64(0); i < p.m; i += block.m {
			beta := p.beta
			var q product
			for l := int64(0); l < p.k; l += block.k {
				q = p.block(i, j, l, block.within(p.m-i, p.n-j, p.k-l))
				if l == 0 && beta != 0 {
					loadColumns(c, q.c, q.ldc, q.m, q.n, load)
				}
				s := q
				s.dt, s.beta = dt, beta
				s.a, s.lda = stage(a, q.a, q.lda, q.m, q.k, q.opA, load)
				s.b, s.ldb = stage(b, q.b, q.ldb, q.k, q.n, q.opB, load)
				s.c, s.ldc = address(c), q.m
				w.float(s)
				beta = 1
			}
			for jj := range q.n {
				store(column[S](q.c, jj, q.ldc, q.m), c[jj*q.m:][:q.m])
			}
		}
	}
}

// stage copies the block of a matrix that is rows×columns under op, and answers
// the copy's address and leading dimension.
func stage[S, T any](dst []T, src uintptr, ld, rows, columns int64, op driver.Op, load func([]T, []S)) (uintptr, int64) {
	if op != driver.NoTrans {
		rows, columns = columns, rows
	}
	loadColumns(dst, src, ld, rows, columns, load)
	return address(dst), rows
}

func loadColumns[S, T any](dst []T, src uintptr, ld, rows, columns int64, load func([]T, []S)) {
	for j := range columns {
		load(dst[j*rows:][:rows], column[S](src, j, ld, rows))
	}
}

func staged16[S float16.Float16 | dtype.BF16](w *worker, p product, load func([]float32, []S), store func([]S, []float32)) {
	staged(w, p, dtype.Float32, load, store)
}

// stagedFloat copies blocks without changing their type.
func stagedFloat(w *worker, p product) {
	switch p.dt {
	case dtype.Float32:
		staged(w, p, p.dt, move[float32], move[float32])
	case dtype.Float64:
		staged(w, p, p.dt, move[float64], move[float64])
	case dtype.Complex64:
		staged(w, p, p.dt, move[complex64], move[complex64])
	case dtype.Complex128:
		staged(w, p, p.dt, move[complex128], move[complex128])
	}
}

func move[T any](dst, src []T) { copy(dst, src) }

// loadFloat16 moves exponent and fraction to their places in a float32 and
// corrects the exponent by a multiplication, which is exact and normalises
// subnormal numbers too.
func loadFloat16(dst []float32, src []float16.Float16) {
	dst = dst[:len(src)]
	for i, h := range src {
		bits := uint32(h&0x7fff) << 13
		if h&0x7c00 == 0x7c00 { // infinity or NaN
			bits |= 0x7f800000
		} else {
			bits = math.Float32bits(math.Float32frombits(bits) * 0x1p112)
		}
		dst[i] = math.Float32frombits(bits | uint32(h&0x8000)<<16)
	}
}

func storeFloat16(dst []float16.Float16, src []float32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = float16.Fromfloat32(v)
	}
}

func loadBFloat16(dst []float32, src []dtype.BF16) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = v.Float32()
	}
}

func storeBFloat16(dst []dtype.BF16, src []float32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = dtype.ToBF16(v)
	}
}
