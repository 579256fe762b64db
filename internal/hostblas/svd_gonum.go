package hostblas

import (
	"gonum.org/v1/gonum/lapack"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// dgesvd is gonum's QR iteration for float64, in copies without gaps: gonum
// reaches beyond a matrix of one row that has a leading dimension.
//
// gonum is row-major: what is stored by columns is its transpose there, and the
// transpose of A = U·S·VH is VHᵀ·S·Uᵀ. So U and VH change places, and nothing is
// transposed.
type dgesvd struct{}

var jobs = [...]lapack.SVDJob{driver.FactorsNone: lapack.SVDNone, driver.FactorsThin: lapack.SVDStore, driver.FactorsFull: lapack.SVDAll}

// lwork is the size of gonum's workspace: room for blocks of 32 columns and, with
// factors, for a square. gonum's own answer to that question needs a matrix.
func (dgesvd) lwork(p *driver.SVD) int64 {
	k, long := min(p.M, p.N), max(p.M, p.N)
	n := 2 * 32 * (long + k)
	if p.Factors != driver.FactorsNone {
		n += k * k
	}
	return n
}

func (d dgesvd) workspace(p *driver.SVD) int64 {
	columnsU, rowsVH := p.FactorExtents()
	return 8 * (d.lwork(p) + p.M*p.N + min(p.M, p.N) + p.M*columnsU + rowsVH*p.N)
}

func (d dgesvd) decompose(p *driver.SVD, at uintptr) bool {
	if p.DType == dtype.Float32 {
		return dgesvdIn[float32](d, p, at)
	}
	return dgesvdIn[float64](d, p, at)
}

func dgesvdIn[R float32 | float64](d dgesvd, p *driver.SVD, at uintptr) bool {
	take := func(n int64) []float64 {
		x := hostmem.Slice[float64](at, n)
		at += uintptr(8 * n)
		return x
	}
	k := min(p.M, p.N)
	columnsU, rowsVH := p.FactorExtents()
	work, a, s, u, vh := take(d.lwork(p)), take(p.M*p.N), take(k), take(p.M*columnsU), take(rowsVH*p.N)
	for j := range p.N {
		for i, x := range column[R](uintptr(p.A), j, p.LDA, p.M) {
			a[j*p.M+int64(i)] = float64(x)
		}
	}
	job := jobs[p.Factors]
	if !(lapackgonum.Implementation{}).Dgesvd(job, job, int(p.N), int(p.M), a, int(p.M), s,
		vh, int(max(rowsVH, 1)), u, int(p.M), work, len(work)) {
		return false
	}
	round[R](p.S, k, 1, k, s)
	round[R](p.U, p.M, columnsU, p.LDU, u)
	round[R](p.VH, rowsVH, p.N, p.LDVH, vh)
	return true
}

// round copies columns without gaps to a matrix of R.
func round[R float32 | float64](p driver.Ptr, rows, columns, ld int64, from []float64) {
	for j := range columns {
		c := column[R](uintptr(p), j, ld, rows)
		for i := range c {
			c[i] = R(from[j*rows+int64(i)])
		}
	}
}
