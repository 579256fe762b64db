package hostblas

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// problem is a product with operands of its own.
type problem struct {
	g                 driver.Gemm
	a, b, c, original operand
}

// fill gives every element of o, padding included, a value that its type holds
// exactly enough: integers of full range, or numbers around 1.
func fill(o operand, random *rand.Rand) {
	for i := range o.count {
		switch o.dt {
		case dtype.Int32:
			*at[int32](o, i) = int32(random.Uint32())
		case dtype.Int64:
			*at[int64](o, i) = int64(random.Uint64())
		default:
			o.set(i, complex(random.NormFloat64(), random.NormFloat64()))
		}
	}
}

// newProblem makes operands for g, whose extents, operations and scalars are
// set. pad is added to leading dimensions, gap to batch strides; shareA and
// shareB give every member the same matrix.
func newProblem(t testing.TB, g driver.Gemm, pad, gap int64, shareA, shareB bool, random *rand.Rand) *problem {
	rowsA, columnsA, rowsB, columnsB := g.M, g.K, g.K, g.N
	if g.OpA != driver.NoTrans {
		rowsA, columnsA = columnsA, rowsA
	}
	if g.OpB != driver.NoTrans {
		rowsB, columnsB = columnsB, rowsB
	}
	g.LDA, g.LDB, g.LDC = max(1, rowsA)+pad, max(1, rowsB)+pad, max(1, g.M)+pad
	g.StrideA, g.StrideB, g.StrideC = g.LDA*columnsA+gap, g.LDB*columnsB+gap, g.LDC*g.N+gap
	p := &problem{}
	p.a = newOperand(t, g.DType, g.StrideA*max(1, g.Batch))
	p.b = newOperand(t, g.DType, g.StrideB*max(1, g.Batch))
	p.c = newOperand(t, g.DType, g.StrideC*max(1, g.Batch))
	p.original = newOperand(t, g.DType, p.c.count)
	for _, o := range []operand{p.a, p.b, p.c} {
		fill(o, random)
	}
	copy(p.original.bytes(), p.c.bytes())
	if shareA {
		g.StrideA = 0
	}
	if shareB {
		g.StrideB = 0
	}
	g.A, g.B, g.C = driver.Ptr(p.a.p), driver.Ptr(p.b.p), driver.Ptr(p.c.p)
	p.g = g
	return p
}

func (p *problem) run(l *Library, s *Scratch) { l.Gemm(&p.g, s) }

func (p *problem) check(t testing.TB) {
	t.Helper()
	checkGemm(t, &p.g, p.a, p.b, p.original, p.c)
}

var scalars = []complex128{0, 1, -1, 2, 0.5, 3 - 2i, 1i}

// scalar draws a scalar that g's type allows.
func scalar(t *rapid.T, dt dtype.DType, name string) complex128 {
	x := rapid.SampledFrom(scalars).Draw(t, name)
	if dt.IsInteger() {
		x = complex(float64(int64(real(x))), 0)
	} else if !dt.IsComplex() {
		x = complex(real(x), 0)
	}
	return x
}

func TestGemmAgreesWithANaiveModel(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		var s Scratch
		defer s.Free()
		rapid.Check(t, func(r *rapid.T) {
			dt := rapid.SampledFrom(dtype.All()).Draw(r, "dtype")
			ops := rapid.SampledFrom([]driver.Op{driver.NoTrans, driver.Trans, driver.ConjTrans})
			extents := rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 65, 70})
			g := driver.Gemm{
				DType: dt, OpA: ops.Draw(r, "opA"), OpB: ops.Draw(r, "opB"),
				M: extents.Draw(r, "m"), N: extents.Draw(r, "n"), K: extents.Draw(r, "k"),
				Alpha: scalar(r, dt, "alpha"), Beta: scalar(r, dt, "beta"),
				Batch: rapid.SampledFrom([]int64{0, 1, 1, 2, 3}).Draw(r, "batch"),
			}
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
			var clean cleanups
			defer clean.run()
			p := newProblem(cleaner{t, &clean}, g, rapid.Int64Range(0, 3).Draw(r, "pad"), rapid.Int64Range(0, 3).Draw(r, "gap"),
				rapid.Bool().Draw(r, "shareA"), rapid.Bool().Draw(r, "shareB"), random)
			p.run(l, &s)
			p.check(t)
		})
	})
}

// cleaner is a testing.TB whose cleanups run when one round of a test ends.
type cleaner struct {
	testing.TB
	c *cleanups
}

type cleanups []func()

func (c cleaner) Cleanup(f func()) { *c.c = append(*c.c, f) }

func (c cleanups) run() {
	for _, f := range c {
		f()
	}
}

