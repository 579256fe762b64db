package drivertest

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

var svdTypes = []dtype.DType{dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128}

var allFactors = []driver.Factors{driver.FactorsNone, driver.FactorsThin, driver.FactorsFull}

// svdTests decompose matrices whose singular values are known: they are made
// from them and from reflections. What is not exact is compared within svdBound
// times the largest singular value.
func svdTests() []test {
	tests := []test{
		{"a decomposition is submitted in the order of its stream", svdKeepsOrder},
		{"a decomposition captures its description", svdCaptures},
		{"a solver serves one stream after the other", svdMoves},
		{"elements near the ends of the type's range", svdExtremes},
		{"solvers are independent", svdHandlesAreIndependent},
		{"a solver destroyed after its submissions spoils none", svdSurvivesDestroy},
		{"a destroyed solver takes no more work", svdAfterDestroy},
		{"a solver reports the workspace that it holds", svdWorkspace},
		{"malformed decompositions are refused", refusesSVDs},
		{"a decomposition refuses the streams of others", svdRefusesStreams},
	}
	for _, t := range svdTypes {
		tests = append(tests,
			test{fmt.Sprintf("decompositions of %s", t), func(f *fixture) { svdShapes(f, t) }},
			test{fmt.Sprintf("NaN and infinity of %s make all results NaN", t), func(f *fixture) { svdNaN(f, t) }})
	}
	return tests
}

// svdBound is how far results may be off, by the longer extent: a few roundings
// for each element of a column or row.
func svdBound(t dtype.DType, m, n int64) float64 {
	eps := 0x1p-52
	if t.Real() == dtype.Float32 {
		eps = 0x1p-23
	}
	return 8 * eps * float64(max(m, n, 1))
}

func (f *fixture) solver(d driver.Device) driver.Solver {
	f.t.Helper()
	h, err := d.NewSolver()
	if errors.Is(err, weir.ErrNotSupported) {
		f.t.Skipf("%s has no solver: %v", d.Name(), err)
	}
	f.ok(err)
	f.afterwards(d, "Solver.Destroy", h.Destroy)
	return h
}

// svd is a decomposition in device memory with its model. Gaps between columns
// hold NaN, and the results' memory -1.
type svd struct {
	driver.SVD
	a        []complex128 // M×N, column-major, as the device has it
	s        []float64    // the singular values, from large to small
	uploaded []byte       // A's memory
}

// newSVD makes a matrix with the given singular values, of which there are
// min(M, N).
func (f *fixture) newSVD(d driver.Device, st driver.Stream, t dtype.DType, factors driver.Factors, m, n, gap int64, s []float64) *svd {
	f.t.Helper()
	rng := rand.New(rand.NewPCG(uint64(t), uint64(m*1000+n)))
	x := &svd{a: make([]complex128, m*n), s: s}
	for i, v := range s {
		x.a[int64(i)*(m+1)] = complex(v, 0)
	}
	for range 2 {
		reflectRows(x.a, m, n, reflector(rng, t, m))
		reflectColumns(x.a, m, n, reflector(rng, t, n))
	}
	f.place(d, st, x, t, factors, m, n, gap)
	return x
}

// place gives x device memory, with a rounded to the elements' type.
func (f *fixture) place(d driver.Device, st driver.Stream, x *svd, t dtype.DType, factors driver.Factors, m, n, gap int64) {
	f.t.Helper()
	x.SVD = driver.SVD{DType: t, Factors: factors, M: m, N: n}
	columnsU, rowsVH := x.FactorExtents()
	x.LDA, x.LDU, x.LDVH = max(m, 1)+gap, max(m, 1)+gap, max(rowsVH, 1)+gap
	size := t.Size()
	x.uploaded = make([]byte, x.LDA*n*size)
	for i := range x.LDA * n {
		encode(t, x.uploaded[i*size:], complex(math.NaN(), 0))
	}
	for j := range n {
		for i := range m {
			at := x.uploaded[(i+j*x.LDA)*size:][:size]
			rounded := x.a[i+j*m]
			if t == dtype.Float32 || t == dtype.Complex64 {
				rounded = complex128(complex64(rounded))
			}
			encode(t, at, rounded)
			x.a[i+j*m] = decode(t, at)
		}
	}
	alloc := func(elements int64, of dtype.DType) driver.Ptr {
		p := f.alloc(d, max(elements, 1)*of.Size())
		f.ok(st.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(p, of, elements), Alpha: -1}))
		return p
	}
	x.A = alloc(x.LDA*n, t)
	write(f, st, x.A, x.uploaded...)
	x.S, x.U, x.VH = alloc(min(m, n), t.Real()), alloc(x.LDU*columnsU, t), alloc(x.LDVH*n*min(rowsVH, 1), t)
}

