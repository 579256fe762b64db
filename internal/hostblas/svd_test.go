package hostblas

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

var svdTypes = []dtype.DType{dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128}

// unit is the spacing of numbers at 1.
func unit(dt dtype.DType) float64 {
	if dt.Real() == dtype.Float32 {
		return 0x1p-23
	}
	return 0x1p-52
}

// decomposition is a matrix, its copy, and room for the results, with gaps
// between the columns.
type decomposition struct {
	driver.SVD
	before, a, s, u, vh operand
}

func newDecomposition(t testing.TB, dt dtype.DType, factors driver.Factors, m, n, gap int64, element func(i, j int64) complex128) *decomposition {
	t.Helper()
	d := &decomposition{SVD: driver.SVD{DType: dt, Factors: factors, M: m, N: n, LDA: max(m, 1) + gap}}
	columnsU, rowsVH := d.FactorExtents()
	d.LDU, d.LDVH = max(m, 1)+gap, max(rowsVH, 1)+gap
	d.a, d.before = newOperand(t, dt, d.LDA*n), newOperand(t, dt, d.LDA*n)
	d.s = newOperand(t, dt.Real(), min(m, n))
	d.u, d.vh = newOperand(t, dt, d.LDU*columnsU), newOperand(t, dt, d.LDVH*n)
	d.A, d.S, d.U, d.VH = driver.Ptr(d.a.p), driver.Ptr(d.s.p), driver.Ptr(d.u.p), driver.Ptr(d.vh.p)
	for _, o := range []operand{d.a, d.u, d.vh} {
		for i := range o.count {
			o.set(i, cmplx.NaN()) // gaps must not count
		}
	}
	for j := range n {
		for i := range m {
			d.a.set(i+j*d.LDA, element(i, j))
		}
	}
	copy(d.before.bytes(), d.a.bytes())
	return d
}

// run decomposes with the workspace between guards.
func (d *decomposition) run(t testing.TB, l *Library) {
	t.Helper()
	const guard = 4096
	bytes := l.SVDWorkspace(&d.SVD)
	p, err := hostmem.Alloc(bytes + 2*guard)
	if err != nil {
		t.Fatal(err)
	}
	room := hostmem.Bytes(p, bytes+2*guard)
	for i := range room {
		room[i] = 0xfb
	}
	l.SVD(&d.SVD, p+guard)
	for _, b := range [][]byte{room[:guard], room[guard+bytes:]} {
		if slices.ContainsFunc(b, func(x byte) bool { return x != 0xfb }) {
			t.Errorf("%+v writes beyond its workspace", d.SVD)
		}
	}
	if err := hostmem.Free(p, bytes+2*guard); err != nil {
		t.Fatal(err)
	}
}

// check compares the product of the factors with the matrix, and the factors
// with isometries, within some units times the longer extent and the matrix.
func (d *decomposition) check(t testing.TB) {
	t.Helper()
	k := min(d.M, d.N)
	largest := 0.0
	for i := range k {
		s := real(d.s.get(i))
		if !(s >= 0) || i > 0 && s > real(d.s.get(i-1)) {
			t.Fatalf("%+v: singular value %d is %v after %v", d.SVD, i, s, d.s.get(max(i-1, 0)))
		}
		largest = max(largest, s)
	}
	if d.Factors == driver.FactorsNone {
		return
	}
	bound := 4 * unit(d.DType) * float64(max(d.M, d.N))
	for i := range d.M {
		for j := range d.N {
			sum := -d.before.get(i + j*d.LDA)
			for l := range k {
				sum += d.u.get(i+l*d.LDU) * d.s.get(l) * d.vh.get(l+j*d.LDVH)
			}
			if !(cmplx.Abs(sum) <= bound*largest) {
				t.Fatalf("%+v: U·S·VH misses element (%d, %d) by %v; expected at most %.3g", d.SVD, i, j, sum, bound*largest)
			}
		}
	}
	columnsU, rowsVH := d.FactorExtents()
	isometry := func(name string, count, length int64, at func(which, i int64) complex128) {
		for x := range count {
			for y := range count {
				sum := complex(0, 0)
				if x == y {
					sum = -1
				}
				for i := range length {
					sum += cmplx.Conj(at(x, i)) * at(y, i)
				}
				if !(cmplx.Abs(sum) <= bound) {
					t.Fatalf("%+v: vectors %d and %d of %s miss their product by %v; expected at most %.3g", d.SVD, x, y, name, sum, bound)
				}
			}
		}
	}
	isometry("U", columnsU, d.M, func(which, i int64) complex128 { return d.u.get(i + which*d.LDU) })
	isometry("VH", rowsVH, d.N, func(which, i int64) complex128 { return d.vh.get(which + i*d.LDVH) })
}

// gaussian answers elements that are the same each time.
func gaussian(dt dtype.DType, seed uint64) func(i, j int64) complex128 {
	random := rand.New(rand.NewPCG(seed, 3))
	return func(int64, int64) complex128 {
		z := complex(random.NormFloat64(), random.NormFloat64())
		if !dt.IsComplex() {
			z = complex(real(z), 0)
		}
		return z
	}
}

