package hostblas

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// gesdd is the divide-and-conquer decomposition of a library's LAPACK.
type gesdd struct{ *external }

// decomposes says whether the library can do p: it has the routine, and its
// integers hold the extents and the sizes of the workspace.
func (e *external) decomposes(p *driver.SVD) bool {
	if e.gesdd[routineOf(p.DType)] == 0 || max(p.M, p.N, p.LDA, p.LDU, p.LDVH) > e.limit {
		return false
	}
	k, long := float64(min(p.M, p.N)), float64(max(p.M, p.N))
	return e.limit > math.MaxInt32 || max(5*k*k+7*k+long, 2*long*k+2*k*k+k) <= math.MaxInt32
}

// gesddCall holds the arguments of xgesdd_, as fortranCall those of xgemm_.
type gesddCall struct {
	job                              byte
	m, n, lda, ldu, ldvh, work, info int64
	best                             [2]float64 // the best size of the workspace, an element
	args                             [16]uintptr
}

// The places of xgesdd_'s arguments that are not in the call: xgesdd_(jobz, m, n,
// a, lda, s, u, ldu, vt, ldvt, work, lwork, rwork, iwork, info), rwork with
// complex types only, and the hidden length of the string.
const (
	argSVDA    = 3
	argSVDS    = 5
	argSVDU    = 6
	argSVDVH   = 8
	argSVDWork = 10
	argSVDReal = 12
)

var jobLetters = [...]byte{driver.FactorsNone: 'N', driver.FactorsThin: 'S', driver.FactorsFull: 'A'}

// newGesddCall is a call that asks for the size of the workspace.
func newGesddCall(p *driver.SVD) (c *gesddCall, args []uintptr) {
	c = &gesddCall{job: jobLetters[p.Factors], m: p.M, n: p.N, lda: p.LDA, ldu: max(p.LDU, 1), ldvh: max(p.LDVH, 1), work: -1}
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	args = append(c.args[:0],
		at(unsafe.Pointer(&c.job)), at(unsafe.Pointer(&c.m)), at(unsafe.Pointer(&c.n)),
		uintptr(p.A), at(unsafe.Pointer(&c.lda)), uintptr(p.S), uintptr(p.U), at(unsafe.Pointer(&c.ldu)), uintptr(p.VH), at(unsafe.Pointer(&c.ldvh)),
		at(unsafe.Pointer(&c.best)), at(unsafe.Pointer(&c.work)))
	if p.DType.IsComplex() {
		args = append(args, 0)
	}
	return c, append(args, 0, at(unsafe.Pointer(&c.info)), 1)
}

// svdSizes are the bytes of the parts of gesdd's workspace: elements, real
// numbers and integers.
type svdSizes struct{ elements, reals, integers int64 }

func (g gesdd) sizes(p *driver.SVD) svdSizes {
	c, args := newGesddCall(p)
	invoke(g.external.gesdd[routineOf(p.DType)], args)
	runtime.KeepAlive(c)
	n := int64(c.best[0])
	if p.DType.Real() == dtype.Float32 {
		// A float32 may have rounded the size down.
		best := *(*float32)(unsafe.Pointer(&c.best))
		n = int64(float64(math.Nextafter32(best, math.MaxFloat32))) + 1
	}
	s := svdSizes{elements: max(n, 1) * p.DType.Size()}
	k, long := min(p.M, p.N), max(p.M, p.N)
	if p.DType.IsComplex() {
		s.reals = 7 * k
		if p.Factors != driver.FactorsNone {
			s.reals = max(5*k*k+7*k, 2*long*k+2*k*k+k)
		}
		s.reals *= p.DType.Real().Size()
	}
	s.integers = 8 * k * 8 // whatever an integer is
	return s
}

func (g gesdd) workspace(p *driver.SVD) int64 {
	s := g.sizes(p)
	return aligned(s.elements) + aligned(s.reals) + s.integers
}

func aligned(n int64) int64 { return (n + 63) &^ 63 }

func (g gesdd) decompose(p *driver.SVD, at uintptr) bool {
	s := g.sizes(p)
	c, args := newGesddCall(p)
	c.work = s.elements / p.DType.Size()
	args[argSVDWork] = at
	if p.DType.IsComplex() {
		args[argSVDReal] = at + uintptr(aligned(s.elements))
	}
	args[len(args)-3] = at + uintptr(aligned(s.elements)+aligned(s.reals))
	if g.ompThreads != 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		invoke(g.ompThreads, oneThread)
	}
	invoke(g.external.gesdd[routineOf(p.DType)], args)
	runtime.KeepAlive(c)
	return int32(c.info) == 0 // which is all that a library with 32-bit integers writes
}