// reflector is v of the reflection 1 − 2·v·vᴴ.
func reflector(rng *rand.Rand, t dtype.DType, n int64) []complex128 {
	v := make([]complex128, n)
	length := 0.0
	for i := range v {
		v[i] = complex(rng.NormFloat64(), 0)
		if t.IsComplex() {
			v[i] += complex(0, rng.NormFloat64())
		}
		length += real(v[i])*real(v[i]) + imag(v[i])*imag(v[i])
	}
	for i := range v {
		v[i] /= complex(math.Sqrt(length), 0)
	}
	return v
}

// reflectRows is A − 2·v·(vᴴ·A).
func reflectRows(a []complex128, m, n int64, v []complex128) {
	for j := range n {
		column, sum := a[j*m:][:m], complex128(0)
		for i := range column {
			sum += cmplx.Conj(v[i]) * column[i]
		}
		for i := range column {
			column[i] -= 2 * v[i] * sum
		}
	}
}

// reflectColumns is A − 2·(A·v)·vᴴ.
func reflectColumns(a []complex128, m, n int64, v []complex128) {
	for i := range m {
		sum := complex128(0)
		for j := range n {
			sum += a[i+j*m] * v[j]
		}
		for j := range n {
			a[i+j*m] -= 2 * sum * cmplx.Conj(v[j])
		}
	}
}

// results are read from the device; -1 stays in gaps.
type results struct {
	s     []float64
	u, vh *factor
}

type factor struct {
	name           string
	rows, cols, ld int64
	elements       []complex128 // the memory
}

func (x *factor) at(i, j int64) complex128 { return x.elements[i+j*x.ld] }

func (f *fixture) results(st driver.Stream, x *svd) *results {
	f.t.Helper()
	elements := func(p driver.Ptr, t dtype.DType, n int64) []complex128 {
		b := read[byte](f, st, p, int(n*t.Size()))
		out := make([]complex128, n)
		for i := range out {
			out[i] = decode(t, b[int64(i)*t.Size():])
		}
		return out
	}
	columnsU, rowsVH := x.FactorExtents()
	r := &results{
		u:  &factor{"U", x.M, columnsU, x.LDU, elements(x.U, x.DType, x.LDU*columnsU)},
		vh: &factor{"VH", rowsVH, x.N, x.LDVH, elements(x.VH, x.DType, x.LDVH*x.N*min(rowsVH, 1))},
	}
	for _, v := range elements(x.S, x.DType.Real(), min(x.M, x.N)) {
		r.s = append(r.s, real(v))
	}
	for _, y := range []*factor{r.u, r.vh} {
		for i, v := range y.elements {
			if int64(i)%y.ld >= y.rows && v != -1 {
				f.t.Fatalf("%s: element %d of %s's memory, in a gap, became %v", x.describe(), i, y.name, v)
			}
		}
	}
	after := read[byte](f, st, x.A, len(x.uploaded))
	size := x.DType.Size()
	for i := range x.LDA * x.N {
		if i%x.LDA >= x.M && !slices.Equal(after[i*size:][:size], x.uploaded[i*size:][:size]) {
			f.t.Fatalf("%s: element %d of A's memory, in a gap, has changed", x.describe(), i)
		}
	}
	return r
}

