package hostblas

import (
	"math"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// The singular value decomposition, by the first of these that can do it: gesdd
// of the loaded library, which OpenBLAS has from LAPACK; gonum's Dgesvd, for the
// real types; Jacobi rotations, for the complex ones.

// SVD computes p on the calling goroutine and returns when the results are
// written. at is the address of SVDWorkspace(p) bytes. The caller has checked p
// (driver.CheckSVD), and its addresses may be dereferenced.
//
// NaN or infinity in A, and an iteration that does not converge, make all
// results NaN. Without an element in A there are no singular values, and full
// factors are identities.
func (l *Library) SVD(p *driver.SVD, at uintptr) {
	if min(p.M, p.N) == 0 {
		identities(p)
		return
	}
	m := l.svdMethod(p)
	cores, threads := l.svdCores(p, m)
	w := waiter{ready: make(chan struct{}, 1)}
	l.cores.acquire(cores, &w)
	defer l.cores.release(cores)
	if _, library := m.(gesdd); library && threads > 1 {
		n := new([1]uintptr)
		l.ext.setThreads(threads, n)
		defer l.ext.setThreads(1, n)
	}
	if l.probe != nil {
		l.probe(threads)
		defer l.probe(-threads)
	}
	if !allFinite(p) || !m.decompose(p, at) {
		fail(p)
	}
}

// SVDWorkspace is how many bytes SVD needs beside the operands of p.
func (l *Library) SVDWorkspace(p *driver.SVD) int64 {
	if min(p.M, p.N) == 0 {
		return 0
	}
	return l.svdMethod(p).workspace(p)
}

// svdMethod is a way to decompose a matrix with elements.
type svdMethod interface {
	workspace(p *driver.SVD) int64
	// decompose answers whether the iteration converged.
	decompose(p *driver.SVD, at uintptr) bool
}

func (l *Library) svdMethod(p *driver.SVD) svdMethod {
	switch {
	case l.ext != nil && l.ext.decomposes(p):
		return gesdd{l.ext}
	case p.DType.IsComplex():
		return jacobi{}
	}
	return dgesvd{}
}

// From these extents on, min(M, N), it pays to hold all cores: for the threads
// of a library, and for the goroutines that gonum starts.
const (
	svdThreaded = 512
	svdGonum    = 128
)

// svdCores is how many cores of the budget p takes, and how many threads run. As
// in a product's plan, a library's threads run alone.
func (l *Library) svdCores(p *driver.SVD, m svdMethod) (cores, threads int) {
	k := min(p.M, p.N)
	switch m.(type) {
	case gesdd:
		if l.ext.exclusive {
			return l.cores.total, 1
		}
		if k >= svdThreaded && l.ext.threads > 1 && l.cores.total > 1 {
			return l.cores.total, min(l.cores.total, l.ext.threads)
		}
	case dgesvd:
		if k >= svdGonum || max(p.M, p.N) >= 2*svdGonum {
			return l.cores.total, l.cores.total
		}
	}
	return 1, 1
}

// allFinite says whether A has neither NaN nor infinity. LAPACK's iterations can
// go on for ever with them.
func allFinite(p *driver.SVD) bool {
	if p.DType.Real() == dtype.Float32 {
		return allFiniteParts[float32](p)
	}
	return allFiniteParts[float64](p)
}

func allFiniteParts[R float32 | float64](p *driver.SVD) bool {
	n := parts(p.DType)
	for j := range p.N {
		for _, x := range column[R](uintptr(p.A), j, n*p.LDA, n*p.M) {
			if x-x != 0 {
				return false
			}
		}
	}
	return true
}

// parts is how many real numbers an element has.
func parts(dt dtype.DType) int64 { return dt.Size() / dt.Real().Size() }

// fail makes all results NaN.
func fail(p *driver.SVD) {
	columnsU, rowsVH := p.FactorExtents()
	k := min(p.M, p.N)
	if p.DType.Real() == dtype.Float32 {
		nan := float32(math.NaN())
		fillColumns(uintptr(p.S), k, 1, k, nan)
		fillParts(p.DType, p.U, p.M, columnsU, p.LDU, nan)
		fillParts(p.DType, p.VH, rowsVH, p.N, p.LDVH, nan)
		return
	}
	fillColumns(uintptr(p.S), k, 1, k, math.NaN())
	fillParts(p.DType, p.U, p.M, columnsU, p.LDU, math.NaN())
	fillParts(p.DType, p.VH, rowsVH, p.N, p.LDVH, math.NaN())
}

// fillColumns sets every element of a rows×columns matrix.
func fillColumns[R float32 | float64](p uintptr, rows, columns, ld int64, value R) {
	for j := range columns {
		c := column[R](p, j, ld, rows)
		for i := range c {
			c[i] = value
		}
	}
}

// fillParts sets all parts of every element of a matrix of type dt.
func fillParts[R float32 | float64](dt dtype.DType, p driver.Ptr, rows, columns, ld int64, value R) {
	n := parts(dt)
	fillColumns(uintptr(p), n*rows, columns, n*ld, value)
}

// identities are the full factors of a matrix without elements.
func identities(p *driver.SVD) {
	if p.Factors != driver.FactorsFull {
		return
	}
	if p.DType.Real() == dtype.Float32 {
		identity[float32](p.DType, p.U, p.M, p.LDU)
		identity[float32](p.DType, p.VH, p.N, p.LDVH)
		return
	}
	identity[float64](p.DType, p.U, p.M, p.LDU)
	identity[float64](p.DType, p.VH, p.N, p.LDVH)
}

func identity[R float32 | float64](dt dtype.DType, p driver.Ptr, n, ld int64) {
	fillParts(dt, p, n, n, ld, R(0))
	for j := range n {
		*(*R)(hostmem.Pointer(offset(uintptr(p), j*(ld+1), dt.Size()))) = 1
	}
}
