package hostblas

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// operand is a matrix, or a batch of them, in memory outside the Go heap.
type operand struct {
	dt    dtype.DType
	p     uintptr
	count int64
}

func newOperand(t testing.TB, dt dtype.DType, count int64) operand {
	t.Helper()
	bytes := max(1, count*dt.Size())
	p, err := hostmem.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hostmem.Free(p, bytes); err != nil {
			t.Error(err)
		}
	})
	return operand{dt, p, count}
}

func (o operand) bytes() []byte { return hostmem.Bytes(o.p, o.count*o.dt.Size()) }

func at[T any](o operand, i int64) *T {
	return &hostmem.Slice[T](o.p, o.count)[i]
}

// get is element i; not for int64, whose values it would round.
func (o operand) get(i int64) complex128 {
	switch o.dt {
	case dtype.Float32:
		return complex(float64(*at[float32](o, i)), 0)
	case dtype.Float64:
		return complex(*at[float64](o, i), 0)
	case dtype.Complex64:
		return complex128(*at[complex64](o, i))
	case dtype.Complex128:
		return *at[complex128](o, i)
	case dtype.Float16:
		return complex(float64(at[float16.Float16](o, i).Float32()), 0)
	case dtype.BFloat16:
		return complex(float64(at[dtype.BF16](o, i).Float32()), 0)
	}
	panic(o.dt.String())
}

func (o operand) integer(i int64) int64 {
	if o.dt == dtype.Int32 {
		return int64(*at[int32](o, i))
	}
	return *at[int64](o, i)
}

// set stores x, rounded to the type.
func (o operand) set(i int64, x complex128) {
	switch o.dt {
	case dtype.Float32:
		*at[float32](o, i) = float32(real(x))
	case dtype.Float64:
		*at[float64](o, i) = real(x)
	case dtype.Complex64:
		*at[complex64](o, i) = complex64(x)
	case dtype.Complex128:
		*at[complex128](o, i) = x
	case dtype.Int32:
		*at[int32](o, i) = int32(int64(real(x)))
	case dtype.Int64:
		*at[int64](o, i) = int64(real(x))
	case dtype.Float16:
		*at[float16.Float16](o, i) = float16.Fromfloat32(float32(real(x)))
	case dtype.BFloat16:
		*at[dtype.BF16](o, i) = dtype.ToBF16(float32(real(x)))
	}
}

// twofold is an unevaluated sum of two float64, of about 106 bits.
type twofold struct{ hi, lo float64 }

// addProduct adds x·y with all its bits (Dekker's and Knuth's exact
// transformations).
func (s *twofold) addProduct(x, y float64) {
	p := x * y
	pe := math.FMA(x, y, -p)
	h := s.hi + p
	b := h - s.hi
	e := (s.hi - (h - b)) + (p - b)
	l := s.lo + pe + e
	s.hi = h + l
	s.lo = l - (s.hi - h)
}

func (s *twofold) value() float64 { return s.hi + s.lo }

// element is the index of (i, j) of op of a stored matrix with leading
// dimension ld.
func element(op driver.Op, i, j, ld int64) int64 {
	if op == driver.NoTrans {
		return i + j*ld
	}
	return j + i*ld
}

// checkGemm compares what is in c with g applied to a, b and the old contents
// before, and sees that nothing else of c has changed.
func checkGemm(t testing.TB, g *driver.Gemm, a, b, before, c operand) {
	t.Helper()
	touched := make(map[int64]bool)
	for batch := range g.Batch {
		for j := range g.N {
			for i := range g.M {
				index := batch*g.StrideC + i + j*g.LDC
				touched[index] = true
				var ok bool
				var got, want any
				if g.DType.IsInteger() {
					got, want, ok = checkInteger(g, batch, i, j, a, b, before, c)
				} else {
					got, want, ok = checkFloat(g, batch, i, j, a, b, before, c)
				}
				if !ok {
					t.Fatalf("%+v: member %d, C(%d,%d) is %v; expected %v", *g, batch, i, j, got, want)
				}
			}
		}
	}
	size := c.dt.Size()
	for i := range c.count {
		if touched[i] {
			continue
		}
		for k := i * size; k < (i+1)*size; k++ {
			if c.bytes()[k] != before.bytes()[k] {
				t.Fatalf("%+v: element %d outside C has changed", *g, i)
			}
		}
	}
}

func checkInteger(g *driver.Gemm, batch, i, j int64, a, b, before, c operand) (got, want any, ok bool) {
	var sum int64
	for l := range g.K {
		sum += a.integer(batch*g.StrideA+element(g.OpA, i, l, g.LDA)) * b.integer(batch*g.StrideB+element(g.OpB, l, j, g.LDB))
	}
	index := batch*g.StrideC + i + j*g.LDC
	w := int64(real(g.Alpha))*sum + int64(real(g.Beta))*before.integer(index)
	if g.DType == dtype.Int32 {
		w = int64(int32(w))
	}
	return c.integer(index), w, c.integer(index) == w
}

func checkFloat(g *driver.Gemm, batch, i, j int64, a, b, before, c operand) (got, want any, ok bool) {
	var re, im twofold
	var size float64
	for l := range g.K {
		x := a.get(batch*g.StrideA + element(g.OpA, i, l, g.LDA))
		y := b.get(batch*g.StrideB + element(g.OpB, l, j, g.LDB))
		if g.OpA == driver.ConjTrans {
			x = cmplx.Conj(x)
		}
		if g.OpB == driver.ConjTrans {
			y = cmplx.Conj(y)
		}
		re.addProduct(real(x), real(y))
		if g.DType.IsComplex() {
			re.addProduct(-imag(x), imag(y))
			im.addProduct(real(x), imag(y))
			im.addProduct(imag(x), real(y))
		}
		size += cmplx.Abs(x) * cmplx.Abs(y)
	}
	index := batch*g.StrideC + i + j*g.LDC
	alpha, beta := narrow(g.DType, g.Alpha), narrow(g.DType, g.Beta)
	w := alpha * complex(re.value(), im.value())
	size *= cmplx.Abs(alpha)
	if beta != 0 {
		w += beta * before.get(index)
		size += cmplx.Abs(beta) * cmplx.Abs(before.get(index))
	}
	factor := 1.0
	if g.DType.IsComplex() {
		factor = 4 // two products for each part, and alpha and beta are complex
	}
	x := c.get(index)
	bound := factor*float64(g.K+4)*accumulates[g.DType]*size + stores[g.DType]*cmplx.Abs(w) + smallest[g.DType]
	return x, w, cmplx.Abs(x-w) <= bound
}

// accumulates is the rounding unit that sums are taken with, stores that of
// the result, smallest the spacing of subnormal results.
var (
	accumulates = map[dtype.DType]float64{
		dtype.Float32: 0x1p-24, dtype.Float64: 0x1p-53, dtype.Complex64: 0x1p-24, dtype.Complex128: 0x1p-53,
		dtype.Float16: 0x1p-24, dtype.BFloat16: 0x1p-24,
	}
	stores   = map[dtype.DType]float64{dtype.Float16: 0x1p-11, dtype.BFloat16: 0x1p-8}
	smallest = map[dtype.DType]float64{dtype.Float16: 0x1p-24}
)