func (x *svd) describe() string {
	return fmt.Sprintf("%v %d×%d, %s", x.DType, x.M, x.N, [...]string{"no factors", "thin factors", "full factors"}[x.Factors])
}

// check compares results with the model: S with the values that A was made from,
// U·S·VH with A, U and VH with isometries.
func (f *fixture) check(x *svd, r *results) {
	f.t.Helper()
	largest, bound := 0.0, svdBound(x.DType, x.M, x.N)
	if len(x.s) > 0 {
		largest = x.s[0]
	}
	for i, s := range r.s {
		if !(s >= 0) || i > 0 && s > r.s[i-1] {
			f.t.Fatalf("%s: the singular values are %v; expected them from large to small and none negative", x.describe(), r.s)
		}
		if !(math.Abs(s-x.s[i]) <= bound*largest) {
			f.t.Fatalf("%s: singular value %d is %v; expected %v within %.3g", x.describe(), i, s, x.s[i], bound*largest)
		}
	}
	if x.Factors == driver.FactorsNone {
		return
	}
	for i := range x.M {
		for j := range x.N {
			sum := -x.a[i+j*x.M]
			for l, s := range r.s {
				sum += r.u.at(i, int64(l)) * complex(s, 0) * r.vh.at(int64(l), j)
			}
			if !(cmplx.Abs(sum) <= bound*largest) {
				f.t.Fatalf("%s: U·S·VH misses element (%d, %d) by %v; expected at most %.3g", x.describe(), i, j, sum, bound*largest)
			}
		}
	}
	f.isometric(x, "U", r.u.cols, r.u.rows, func(which, i int64) complex128 { return r.u.at(i, which) })
	f.isometric(x, "VH", r.vh.rows, r.vh.cols, func(which, i int64) complex128 { return r.vh.at(which, i) })
}

func (f *fixture) isometric(x *svd, name string, count, length int64, at func(which, i int64) complex128) {
	f.t.Helper()
	bound := svdBound(x.DType, x.M, x.N)
	for p := range count {
		for q := range count {
			sum := complex128(0)
			if p == q {
				sum = -1
			}
			for i := range length {
				sum += cmplx.Conj(at(p, i)) * at(q, i)
			}
			if !(cmplx.Abs(sum) <= bound) {
				f.t.Fatalf("%s: vectors %d and %d of %s miss their product by %v; expected at most %.3g", x.describe(), p, q, name, sum, bound)
			}
		}
	}
}

// spectra are singular values of n: what decompositions find hard.
func spectra(n int64) map[string][]float64 {
	fill := func(value func(i int) float64) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = value(i)
		}
		return s
	}
	return map[string][]float64{
		"spread":   fill(func(i int) float64 { return float64(int(n)-i) + 0.25 }),
		"repeated": fill(func(i int) float64 { return float64(2 - 2*i/int(n)) }),
		"graded":   fill(func(i int) float64 { return 1e3 * math.Pow(10, -12*float64(i)/float64(n)) }),
		"deficient": fill(func(i int) float64 {
			if i > int(n)/2 {
				return 0
			}
			return 3
		}),
		"zero": fill(func(int) float64 { return 0 }),
	}
}

func svdShapes(f *fixture, t dtype.DType) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	try := func(m, n, gap int64, factors driver.Factors, s []float64) {
		f.t.Helper()
		x := f.newSVD(d, st, t, factors, m, n, gap, s)
		f.within("a decomposition", func() error { return h.SVD(st, &x.SVD) })
		f.check(x, f.results(st, x))
	}
	for _, shape := range [][2]int64{{1, 1}, {1, 6}, {6, 1}, {5, 5}, {9, 4}, {4, 9}, {0, 0}, {0, 3}, {3, 0}} {
		m, n := shape[0], shape[1]
		for _, factors := range allFactors {
			for name, s := range spectra(min(m, n)) {
				gap := int64(0)
				if name == "spread" {
					gap = 3
				}
				try(m, n, gap, factors, s)
			}
		}
	}
	for _, shape := range [][2]int64{{70, 40}, {40, 70}, {64, 64}} {
		try(shape[0], shape[1], 1, driver.FactorsThin, spectra(min(shape[0], shape[1]))["spread"])
	}
}

