package hostblas

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

var floats = []dtype.DType{dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128, dtype.Float16, dtype.BFloat16}

// The extents reach all forms of a product: vectors, small and large matrices,
// long and short inner extents.
var specialExtents = []extent{{1, 1, 1}, {1, 6, 5}, {6, 1, 5}, {5, 6, 1}, {7, 6, 5}, {40, 1, 70}, {1, 40, 70}, {40, 30, 3}, {34, 25, 65}}

// sprinkle fills o with small integers, many of them zero, and puts special in
// some places.
func sprinkle(o operand, special float64, places int, random *rand.Rand) {
	for i := range o.count {
		o.set(i, complex(float64(random.IntN(3)-1), 0))
	}
	for range places {
		o.set(random.Int64N(o.count), complex(special, 0))
	}
}

// finite says whether both parts are.
func finite(x complex128) bool { return !cmplx.IsInf(x) && !cmplx.IsNaN(x) }

// same compares with the IEEE class too: real elements must be equal, NaN or
// the same infinity; of complex elements that are not finite, the parts are
// unspecified.
func same(dt dtype.DType, got, want complex128) bool {
	if dt.IsComplex() && !finite(want) {
		return !finite(got)
	}
	return got == want || cmplx.IsNaN(got) && cmplx.IsNaN(want)
}

func TestNaNAndInfinityReachEveryElementThatBLASSays(t *testing.T) {
	withLibraries(t, 1, func(t *testing.T, l *Library) {
		var s Scratch
		defer s.Free()
		random := rand.New(rand.NewPCG(8, 8))
		for _, dt := range floats {
			for _, e := range specialExtents {
				for ops := range 9 {
					g := driver.Gemm{DType: dt, OpA: driver.Op(ops / 3), OpB: driver.Op(ops % 3), M: e.m, N: e.n, K: e.k, Batch: 1, Alpha: -1, Beta: 1}
					p := newProblem(t, g, 0, 0, false, false, random)
					for _, special := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
						for places := range 2 { // in A and C, or in B
							sprinkle(p.a, special, 1-places, random)
							sprinkle(p.b, special, places, random)
							sprinkle(p.c, special, 1-places, random)
							copy(p.original.bytes(), p.c.bytes())
							p.run(l, &s)
							p.checkSpecial(t)
						}
					}
				}
			}
		}
	})
}

// checkSpecial compares with plain IEEE sums. The finite values are small
// integers, so the finite results are exact.
func (p *problem) checkSpecial(t *testing.T) {
	t.Helper()
	g := &p.g
	for j := range g.N {
		for i := range g.M {
			var sum complex128
			for l := range g.K {
				x, y := p.a.get(element(g.OpA, i, l, g.LDA)), p.b.get(element(g.OpB, l, j, g.LDB))
				if g.DType.IsComplex() {
					sum += x * y
				} else {
					sum += complex(real(x)*real(y), 0)
				}
			}
			index := i + j*g.LDC
			want := p.original.get(index) - sum
			if got := p.c.get(index); !same(g.DType, got, want) {
				t.Fatalf("%+v: C(%d,%d) is %v; expected %v", *g, i, j, got, want)
			}
		}
	}
}

func TestBetaZeroNeverReadsC(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		l.grain = 1000
		var s Scratch
		defer s.Free()
		random := rand.New(rand.NewPCG(9, 9))
		for _, dt := range dtype.All() {
			for _, e := range append([]extent{{4, 5, 0}, {70, 70, 70}}, specialExtents...) {
				for _, alpha := range []complex128{0, 1} {
					p := newProblem(t, driver.Gemm{DType: dt, M: e.m, N: e.n, K: e.k, Batch: 1, Alpha: alpha}, 0, 0, false, false, random)
					if dt.IsInteger() {
						p.run(l, &s)
						p.check(t)
						continue
					}
					for i := range p.c.count {
						p.c.set(i, cmplx.NaN())
					}
					p.run(l, &s)
					for i := range p.c.count {
						if x := p.c.get(i); cmplx.IsNaN(x) {
							t.Fatalf("%+v: element %d of C is still %v", p.g, i, x)
						}
					}
				}
			}
		}
	})
}

func TestAlphaZeroAndKZeroReadNeitherANorB(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		var s Scratch
		defer s.Free()
		random := rand.New(rand.NewPCG(10, 10))
		for _, dt := range dtype.All() {
			for _, e := range []extent{{3, 4, 0}, {3, 4, 5}, {40, 50, 60}} {
				for _, beta := range []complex128{0, 1, 2} {
					p := newProblem(t, driver.Gemm{DType: dt, M: e.m, N: e.n, K: e.k, Batch: 2, Alpha: 0, Beta: beta}, 1, 1, false, false, random)
					if e.k == 0 {
						p.g.Alpha = 3
					}
					// No addresses: reading them would fault.
					p.g.A, p.g.B = 0, 0
					p.run(l, &s)
					p.g.K = 0
					p.check(t)
				}
			}
		}
	})
}

// float32 rounds this alpha to zero, which then is zero for BLAS too.
func TestAnAlphaThatItsTypeRoundsToZeroReadsNeitherANorB(t *testing.T) {
	withLibraries(t, 1, func(t *testing.T, l *Library) {
		var s Scratch
		defer s.Free()
		p := newProblem(t, driver.Gemm{DType: dtype.Float32, M: 3, N: 4, K: 5, Batch: 1, Alpha: 1e-60, Beta: 1}, 0, 0, false, false, rand.New(rand.NewPCG(1, 2)))
		p.g.A, p.g.B = 0, 0
		p.run(l, &s)
		p.g.K = 0
		p.check(t)
	})
}

func TestZeroExtentsDoNothing(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		var s Scratch
		for _, dt := range dtype.All() {
			for _, g := range []driver.Gemm{{N: 3, K: 3, Batch: 1}, {M: 3, K: 3, Batch: 1}, {M: 3, N: 3, K: 3}, {}} {
				g.DType, g.LDA, g.LDB, g.LDC, g.Alpha, g.Beta = dt, 3, 3, 3, 1, 2
				l.Gemm(&g, &s) // without addresses
			}
		}
		if s.Bytes() != 0 {
			t.Errorf("%d bytes of workspace for nothing", s.Bytes())
		}
	})
}

func TestFloat16LoadsExactlyWhatItMeans(t *testing.T) {
	src := make([]float16.Float16, 1<<16)
	for i := range src {
		src[i] = float16.Frombits(uint16(i))
	}
	dst := make([]float32, len(src))
	loadFloat16(dst, src)
	for i, got := range dst {
		want := src[i].Float32()
		if math.Float32bits(got) != math.Float32bits(want) && !(got != got && want != want) {
			t.Fatalf("%#04x is %v; expected %v", i, got, want)
		}
	}
}
