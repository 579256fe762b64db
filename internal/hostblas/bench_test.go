package hostblas

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// The benchmarks put Gemm beside the naive thing: the bare symbol of OpenBLAS,
// and gonum's routine.

func square(n int64, dt dtype.DType, batch int64) driver.Gemm {
	return driver.Gemm{DType: dt, M: n, N: n, K: n, Batch: batch, Alpha: 1}
}

func report(b *testing.B, g *driver.Gemm) {
	flops := 2 * float64(g.M) * float64(g.N) * float64(g.K) * float64(g.Batch)
	if g.DType.IsComplex() {
		flops *= 4
	}
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GF/s")
}

func benchmark(b *testing.B, l *Library, g driver.Gemm) {
	p := newProblem(b, g, 0, 0, false, false, rand.New(rand.NewPCG(1, 1)))
	var s Scratch
	defer s.Free()
	b.ReportAllocs()
	for b.Loop() {
		p.run(l, &s)
	}
	report(b, &g)
}

func BenchmarkOpenBLAS(b *testing.B) {
	l := anOpenBLAS(b, processCores().total)
	for _, dt := range []dtype.DType{dtype.Float32, dtype.Float64} {
		for _, n := range []int64{4, 64, 128, 192, 256, 1024} {
			g := square(n, dt, 1)
			b.Run(fmt.Sprintf("%v/%d/Gemm", dt, n), func(b *testing.B) { benchmark(b, l, g) })
			// bare calls the symbol with so many threads.
			bare := func(threads int) func(b *testing.B) {
				return func(b *testing.B) {
					p := newProblem(b, g, 0, 0, false, false, rand.New(rand.NewPCG(1, 1)))
					f := newFortranCall()
					l.ext.setThreads(threads, new([1]uintptr))
					defer l.ext.setThreads(1, new([1]uintptr))
					q := product{dt: dt, m: n, n: n, k: n, alpha: 1, a: p.a.p, lda: n, b: p.b.p, ldb: n, c: p.c.p, ldc: n}
					for b.Loop() {
						l.ext.multiply(f, &q)
					}
					report(b, &g)
				}
			}
			b.Run(fmt.Sprintf("%v/%d/symbol,1", dt, n), bare(1))
			b.Run(fmt.Sprintf("%v/%d/symbol,all", dt, n), bare(l.ext.threads))
		}
	}
}

func BenchmarkTypes(b *testing.B) {
	for _, l := range []*Library{Open("auto"), Open("gonum")} {
		for _, dt := range dtype.All() {
			for _, n := range []int64{64, 512} {
				b.Run(fmt.Sprintf("%s/%v/%d", l.Name(), dt, n), func(b *testing.B) { benchmark(b, l, square(n, dt, 1)) })
			}
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, l := range []*Library{Open("auto"), Open("gonum")} {
		for _, n := range []int64{4, 16, 64, 256} {
			g := square(n, dtype.Float64, (1<<25)/(n*n*n))
			b.Run(fmt.Sprintf("%s/%d", l.Name(), n), func(b *testing.B) { benchmark(b, l, g) })
		}
	}
}

// BenchmarkGonum runs all four forms, in Gemm and in gonum's own routine.
func BenchmarkGonum(b *testing.B) {
	l := Open("gonum")
	for _, shape := range []extent{{4, 4, 4}, {16, 16, 16}, {64, 64, 64}, {512, 512, 8}, {512, 512, 512}, {64, 2000, 2000}, {2000, 64, 200}, {2000, 1, 2000}, {1, 2000, 2000}} {
		for _, ops := range [][2]driver.Op{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
			g := driver.Gemm{DType: dtype.Float64, OpA: ops[0], OpB: ops[1], M: shape.m, N: shape.n, K: shape.k, Batch: 1, Alpha: 1}
			name := fmt.Sprintf("%d,%d,%d/%v", shape.m, shape.n, shape.k, ops)
			b.Run(name+"/Gemm", func(b *testing.B) { benchmark(b, l, g) })
			b.Run(name+"/gonum", func(b *testing.B) {
				p := newProblem(b, g, 0, 0, false, false, rand.New(rand.NewPCG(1, 1)))
				t := []blas.Transpose{blas.NoTrans, blas.Trans}
				x, y, z := hostmem.Slice[float64](p.a.p, p.a.count), hostmem.Slice[float64](p.b.p, p.b.count), hostmem.Slice[float64](p.c.p, p.c.count)
				for b.Loop() {
					gonum.Implementation{}.Dgemm(t[g.OpB], t[g.OpA], int(g.N), int(g.M), int(g.K), 1, y, int(p.g.LDB), x, int(p.g.LDA), 0, z, int(p.g.LDC))
				}
				report(b, &g)
			})
		}
	}
}