// svdExtremes have elements whose squares, and whose sum, over- or underflow.
func svdExtremes(f *fixture) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	for _, t := range svdTypes {
		huge, tiny := 0x1p1020, 0x1p-1000
		if t.Real() == dtype.Float32 {
			huge, tiny = 0x1p124, 0x1p-110
		}
		for _, value := range []float64{huge, tiny} {
			for _, shape := range [][2]int64{{8, 4}, {4, 8}, {1, 32}} {
				m, n := shape[0], shape[1]
				x := &svd{a: slices.Repeat([]complex128{complex(value, 0)}, int(m*n)), s: make([]float64, min(m, n))}
				x.s[0] = value * math.Sqrt(float64(m*n))
				f.place(d, st, x, t, driver.FactorsThin, m, n, 1)
				f.ok(h.SVD(st, &x.SVD))
				f.check(x, f.results(st, x))
			}
		}
	}
}

func svdNaN(f *fixture, t dtype.DType) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	specials := []complex128{complex(math.NaN(), 0), complex(math.Inf(1), 0), complex(math.Inf(-1), 0)}
	if t.IsComplex() {
		specials = append(specials, complex(0, math.Inf(1)))
	}
	for _, shape := range [][2]int64{{1, 1}, {5, 3}, {3, 5}, {80, 60}} {
		m, n := shape[0], shape[1]
		for _, special := range specials {
			for _, factors := range allFactors {
				x := f.newSVD(d, st, t, factors, m, n, 2, spectra(min(m, n))["spread"])
				bad := make([]byte, t.Size())
				encode(t, bad, special)
				write(f, st, x.A+driver.Ptr((m-1+(n-1)*x.LDA)*t.Size()), bad...)
				f.within("a decomposition of what is not finite", func() error { return h.SVD(st, &x.SVD) })
				r := f.results(st, x)
				for i, s := range r.s {
					if s == s {
						f.t.Fatalf("%s with %v: singular value %d is %v; expected NaN", x.describe(), special, i, s)
					}
				}
				for _, y := range []*factor{r.u, r.vh} {
					for i := range y.rows {
						for j := range y.cols {
							if v := y.at(i, j); !cmplx.IsNaN(v) {
								f.t.Fatalf("%s with %v: element (%d, %d) of %s is %v; expected NaN", x.describe(), special, i, j, y.name, v)
							}
						}
					}
				}
			}
		}
	}
	x := f.newSVD(d, st, t, driver.FactorsThin, 5, 3, 0, []float64{3, 2, 1})
	f.ok(h.SVD(st, &x.SVD))
	f.check(x, f.results(st, x)) // the handle has not suffered
}

// startSVD begins a decomposition that may have to wait for its stream, as
// libraries do that look at the matrix on the host.
func (f *fixture) startSVD(h driver.Solver, st driver.Stream, p *driver.SVD) *task {
	return f.startWaiting("Solver.SVD", func() error { return h.SVD(st, p) })
}

// known answers a decomposition of float64, after the handle has done one like
// it: a library may load code at the first use, which waits for the device.
func (f *fixture) known(d driver.Device, h driver.Solver, st driver.Stream, factor float64) *svd {
	f.t.Helper()
	first := f.newSVD(d, st, dtype.Float64, driver.FactorsThin, 7, 5, 0, []float64{5, 4, 3, 2, 1})
	f.ok(h.SVD(st, &first.SVD))
	f.sync("the stream", st)
	return f.newSVD(d, st, dtype.Float64, driver.FactorsThin, 7, 5, 0, []float64{5 * factor, 4 * factor, 3 * factor, 2 * factor, factor})
}

