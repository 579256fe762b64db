package hostblas

import (
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// Gemm computes g on the calling goroutine and returns when C is written.
//
// The caller has checked g: the type and the operations are declared ones; M,
// N, K and Batch are not negative; each leading dimension is at least the
// stored matrix's rows and at least 1; the addresses cover what the extents,
// leading dimensions and batch strides reach, are aligned for the type, and
// may be dereferenced; members' C do not overlap each other, A or B. Operands
// with a zero extent may have any address. ConjTrans is Trans for types that
// are not complex; the imaginary parts of Alpha and Beta matter only for
// complex types. An integer Alpha or Beta is its real part, reduced to the
// type.
//
// float16 and bfloat16 accumulate in float32 and round once, when C is stored.
// Sums are taken in an unspecified order, as BLAS does: the error of a real
// element is below (K+4)·ε·(|alpha|·Σ|a·b| + |beta·c|), with ε of the type that
// accumulates, and 16-bit types add half a unit in the last place.
func (l *Library) Gemm(g *driver.Gemm, s *Scratch) {
	if !s.begin(l, g) {
		return
	}
	switch {
	case s.plan.threads > 1:
		s.alone(s.plan.threads)
	case l.ext != nil && l.ext.exclusive && !g.DType.IsInteger():
		s.alone(1)
	default:
		s.shared()
	}
}

// TryGemm is Gemm where that takes one core which is free now; else it computes
// nothing and answers false. So it never waits for other products.
func (l *Library) TryGemm(g *driver.Gemm, s *Scratch) bool {
	if !s.begin(l, g) {
		return true
	}
	if s.plan.threads > 1 || s.plan.workers > 1 || l.ext != nil && l.ext.exclusive || l.cores.grab(1) == 0 {
		return false
	}
	defer l.cores.release(1)
	s.next.Store(0)
	s.worker(0).work()
	return true
}

// begin plans g; false if there is nothing to compute.
func (s *Scratch) begin(l *Library, g *driver.Gemm) bool {
	if g.M == 0 || g.N == 0 || g.Batch == 0 {
		return false
	}
	if s.place.ready == nil {
		s.place.ready = make(chan struct{}, 1)
	}
	s.lib, s.g = l, *g
	s.g.Alpha, s.g.Beta = narrow(g.DType, g.Alpha), narrow(g.DType, g.Beta)
	if s.g.K == 0 || s.g.Alpha == 0 {
		s.g.K, s.g.Alpha = 0, 0 // tiles then only scale C
	}
	s.plan = l.plan(&s.g)
	return true
}

// alone computes all tiles with that many library threads while it holds the
// whole budget: the number of threads is a setting of the library's whole
// process, and must not change under another call.
func (s *Scratch) alone(threads int) {
	l := s.lib
	l.cores.acquire(l.cores.total, &s.place)
	// Deferred, like in shared, so that the budget survives a caller who
	// recovers from a panic.
	defer l.cores.release(l.cores.total)
	if threads > 1 {
		l.ext.setThreads(threads, &s.threads)
		defer l.ext.setThreads(1, &s.threads)
	}
	s.next.Store(0)
	s.worker(0).work()
}

// shared computes the tiles on one core and on those that are free beyond it.
func (s *Scratch) shared() {
	l := s.lib
	l.cores.acquire(1, &s.place)
	defer s.done.Wait()
	defer l.cores.release(1)
	s.next.Store(0)
	caller := s.worker(0)
	if s.plan.workers > 1 {
		helpers := l.cores.grab(s.plan.workers - 1)
		s.done.Add(helpers)
		for i := range helpers {
			go s.worker(i + 1).help()
		}
	}
	caller.work()
}

// work computes tiles until none is left.
func (w *worker) work() {
	s := w.s
	if probe := s.lib.probe; probe != nil {
		probe(s.plan.threads)
		defer probe(-s.plan.threads)
	}
	for {
		first := s.next.Add(s.plan.chunk) - s.plan.chunk
		if first >= s.plan.tiles {
			return
		}
		for i := first; i < min(first+s.plan.chunk, s.plan.tiles); i++ {
			w.compute(s.tile(i))
		}
	}
}

// tile i of the product.
func (s *Scratch) tile(i int64) product {
	g, p := &s.g, &s.plan
	perMember := p.gridM * p.gridN
	member, rest := i/perMember, i%perMember
	row, column := rest%p.gridM*p.tileM, rest/p.gridM*p.tileN
	size := g.DType.Size()
	whole := product{
		dt: g.DType, opA: g.OpA, opB: g.OpB,
		m: g.M, n: g.N, k: g.K, alpha: g.Alpha, beta: g.Beta,
		a: offset(uintptr(g.A), member*g.StrideA, size), lda: g.LDA,
		b: offset(uintptr(g.B), member*g.StrideB, size), ldb: g.LDB,
		c: offset(uintptr(g.C), member*g.StrideC, size), ldc: g.LDC,
	}
	return whole.block(row, column, 0, extent{p.tileM, p.tileN, g.K}.within(g.M-row, g.N-column, g.K))
}

// compute does p on this core, or with the library's threads.
func (w *worker) compute(p product) {
	switch {
	case p.k == 0:
		scale(p)
	case p.dt == dtype.Float16:
		staged16(w, p, loadFloat16, storeFloat16)
	case p.dt == dtype.BFloat16:
		staged16(w, p, loadBFloat16, storeBFloat16)
	case p.dt == dtype.Int32:
		panels(w, p, integers[int32]())
	case p.dt == dtype.Int64:
		panels(w, p, integers[int64]())
	default:
		w.float(p)
	}
}

// float does p, which is of one of the four types that BLAS knows.
func (w *worker) float(p product) {
	if ext := w.s.lib.ext; ext != nil {
		ext.compute(w, p)
		return
	}
	switch p.dt {
	case dtype.Float32:
		vectors(w, p, single)
	case dtype.Float64:
		vectors(w, p, double)
	case dtype.Complex64:
		panels(w, p, complexes[complex64, float32]())
	case dtype.Complex128:
		panels(w, p, complexes[complex128, float64]())
	}
}

// narrow rounds a scalar to what a product of type dt computes with.
func narrow(dt dtype.DType, x complex128) complex128 {
	switch dt {
	case dtype.Complex128:
		return x
	case dtype.Complex64:
		return complex128(complex64(x))
	case dtype.Float64, dtype.Int32, dtype.Int64:
		return complex(real(x), 0)
	}
	return complex(float64(float32(real(x))), 0)
}
