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
