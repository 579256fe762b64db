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
	s.begin(l)
	s.add(part{g: *g})
	s.run()
}

// TryGemm is Gemm where that takes one core which is free now; else it computes
// nothing and answers false. So it never waits for other products.
func (l *Library) TryGemm(g *driver.Gemm, s *Scratch) bool {
	s.begin(l)
	s.add(part{g: *g})
	return s.try()
}

// GemmGroups is Gemm for all products of groups. No C overlaps another, of any
// group. Many small ones share the cores as a batch does, whatever their shapes.
func (l *Library) GemmGroups(groups []driver.GemmGroup, s *Scratch) {
	s.beginGroups(l, groups)
	s.run()
}

// TryGemmGroups is to GemmGroups what TryGemm is to Gemm.
func (l *Library) TryGemmGroups(groups []driver.GemmGroup, s *Scratch) bool {
	s.beginGroups(l, groups)
	return s.try()
}

func (s *Scratch) beginGroups(l *Library, groups []driver.GemmGroup) {
	s.begin(l)
	for i := range groups {
		if g := &groups[i]; len(g.Cs) > 0 {
			s.add(part{g: g.Gemm, as: g.As, bs: g.Bs, cs: g.Cs})
		}
	}
}

func (s *Scratch) begin(l *Library) {
	if s.place.ready == nil {
		s.place.ready = make(chan struct{}, 1)
	}
	s.lib = l
}

// add plans p and puts it to those that it is computed with, unless there is
// nothing to compute.
func (s *Scratch) add(p part) {
	g := &p.g
	if p.cs != nil {
		g.Batch = int64(len(p.cs))
	}
	if g.M == 0 || g.N == 0 || g.Batch == 0 {
		return
	}
	g.Alpha, g.Beta = narrow(g.DType, g.Alpha), narrow(g.DType, g.Beta)
	if g.K == 0 || g.Alpha == 0 {
		g.K, g.Alpha = 0, 0 // tiles then only scale C
	}
	p.plan = s.lib.plan(g)
	if p.plan.threads > 1 || s.lib.exclusive(g.DType) {
		p.end = p.plan.tiles
		s.alone = append(s.alone, p)
		return
	}
	p.end = p.plan.tiles
	if n := len(s.apart); n > 0 {
		p.end += s.apart[n-1].end
	}
	s.apart = append(s.apart, p)
}

// exclusive says whether the library computes products of a type one at a time.
func (l *Library) exclusive(dt dtype.DType) bool {
	return l.ext != nil && l.ext.exclusive && !dt.IsInteger()
}

// run computes what was added.
func (s *Scratch) run() {
	defer s.forget()
	for i := range s.alone {
		s.parts, s.plan = s.alone[i:i+1], s.alone[i].plan
		s.exclude(s.plan.threads)
	}
	if len(s.apart) > 0 {
		s.parts, s.plan = s.apart, s.lib.together(s.apart)
		s.shared()
	}
}

// try computes what was added if that takes one core which is free now.
func (s *Scratch) try() bool {
	defer s.forget()
	if len(s.apart) == 0 {
		return len(s.alone) == 0
	}
	s.parts, s.plan = s.apart, s.lib.together(s.apart)
	if len(s.alone) > 0 || s.plan.workers > 1 || s.lib.cores.grab(1) == 0 {
		return false
	}
	defer s.lib.cores.release(1)
	s.next.Store(0)
	s.worker(0).work()
	return true
}

// forget lets go of what was added.
func (s *Scratch) forget() {
	clear(s.alone)
	clear(s.apart)
	s.alone, s.apart, s.parts = s.alone[:0], s.apart[:0], nil
}

// exclude computes all tiles with that many library threads while it holds the
// whole budget: the number of threads is a setting of the library's whole
// process, and must not change under another call.
func (s *Scratch) exclude(threads int) {
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
	defer s.join()
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
	w.part = 0
	for {
		first := s.next.Add(s.plan.chunk) - s.plan.chunk
		if first >= s.plan.tiles {
			return
		}
		for i := first; i < min(first+s.plan.chunk, s.plan.tiles); i++ {
			w.compute(w.tile(i))
		}
	}
}

// tile i of all parts; a worker's tiles come in order.
func (w *worker) tile(i int64) product {
	parts := w.s.parts
	for i >= parts[w.part].end {
		w.part++
	}
	p := &parts[w.part]
	return p.tile(i - p.end + p.plan.tiles)
}

// tile i of the part.
func (p *part) tile(i int64) product {
	g, grid := &p.g, &p.plan
	perMember := grid.gridM * grid.gridN
	member, rest := i/perMember, i%perMember
	row, column := rest%grid.gridM*grid.tileM, rest/grid.gridM*grid.tileN
	whole := product{
		dt: g.DType, opA: g.OpA, opB: g.OpB,
		m: g.M, n: g.N, k: g.K, alpha: g.Alpha, beta: g.Beta, lda: g.LDA, ldb: g.LDB, ldc: g.LDC,
	}
	if p.cs != nil {
		whole.a, whole.b, whole.c = uintptr(p.as[member]), uintptr(p.bs[member]), uintptr(p.cs[member])
	} else {
		size := g.DType.Size()
		whole.a = offset(uintptr(g.A), member*g.StrideA, size)
		whole.b = offset(uintptr(g.B), member*g.StrideB, size)
		whole.c = offset(uintptr(g.C), member*g.StrideC, size)
	}
	return whole.block(row, column, 0, extent{grid.tileM, grid.tileN, g.K}.within(g.M-row, g.N-column, g.K))
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