func svdKeepsOrder(f *fixture) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	x := f.known(d, h, st, 1)
	a := line(x.A, dtype.Float64, 7*5)
	doubled := driver.Kernel{Op: driver.KernelAxpby, Alpha: 2, Out: a, A: a}
	f.ok(st.Launch(&doubled)) // so that no code has to be loaded for it
	release := f.stall(st)
	f.ok(st.Launch(&doubled))
	decomposed := f.startSVD(h, st, &x.SVD)
	f.pending("the stream", st)
	release()
	f.ok(decomposed.join())
	for i := range x.s {
		x.s[i] *= 4
	}
	for i := range x.a {
		x.a[i] *= 4
	}
	f.check(x, f.results(st, x))
}

func svdCaptures(f *fixture) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	x := f.known(d, h, st, 1)
	p := x.SVD
	release := f.stall(st)
	decomposed := f.startSVD(h, st, &p)
	select {
	case err := <-decomposed.done: // submitted without a wait
		f.ok(err)
		p = driver.SVD{}
		release()
	default:
		release()
		f.ok(decomposed.join())
		p = driver.SVD{}
	}
	f.check(x, f.results(st, x))
}

func svdMoves(f *fixture) {
	d := f.device(0)
	h, streams := f.solver(d), []driver.Stream{f.stream(d), f.stream(d)}
	var all [6]*svd
	for i := range all {
		k := int64(10 * (i + 1)) // so that workspaces grow, too
		all[i] = f.newSVD(d, streams[i%2], dtype.Float64, driver.FactorsThin, k/2, k, 0, spectra(k / 2)["spread"])
	}
	for i, x := range all {
		f.ok(h.SVD(streams[i%2], &x.SVD))
	}
	for i, x := range all {
		f.check(x, f.results(streams[i%2], x))
	}
}

