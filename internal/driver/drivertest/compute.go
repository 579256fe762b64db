package drivertest

import (
	"fmt"
	"math/cmplx"
	"math/rand/v2"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

var computeModes = []struct {
	name string
	mode driver.Compute
	// unit is the most that an element may change when it is rounded, relative to
	// it: a unit in the last place, whether it is cut off or rounded to nearest.
	unit float64
}{
	{"exact", driver.ComputeExact, 0},
	{"TF32", driver.ComputeTF32, 0x1p-10},
	{"bf16", driver.ComputeBF16, 0x1p-7},
	{"fp16", driver.ComputeFP16, 0x1p-10},
}

// computeTests bound what compute modes may round.
func computeTests() (tests []test) {
	for _, c := range computeModes {
		for _, t := range []dtype.DType{dtype.Float32, dtype.Complex64} {
			tests = append(tests, test{fmt.Sprintf("%s products of %s round no more than they may", c.name, t), func(f *fixture) {
				for _, k := range []int64{1, 16, 70} {
					for _, form := range []struct{ batch, groups int }{{1, 0}, {3, 0}, {1, 1}, {3, 1}, {2, 3}} {
						boundedProducts(f, t, c.mode, c.unit, k, form.batch, form.groups)
					}
				}
			}})
		}
		if c.mode == driver.ComputeExact {
			continue
		}
		tests = append(tests, test{fmt.Sprintf("other types ignore %s", c.name), func(f *fixture) {
			for _, t := range dtype.All() {
				if t == dtype.Float32 || t == dtype.Complex64 {
					continue
				}
				for _, form := range []struct{ batch, groups int }{{1, 0}, {2, 0}, {2, 1}, {1, 2}} {
					boundedProducts(f, t, c.mode, 0, 9, form.batch, form.groups)
				}
			}
		}})
	}
	return tests
}

// boundedProducts compares products of numbers around 1, or of whole ones, with
// a sum in double precision. With groups it submits that many, of batch products
// each, else a plain batch.
func boundedProducts(f *fixture, t dtype.DType, mode driver.Compute, unit float64, k int64, batch, groups int) {
	f.t.Helper()
	rng := rand.New(rand.NewPCG(uint64(t)<<8|uint64(mode), uint64(k)))
	value := func() complex128 {
		x := func() float64 { return float64(float32(1+rng.Float64()) * float32(1-2*rng.IntN(2))) }
		switch t {
		case dtype.Complex64:
			return complex(x(), x())
		case dtype.Float32:
			return complex(x(), 0)
		case dtype.Float64: // more bits than single precision has
			return complex(1+float64(rng.IntN(4))*0x1p-26, 0)
		}
		return complex(float64(rng.IntN(5)-2), 0)
	}
	d := f.device(0)
	s, handle := f.stream(d), f.blas(d)
	var made []*member
	all := make([]driver.GemmGroup, max(groups, 1))
	for i := range all {
		all[i].Gemm = driver.Gemm{DType: t, Compute: mode, OpA: allOps[i%3], OpB: driver.Trans, M: 17 + int64(i), N: 9, K: k, Alpha: 1, Beta: -1}
		for range batch {
			made = append(made, newMember(&all[i], value, value, 0))
		}
	}
	place(f, d, s, made, groups > 0)
	if groups > 0 {
		f.ok(handle.GemmGroups(s, all))
	} else {
		g := all[0].Gemm
		g.A, g.B, g.C, g.Batch = all[0].As[0], all[0].Bs[0], all[0].Cs[0], int64(batch)
		if batch > 1 { // without gaps, members lie at even steps
			g.StrideA, g.StrideB, g.StrideC = step(t, all[0].As), step(t, all[0].Bs), step(t, all[0].Cs)
		}
		f.ok(handle.Gemm(s, &g))
	}
	for _, m := range made {
		m.within(f, s, unit)
	}
}

// step is the distance of the first two, in elements.
func step(t dtype.DType, at []driver.Ptr) int64 { return int64(at[1]-at[0]) / t.Size() }

// within compares C's memory with a sum in double precision.
func (m *member) within(f *fixture, s driver.Stream, unit float64) {
	f.t.Helper()
	t := m.c.t
	got := read[byte](f, s, m.c.at, len(m.c.data))
	for i := range m.c.rows {
		for j := range m.c.cols {
			sum, size := complex128(0), 0.0
			for l := range m.g.K {
				a, b := m.a.get(0, i, l), m.b.get(0, l, j)
				sum += a * b
				size += cmplx.Abs(a) * cmplx.Abs(b)
			}
			was := m.c.get(0, i, j)
			sum = m.g.Alpha*sum + m.g.Beta*was
			rounding := 0x1p-23 * float64(m.g.K+4)
			if t == dtype.Float64 {
				rounding = 0x1p-52 * float64(m.g.K+4)
			}
			bound := size*(2*unit+unit*unit) + rounding*(size+cmplx.Abs(was))
			switch t {
			case dtype.Complex64:
				bound *= 2 // four products, whose errors add up in two parts
			case dtype.Float32, dtype.Float64:
			default:
				bound = 0 // whole numbers
			}
			at := (j*m.c.ld + i) * t.Size()
			if x := decode(t, got[at:]); !(cmplx.Abs(x-sum) <= bound) {
				f.t.Fatalf("%v in mode %d, K = %d: C(%d,%d) is %v; expected %v within %g", t, m.g.Compute, m.g.K, i, j, x, sum, bound)
			}
		}
	}
}
