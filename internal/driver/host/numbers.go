package host

import (
	"math"
	"unsafe"

	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
)

func size[S any]() int64 {
	var s S
	return int64(unsafe.Sizeof(s))
}

// exact holds numbers as they are computed with.
type exact[N float32 | float64 | int32 | int64] struct{}

func (exact[N]) load(x N, _ bool) N { return x }
func (exact[N]) store(x N) N        { return x }

type complexes[N complex64 | complex128] struct{}

func (complexes[N]) load(x N, conj bool) N {
	if conj {
		return N(complex(real(complex128(x)), -imag(complex128(x))))
	}
	return x
}
func (complexes[N]) store(x N) N { return x }

type halves struct{}

func (halves) load(x float16.Float16, _ bool) float32 { return x.Float32() }
func (halves) store(x float32) float16.Float16        { return float16.Fromfloat32(x) }

type brains struct{}

func (brains) load(x dtype.BF16, _ bool) float32 { return x.Float32() }
func (brains) store(x float32) dtype.BF16        { return dtype.ToBF16(x) }

// The wide ones sum in twice the precision.
type (
	wide        struct{}
	wideComplex struct{}
	wideHalves  struct{}
	wideBrains  struct{}
)

func (wide) load(x float32, _ bool) float64 { return float64(x) }
func (wide) store(x float64) float32        { return float32(x) }

func (wideComplex) load(x complex64, conj bool) complex128 {
	return complexes[complex128]{}.load(complex128(x), conj)
}
func (wideComplex) store(x complex128) complex64 { return complex64(x) }

func (wideHalves) load(x float16.Float16, _ bool) float64 { return float64(x.Float32()) }
func (wideHalves) store(x float64) float16.Float16        { return float16.Fromfloat32(oddFloat32(x)) }

func (wideBrains) load(x dtype.BF16, _ bool) float64 { return float64(x.Float32()) }
func (wideBrains) store(x float64) dtype.BF16        { return dtype.ToBF16(oddFloat32(x)) }

// oddFloat64 is x for narrow types to round once: what a float64 does not hold
// of a large int64 becomes one low bit that no narrow type keeps.
func oddFloat64(x int64) float64 {
	const low = 1<<12 - 1
	m := uint64(x)
	if x < 0 {
		m = -m
	}
	if m>>53 != 0 && m&low != 0 {
		m = m&^low | (low + 1)
	}
	if x < 0 {
		return -float64(m)
	}
	return float64(m)
}

// oddFloat32 rounds x to a float32 so that a second rounding, to a narrower
// type, gives what one rounding of x would: an inexact result is made odd.
// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
// algorithms using rounding to odd", 2008.)
func oddFloat32(x float64) float32 {
	f := float32(x)
	if float64(f) == x || x != x || math.IsInf(float64(f), 0) {
		return f
	}
	bits := math.Float32bits(f)
	if bits&1 == 0 {
		if math.Abs(float64(f)) < math.Abs(x) {
			bits++
		} else {
			bits--
		}
	}
	return math.Float32frombits(bits)
}
