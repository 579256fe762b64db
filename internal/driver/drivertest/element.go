package drivertest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
)

// encode writes v, which t holds exactly, as one element. Real types drop the
// imaginary part.
func encode(t dtype.DType, b []byte, v complex128) {
	ne := binary.NativeEndian
	switch t {
	case dtype.Float32:
		ne.PutUint32(b, math.Float32bits(float32(real(v))))
	case dtype.Float64:
		ne.PutUint64(b, math.Float64bits(real(v)))
	case dtype.Int32:
		ne.PutUint32(b, uint32(int32(real(v))))
	case dtype.Int64:
		ne.PutUint64(b, uint64(int64(real(v))))
	case dtype.Complex64:
		ne.PutUint32(b, math.Float32bits(float32(real(v))))
		ne.PutUint32(b[4:], math.Float32bits(float32(imag(v))))
	case dtype.Complex128:
		ne.PutUint64(b, math.Float64bits(real(v)))
		ne.PutUint64(b[8:], math.Float64bits(imag(v)))
	case dtype.Float16:
		ne.PutUint16(b, float16.Fromfloat32(float32(real(v))).Bits())
	case dtype.BFloat16:
		ne.PutUint16(b, uint16(math.Float32bits(float32(real(v)))>>16))
	}
	if got := decode(t, b); got != v && got != complex(real(v), 0) && real(v) == real(v) && !t.IsInteger() {
		panic(fmt.Sprintf("%s does not hold %v exactly", t, v))
	}
}

// decode reads one element.
func decode(t dtype.DType, b []byte) complex128 {
	ne := binary.NativeEndian
	real32 := func(b []byte) float64 { return float64(math.Float32frombits(ne.Uint32(b))) }
	real64 := func(b []byte) float64 { return math.Float64frombits(ne.Uint64(b)) }
	switch t {
	case dtype.Float32:
		return complex(real32(b), 0)
	case dtype.Float64:
		return complex(real64(b), 0)
	case dtype.Int32:
		return complex(float64(int32(ne.Uint32(b))), 0)
	case dtype.Int64:
		return complex(float64(int64(ne.Uint64(b))), 0)
	case dtype.Complex64:
		return complex(real32(b), real32(b[4:]))
	case dtype.Complex128:
		return complex(real64(b), real64(b[8:]))
	case dtype.Float16:
		return complex(float64(float16.Frombits(ne.Uint16(b)).Float32()), 0)
	case dtype.BFloat16:
		return complex(float64(math.Float32frombits(uint32(ne.Uint16(b))<<16)), 0)
	}
	panic("unknown element type " + t.String())
}

// as is v as an element of t holds it, where no rounding is needed: integers
// truncate toward zero and real types drop the imaginary part.
func as(t dtype.DType, v complex128) complex128 {
	switch {
	case t.IsComplex():
		return v
	case t.IsInteger():
		return complex(math.Trunc(real(v)), 0)
	}
	return complex(real(v), 0)
}

func conj(v complex128, yes bool) complex128 {
	if yes {
		return complex(real(v), -imag(v))
	}
	return v
}