var svdExtents = [][2]int64{{1, 1}, {1, 5}, {5, 1}, {4, 4}, {7, 4}, {4, 7}, {40, 3}, {3, 40}, {30, 25}, {25, 30}}

// everySVD runs a test for each way to decompose: a library, gonum's and the
// package's own.
func everySVD(t *testing.T, test func(t *testing.T, l *Library, dt dtype.DType)) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		for _, dt := range svdTypes {
			t.Run(dt.String(), func(t *testing.T) { test(t, l, dt) })
		}
	})
}

func TestSVDFactorsMultiplyBackAndAreIsometries(t *testing.T) {
	everySVD(t, func(t *testing.T, l *Library, dt dtype.DType) {
		for i, e := range svdExtents {
			for _, factors := range []driver.Factors{driver.FactorsNone, driver.FactorsThin, driver.FactorsFull} {
				for gap := range int64(2) {
					d := newDecomposition(t, dt, factors, e[0], e[1], 3*gap, gaussian(dt, uint64(i)))
					d.run(t, l)
					d.check(t)
				}
			}
		}
	})
}

// TestSingularValuesAreThoseOfGonum takes complex matrices by their real form
// (Re −Im; Im Re), which has every singular value twice.
func TestSingularValuesAreThoseOfGonum(t *testing.T) {
	everySVD(t, func(t *testing.T, l *Library, dt dtype.DType) {
		for i, e := range svdExtents {
			d := newDecomposition(t, dt, driver.FactorsNone, e[0], e[1], 1, gaussian(dt, uint64(i)))
			m, n := int(e[0]), int(e[1])
			reference, times := mat.NewDense(m, n, nil), 1
			if dt.IsComplex() {
				reference, times = mat.NewDense(2*m, 2*n, nil), 2
			}
			for i := range m {
				for j := range n {
					z := d.before.get(int64(i) + int64(j)*d.LDA)
					reference.Set(i, j, real(z))
					if dt.IsComplex() {
						reference.Set(m+i, n+j, real(z))
						reference.Set(i, n+j, -imag(z))
						reference.Set(m+i, j, imag(z))
					}
				}
			}
			var svd mat.SVD
			if !svd.Factorize(reference, mat.SVDNone) {
				t.Fatal("gonum has no decomposition")
			}
			want := svd.Values(nil)
			d.run(t, l)
			bound := 4 * unit(dt) * float64(max(m, n)) * want[0]
			for i := range min(m, n) {
				if got := real(d.s.get(int64(i))); !(math.Abs(got-want[times*i]) <= bound) {
					t.Errorf("%d×%d: singular value %d is %v; expected %v within %.3g", m, n, i, got, want[times*i], bound)
				}
			}
		}
	})
}

func TestSVDOfExtremeMatricesHolds(t *testing.T) {
	everySVD(t, func(t *testing.T, l *Library, dt dtype.DType) {
		huge, tiny := 1e37, 1e-36
		if unit(dt) < 1e-10 {
			huge, tiny = 1e307, 1e-306
		}
		for name, element := range map[string]func(i, j int64) complex128{
			"zeros":         func(i, j int64) complex128 { return 0 },
			"ones":          func(i, j int64) complex128 { return 1 },
			"identity":      func(i, j int64) complex128 { return complex(float64(1-min(1, max(i-j, j-i))), 0) },
			"rank one":      func(i, j int64) complex128 { return complex(1.1, 0) * complex(1/float64(3+i), 0) },
			"graded":        func(i, j int64) complex128 { return complex(math.Pow(10, -float64(i+j)), 0) },
			"huge elements": func(i, j int64) complex128 { return complex(huge/(1+float64(i+j)), 0) },
			"tiny elements": func(i, j int64) complex128 { return complex(tiny/(1+float64(i+j)), 0) },
		} {
			for _, e := range [][2]int64{{6, 6}, {9, 4}, {4, 9}} {
				for _, factors := range []driver.Factors{driver.FactorsThin, driver.FactorsFull} {
					t.Run(fmt.Sprintf("%s %v %d", name, e, factors), func(t *testing.T) {
						d := newDecomposition(t, dt, factors, e[0], e[1], 2, element)
						d.run(t, l)
						d.check(t)
					})
				}
			}
		}
	})
}