// With a grain of 50 ns all these shapes are divided: over columns, over rows,
// over members, over parts of few members, and by the library's own threads.
func TestDividedProductsAgreeWithANaiveModel(t *testing.T) {
	shapes := []struct{ m, n, k, batch int64 }{
		{73, 61, 50, 1}, {300, 5, 40, 1}, {5, 300, 40, 1}, {20, 21, 22, 40}, {40, 33, 70, 4}, {1, 300, 50, 1},
	}
	for _, cores := range []int{2, 3, 5} {
		withLibraries(t, cores, func(t *testing.T, l *Library) {
			l.grain = 50
			var s Scratch
			defer s.Free()
			random := rand.New(rand.NewPCG(3, uint64(cores)))
			for _, dt := range dtype.All() {
				for i, shape := range shapes {
					ops := []driver.Op{driver.NoTrans, driver.Trans, driver.ConjTrans}
					p := newProblem(t, driver.Gemm{
						DType: dt, OpA: ops[(i+int(dt))%3], OpB: ops[(i+cores)%3],
						M: shape.m, N: shape.n, K: shape.k, Batch: shape.batch, Alpha: -1, Beta: 2,
					}, 1, 2, false, false, random)
					p.run(l, &s)
					p.check(t)
					exclusive := l.ext != nil && l.ext.exclusive
					if s.plan.workers == 1 && s.plan.threads == 1 && !exclusive {
						t.Errorf("%v is not divided", shape)
					}
				}
			}
		})
	}
}

func TestAScratchServesAllTypesInTurnAndGivesItsMemoryBack(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		var s Scratch
		if s.Bytes() != 0 {
			t.Fatalf("a new Scratch holds %d bytes; expected none", s.Bytes())
		}
		random := rand.New(rand.NewPCG(4, 4))
		for round := range 2 {
			for _, dt := range dtype.All() {
				p := newProblem(t, driver.Gemm{DType: dt, M: 60, N: 50, K: 70, Batch: 1, Alpha: 1, Beta: 1}, 0, 0, false, false, random)
				p.run(l, &s)
				p.check(t)
			}
			if s.Bytes() == 0 {
				t.Fatal("the Scratch holds nothing after products of 60×50×70; expected a workspace")
			}
			s.Free()
			if s.Bytes() != 0 {
				t.Fatalf("round %d: %d bytes after Free; expected none", round, s.Bytes())
			}
		}
	})
}

func TestARefusedWorkspaceStillGivesTheProduct(t *testing.T) {
	withLibraries(t, 1, func(t *testing.T, l *Library) {
		var s Scratch
		w := s.worker(0)
		w.staging.refuse, w.packing.refuse = true, true
		random := rand.New(rand.NewPCG(5, 5))
		for _, dt := range dtype.All() {
			for _, op := range []driver.Op{driver.NoTrans, driver.ConjTrans} {
				p := newProblem(t, driver.Gemm{DType: dt, OpA: op, OpB: op, M: 35, N: 50, K: 70, Batch: 1, Alpha: 1, Beta: -1}, 1, 0, false, false, random)
				p.run(l, &s)
				p.check(t)
			}
		}
		if s.Bytes() != 0 {
			t.Fatalf("%d bytes held; expected none", s.Bytes())
		}
	})
}

// A library of 32-bit integers is given no extent or leading dimension above
// its limit. Here the limit is lowered to one that tests can afford to exceed.
func TestExtentsBeyondTheLibrarysIntegersAreSplit(t *testing.T) {
	limited := *anOpenBLAS(t, 1).ext
	limited.limit, limited.threads = stagedBlock.m, 1
	l := &Library{ext: &limited, cores: newCores(1), grain: grainNanos}
	var s Scratch
	defer s.Free()
	random := rand.New(rand.NewPCG(6, 6))
	type shape struct {
		extent
		pad int64
	}
	for _, dt := range []dtype.DType{dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128, dtype.BFloat16} {
		for _, e := range []shape{{extent{2100, 3, 4}, 0}, {extent{3, 2100, 4}, 0}, {extent{3, 4, 2100}, 0}, {extent{5, 6, 7}, 1030}} {
			for ops := range 4 {
				g := driver.Gemm{DType: dt, OpA: driver.Op(ops / 2 * 2), OpB: driver.Op(ops % 2 * 2), M: e.m, N: e.n, K: e.k, Batch: 1, Alpha: 2, Beta: 3}
				p := newProblem(t, g, e.pad, 0, false, false, random)
				p.run(l, &s)
				p.check(t)
				if f := s.workers[0].call; max(f.m, f.n, f.k, f.lda, f.ldb, f.ldc) > limited.limit {
					t.Errorf("%+v: the library was given %d×%d×%d with leading dimensions %d, %d, %d", g, f.m, f.n, f.k, f.lda, f.ldb, f.ldc)
				}
			}
		}
	}
}
