package hostblas

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/weirgo/weir/internal/driver"
)

// float32 and float64 without a library: blocks for gonum's vector kernels.
//
// gonum's own Gemm is not called on whole matrices for three reasons: it skips
// zeros of one operand, which loses 0·NaN and 0·Inf; it starts goroutines
// beyond the core budget; and it has one fast form of four. Here op(A)ᵀ and
// op(B) are packed, where they are not already so, with the inner index
// contiguous, and gonum's dot form, which skips nothing, takes blocks that are
// too small for it to start goroutines. Where A's columns are contiguous and
// that does not pay, columns of C are sums of columns of A. This is as fast as
// gonum called directly, and mostly faster, but for 0.2 µs a call.

// vectorRoutines are gonum's routines for one type.
type vectorRoutines[T float32 | float64] struct {
	gemm func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	axpy func(n int, alpha T, x []T, incX int, y []T, incY int)
}

var (
	single = vectorRoutines[float32]{gonum.Implementation{}.Sgemm, gonum.Implementation{}.Saxpy}
	double = vectorRoutines[float64]{gonum.Implementation{}.Dgemm, gonum.Implementation{}.Daxpy}
)

// Sums of columns beat dot products where columns are long enough, M above
// shortColumn, and either dots are short, K below shortInner, or packing A does
// not pay, N below fewColumns.
const (
	shortColumn = 32
	shortInner  = 64
	fewColumns  = 24
)

// Dot blocks: gonum starts goroutines from four blocks of 64×64 on, so three
// are the most. 256 float64 are long enough for a dot product to run at full
// speed, and both blocks together fit a second-level cache.
var (
	dotBlock      = extent{64, 192, 256}
	dotBlockSmall = extent{16, 48, 32}
)

func dotNeed(e extent) int64 { return (e.m + e.n) * e.k }

func vectors[T float32 | float64](w *worker, p product, r vectorRoutines[T]) {
	if p.opA == driver.NoTrans && p.m > shortColumn && (p.k < shortInner || p.n < fewColumns) {
		sumColumns(p, r)
		return
	}
	dots(w, p, r)
}

// sumColumns adds multiples of A's columns to C's, in blocks of A that stay in
// the cache.
func sumColumns[T float32 | float64](p product, r vectorRoutines[T]) {
	block := extent{512, p.n, shortInner}
	for i := int64(0); i < p.m; i += block.m {
		for l := int64(0); l < p.k; l += block.k {
			q := p.block(i, 0, l, block.within(p.m-i, p.n, p.k-l))
			if l == 0 {
				scale(q)
			}
			sumBlock(q, r)
		}
	}
}

// sumBlock is C += alpha·A·op(B).
func sumBlock[T float32 | float64](q product, r vectorRoutines[T]) {
	a, c := stored[T](q.a, q.lda, q.m, q.k), stored[T](q.c, q.ldc, q.m, q.n)
	b := stored[T](q.b, q.ldb, q.k, q.n)
	next, down := q.ldb, int64(1) // steps to B's next column and row
	if q.opB != driver.NoTrans {
		b = stored[T](q.b, q.ldb, q.n, q.k)
		next, down = down, next
	}
	alpha := T(real(q.alpha))
	for j := range q.n {
		cj := c[j*q.ldc:][:q.m]
		for l := range q.k {
			al := a[l*q.lda:][:q.m]
			if t := alpha * b[j*next+l*down]; t != 0 {
				r.axpy(len(cj), t, al, 1, cj, 1)
			} else { // which axpy would skip, and with it a NaN of A
				for i, v := range al {
					cj[i] += t * v
				}
			}
		}
	}
}

// dots does p with dot products of rows of op(A) and columns of op(B).
func dots[T float32 | float64](w *worker, p product, r vectorRoutines[T]) {
	packA, packB := p.opA == driver.NoTrans, p.opB != driver.NoTrans
	block, buf := room[T](&w.packing, p.m, p.n, p.k, dotBlock, dotBlockSmall, dotNeed)
	alpha, beta := T(real(p.alpha)), T(real(p.beta))
	for l := int64(0); l < p.k; l += block.k {
		for j := int64(0); j < p.n; j += block.n {
			for i := int64(0); i < p.m; i += block.m {
				q := p.block(i, j, l, block.within(p.m-i, p.n-j, p.k-l))
				b, ldb := buf[:q.n*q.k], q.k
				if !packB {
					b, ldb = stored[T](q.b, q.ldb, q.k, q.n), q.ldb
				} else if i == 0 {
					transpose(b, q.b, q.ldb, q.n, q.k)
				}
				a, lda := buf[block.n*block.k:][:q.m*q.k], q.k
				if packA {
					transpose(a, q.a, q.lda, q.m, q.k)
				} else {
					a, lda = stored[T](q.a, q.lda, q.k, q.m), q.lda
				}
				// gonum is row-major: what is stored by columns is its transpose
				// there, and Cᵀ = op(B)ᵀ·op(A)ᵀ.
				r.gemm(blas.NoTrans, blas.Trans, int(q.n), int(q.m), int(q.k), alpha, b, int(ldb), a, int(lda),
					beta, stored[T](q.c, q.ldc, q.m, q.n), int(q.ldc))
			}
		}
		beta = 1
	}
}

// transpose packs the rows×columns matrix at src so that its rows, of length
// columns, are contiguous.
func transpose[T float32 | float64](dst []T, src uintptr, ld, rows, columns int64) {
	l := int64(0)
	// Four columns at a time, so that a cache line of dst is written at once.
	for ; l+4 <= columns; l += 4 {
		x0, x1 := column[T](src, l, ld, rows), column[T](src, l+1, ld, rows)
		x2, x3 := column[T](src, l+2, ld, rows), column[T](src, l+3, ld, rows)
		x1, x2, x3 = x1[:len(x0)], x2[:len(x0)], x3[:len(x0)]
		to := dst[l:]
		for i, v := range x0 {
			row := (*[4]T)(to)
			row[0], row[1], row[2], row[3] = v, x1[i], x2[i], x3[i]
			to = to[min(columns, int64(len(to))):]
		}
	}
	for ; l < columns; l++ {
		for i, v := range column[T](src, l, ld, rows) {
			dst[int64(i)*columns+l] = v
		}
	}
}