func TestSVDOfNaNAndInfinityIsAllNaN(t *testing.T) {
	everySVD(t, func(t *testing.T, l *Library, dt dtype.DType) {
		for _, special := range []complex128{complex(math.NaN(), 0), complex(math.Inf(1), 0), complex(math.Inf(-1), 0), complex(0, math.Inf(1))} {
			if imag(special) != 0 && !dt.IsComplex() {
				continue
			}
			for _, e := range [][2]int64{{1, 1}, {5, 5}, {60, 40}, {3, 8}} {
				for _, factors := range []driver.Factors{driver.FactorsNone, driver.FactorsThin, driver.FactorsFull} {
					d := newDecomposition(t, dt, factors, e[0], e[1], 1, gaussian(dt, 1))
					d.a.set(e[0]-1+(e[1]-1)*d.LDA, special)
					for i := range d.s.count {
						d.s.set(i, 0)
					}
					for _, o := range []operand{d.u, d.vh} {
						for i := range o.count {
							o.set(i, 0)
						}
					}
					d.run(t, l)
					columnsU, rowsVH := d.FactorExtents()
					for what, o := range map[string]struct {
						operand
						rows, columns, ld int64
					}{"S": {d.s, d.s.count, 1, d.s.count}, "U": {d.u, d.M, columnsU, d.LDU}, "VH": {d.vh, rowsVH, d.N, d.LDVH}} {
						for i := range o.count {
							inside := o.ld > 0 && i%o.ld < o.rows && i/o.ld < o.columns
							if x := o.get(i); cmplx.IsNaN(x) != inside {
								t.Fatalf("%+v with %v: element %d of %s's memory is %v; inside is %v", d.SVD, special, i, what, x, inside)
							}
						}
					}
				}
			}
		}
	})
}

func TestSVDWithoutElementsHasIdentitiesForFullFactors(t *testing.T) {
	everySVD(t, func(t *testing.T, l *Library, dt dtype.DType) {
		for _, e := range [][2]int64{{0, 0}, {3, 0}, {0, 4}} {
			for _, factors := range []driver.Factors{driver.FactorsNone, driver.FactorsThin, driver.FactorsFull} {
				d := newDecomposition(t, dt, factors, e[0], e[1], 1, nil)
				d.run(t, l)
				d.check(t)
			}
		}
	})
}

// TestSVDStaysWithinTheBudgetOfCores runs small and large ones at once.
func TestSVDStaysWithinTheBudgetOfCores(t *testing.T) {
	const budget = 2
	withLibraries(t, budget, func(t *testing.T, l *Library) {
		var running, most atomic.Int64
		l.probe = func(n int) {
			now := running.Add(int64(n))
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			if n > 0 && l.ext != nil && l.ext.threads > 1 {
				if set := int(int32(invoke(l.ext.getNumThreads, nil))); set != n {
					t.Errorf("OpenBLAS is set to %d threads while a decomposition has %d", set, n)
				}
			}
		}
		var all sync.WaitGroup
		for i := range uint64(4) {
			large := int64(svdThreaded)
			if l.ext == nil {
				large = svdGonum
			}
			extent := []int64{90, large}[i%2]
			d := newDecomposition(t, dtype.Float64, driver.FactorsNone, extent, extent, 0, gaussian(dtype.Float64, i))
			all.Go(func() { d.run(t, l) })
		}
		all.Wait()
		if running.Load() != 0 || most.Load() > budget {
			t.Errorf("%d threads at most and %d at the end; expected at most %d and 0", most.Load(), running.Load(), budget)
		}
		if threaded := l.ext == nil || l.ext.threads > 1; threaded && most.Load() < budget {
			t.Errorf("never more than %d threads; expected a large one to have %d", most.Load(), budget)
		}
	})
}

func TestALibraryWithoutLAPACKLeavesDecompositionsToOthers(t *testing.T) {
	l := anOpenBLAS(t, 1)
	without := *l.ext
	without.gesdd = [4]uintptr{}
	l.ext = &without
	for _, dt := range svdTypes {
		if _, used := l.svdMethod(&driver.SVD{DType: dt, M: 3, N: 3}).(gesdd); used {
			t.Errorf("%v: the library has no gesdd, and it is called", dt)
		}
		d := newDecomposition(t, dt, driver.FactorsFull, 9, 5, 1, gaussian(dt, 2))
		d.run(t, l)
		d.check(t)
	}
}

// TestOnlyWhatFitsTheLibrarysIntegersGoesToIt: the workspace of 32-bit LAPACK has
// less than 2^31 elements.
func TestOnlyWhatFitsTheLibrarysIntegersGoesToIt(t *testing.T) {
	narrow := &external{symbols: symbols{gesdd: [4]uintptr{1, 1, 1, 1}}, limit: 1 << 30}
	wide := &external{symbols: symbols{gesdd: [4]uintptr{1, 1, 1, 1}}, limit: math.MaxInt64}
	for _, c := range []struct {
		m, n, lda int64
		narrow    bool
	}{
		{100, 100, 100, true}, {20000, 20000, 20000, true}, {21000, 21000, 21000, false}, {1 << 29, 1, 1 << 29, true},
		{1 << 29, 4, 1 << 29, false}, {1, 1, 1<<30 + 1, false}, {1<<30 + 1, 1, 1<<30 + 1, false},
	} {
		p := &driver.SVD{DType: dtype.Complex64, M: c.m, N: c.n, LDA: c.lda, LDU: 1, LDVH: 1}
		if got := narrow.decomposes(p); got != c.narrow {
			t.Errorf("%d×%d, lda %d: 32-bit integers take it %t; expected %t", c.m, c.n, c.lda, got, c.narrow)
		}
		if !wide.decomposes(p) {
			t.Errorf("%d×%d, lda %d: 64-bit integers refuse it", c.m, c.n, c.lda)
		}
	}
}