func svdHandlesAreIndependent(f *fixture) {
	d := f.device(0)
	var tasks []*task
	var all []*svd
	var streams []driver.Stream
	for i := range 3 {
		st, h := f.stream(d), f.solver(d)
		x := f.newSVD(d, st, dtype.Complex128, driver.FactorsFull, 8, int64(4+4*i), 1, spectra(min(8, int64(4+4*i)))["spread"])
		f.sync("the stream", st)
		all, streams = append(all, x), append(streams, st)
		tasks = append(tasks, f.start("a goroutine with its own handle", func() error {
			for range 5 {
				if err := errors.Join(st.CopyIn(x.A, x.uploaded), h.SVD(st, &x.SVD)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	f.all(tasks)
	for i, x := range all {
		f.check(x, f.results(streams[i], x))
	}
}

func svdSurvivesDestroy(f *fixture) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	x := f.known(d, h, st, 1)
	release := f.stall(st)
	decomposed := f.startSVD(h, st, &x.SVD)
	select {
	case err := <-decomposed.done:
		f.ok(err)
		destroyed := f.startWaiting("Solver.Destroy", h.Destroy)
		release()
		f.ok(destroyed.join())
	default:
		release()
		f.ok(decomposed.join())
		f.within("Solver.Destroy", h.Destroy)
	}
	f.check(x, f.results(st, x))
}

func svdAfterDestroy(f *fixture) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	x := f.known(d, h, st, 1)
	f.ok(h.Destroy())
	f.ok(h.Destroy())
	f.refused(h.SVD(st, &x.SVD), "Solver.SVD", d, weir.ErrClosed)
	if n := h.WorkspaceBytes(); n != 0 {
		f.t.Errorf("a destroyed solver still holds %d bytes", n)
	}
}

func svdWorkspace(f *fixture) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	if n := h.WorkspaceBytes(); n < 0 {
		f.t.Errorf("a fresh solver holds %d bytes", n)
	}
	var held []int64
	for range 3 {
		x := f.newSVD(d, st, dtype.Float64, driver.FactorsThin, 30, 20, 0, spectra(20)["spread"])
		f.ok(h.SVD(st, &x.SVD))
		f.sync("the stream", st)
		held = append(held, h.WorkspaceBytes())
	}
	if held[0] < 0 || held[1] != held[0] || held[2] != held[0] {
		f.t.Errorf("after each of three like decompositions it holds %v bytes; expected the same", held)
	}
}

func refusesSVDs(f *fixture) {
	d := f.device(0)
	st, h := f.stream(d), f.solver(d)
	p := f.alloc(d, 4096)
	on := "Solver.SVD on " + d.Name() + ": "
	for what, c := range map[string]struct {
		spoil func(p *driver.SVD)
		want  string
	}{
		"an integer type":     {func(p *driver.SVD) { p.DType = dtype.Int32 }, "dtype int32; expected float32, float64, complex64 or complex128"},
		"a 16-bit type":       {func(p *driver.SVD) { p.DType = dtype.BFloat16 }, "dtype bfloat16; expected float32, float64, complex64 or complex128"},
		"an unknown type":     {func(p *driver.SVD) { p.DType = 99 }, "dtype dtype(99); expected float32, float64, complex64 or complex128"},
		"unknown factors":     {func(p *driver.SVD) { p.Factors = 3 }, "factors 3; expected known ones"},
		"a negative M":        {func(p *driver.SVD) { p.M = -1 }, "m, n = -1, 2; expected 0 or more"},
		"a negative N":        {func(p *driver.SVD) { p.N = -2 }, "m, n = 3, -2; expected 0 or more"},
		"LDA below M":         {func(p *driver.SVD) { p.LDA = 2 }, "lda = 2; expected at least 3"},
		"LDU below M":         {func(p *driver.SVD) { p.LDU = 2 }, "ldu = 2; expected at least 3"},
		"LDVH below K":        {func(p *driver.SVD) { p.LDVH = 1 }, "ldvh = 1; expected at least 2"},
		"LDVH below N, full":  {func(p *driver.SVD) { p.Factors, p.M, p.LDVH = driver.FactorsFull, 1, 1 }, "ldvh = 1; expected at least 2"},
		"no address of A":     {func(p *driver.SVD) { p.A = 0 }, "a at 0x0; expected an address"},
		"no address of S":     {func(p *driver.SVD) { p.S = 0 }, "s at 0x0; expected an address"},
		"no address of U":     {func(p *driver.SVD) { p.U = 0 }, "u at 0x0; expected an address"},
		"no address of VH":    {func(p *driver.SVD) { p.VH = 0 }, "vh at 0x0; expected an address"},
		"a size beyond int64": {func(p *driver.SVD) { p.LDA = 1 << 62 }, "a of 3×2, ld 4611686018427387904; expected less than 2^62 bytes"},
	} {
		q := driver.SVD{DType: dtype.Float64, Factors: driver.FactorsThin, M: 3, N: 2, A: p, S: p + 256, U: p + 512, VH: p + 768, LDA: 3, LDU: 3, LDVH: 2}
		c.spoil(&q)
		err := h.SVD(st, &q)
		f.refused(err, "Solver.SVD", d, weir.ErrArgument)
		if err != nil && err.Error() != on+c.want {
			f.t.Errorf("%s: %q; expected %q", what, err, on+c.want)
		}
	}
	// What factors need is not looked at without them.
	f.ok(st.Zero(p, 4096))
	f.ok(h.SVD(st, &driver.SVD{DType: dtype.Float64, M: 3, N: 2, A: p, S: p + 256, LDA: 3}))
	f.sync("the stream", st)
}

func svdRefusesStreams(f *fixture) {
	d := f.device(0)
	st, gone, h := f.stream(d), f.stream(d), f.solver(d)
	x := f.known(d, h, st, 1)
	f.refused(h.SVD(foreignStream{}, &x.SVD), "Solver.SVD", d, weir.ErrArgument)
	f.ok(gone.Destroy())
	f.refused(h.SVD(gone, &x.SVD), "Solver.SVD", d, weir.ErrClosed)
	if f.family.Count() > 1 {
		f.refused(h.SVD(f.stream(f.device(1)), &x.SVD), "Solver.SVD", d, weir.ErrArgument)
	}
	f.ok(h.SVD(st, &x.SVD))
	f.check(x, f.results(st, x))
}
