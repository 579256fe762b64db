package dtype_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/dtype"
)

// nearest rounds a finite f by definition: of the two bfloat16 numbers around
// it the one at the smaller distance, and of two at the same distance the one
// whose last bit is 0. Beyond the largest number the next is 2^128, which is
// infinity. Distances are exact.
func nearest(f float32) dtype.BF16 {
	bits := math.Float32bits(f)
	below := uint16(bits >> 16)
	above := below + 1 // in magnitude
	distance := func(h uint16) *big.Float {
		d := new(big.Float).SetPrec(400).Sub(magnitude(h), new(big.Float).SetFloat64(math.Abs(float64(f))))
		return d.Abs(d)
	}
	switch distance(below).Cmp(distance(above)) {
	case -1:
		return dtype.BF16(below)
	case 1:
		return dtype.BF16(above)
	}
	return dtype.BF16(below + below&1)
}

// magnitude is the absolute value of the bfloat16 number h, from its fields.
func magnitude(h uint16) *big.Float {
	exponent, fraction := int(h>>7&0xff), int64(h&0x7f)
	if exponent > 0 {
		fraction += 0x80
	} else {
		exponent = 1
	}
	return new(big.Float).SetPrec(400).SetMantExp(new(big.Float).SetInt64(fraction), exponent-127-7)
}

func checkRounding(t rapid.TB, bits uint32) {
	t.Helper()
	f := math.Float32frombits(bits)
	if got, want := dtype.ToBF16(f), nearest(f); got != want {
		t.Errorf("ToBF16(%g = %#08x) is %#04x; expected %#04x", f, bits, uint16(got), uint16(want))
	}
}

func TestToBF16RoundsToNearestWithTiesToEven(t *testing.T) {
	const largest = 0x7f7f
	uppers := []uint32{0, 1, 2, 0x7f, 0x80, 0x81, 0x3f7f, 0x3f80, 0x3f81, largest - 1, largest}
	for h := uint32(3); h < largest; h += 41 {
		uppers = append(uppers, h)
	}
	for _, upper := range uppers {
		for _, sign := range []uint32{0, 0x8000} {
			for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
				checkRounding(t, (upper|sign)<<16|lower)
			}
		}
	}
}

func TestToBF16RoundsAnyNumberToTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.Uint32().Filter(func(b uint32) bool { return b&0x7f800000 != 0x7f800000 }).Draw(t, "bits")
		checkRounding(t, bits)
	})
}

func TestToBF16KeepsInfinities(t *testing.T) {
	for _, sign := range []int{1, -1} {
		inf := float32(math.Inf(sign))
		if got := dtype.ToBF16(inf).Float32(); got != inf {
			t.Errorf("%g becomes %g", inf, got)
		}
	}
	if got := dtype.ToBF16(math.MaxFloat32).Float32(); got != float32(math.Inf(1)) {
		t.Errorf("the largest float32, nearer to 2^128 than to the largest bfloat16, becomes %g; expected +Inf", got)
	}
}

func TestToBF16KeepsNaNAndItsSignWhateverItsPayload(t *testing.T) {
	for _, payload := range []uint32{1, 0x7fff, 0x8000, 0xffff, 0x10000, 0x400000, 0x7fffff, 0x3fffff} {
		for _, sign := range []uint32{0, 1 << 31} {
			bits := sign | 0x7f800000 | payload
			got := uint32(dtype.ToBF16(math.Float32frombits(bits)))
			if got>>15 != sign>>31 || got&0x7f80 != 0x7f80 || got&0x7f == 0 {
				t.Errorf("NaN %#08x becomes %#04x; expected a NaN of its sign", bits, got)
			}
			if got&0x40 == 0 {
				t.Errorf("NaN %#08x becomes the signalling %#04x; expected a quiet one", bits, got)
			}
		}
	}
}

func TestEveryBF16WidensToItsValueAndBack(t *testing.T) {
	for i := range 1 << 16 {
		h := dtype.BF16(i)
		f := h.Float32()
		if f != f {
			if i&0x7f80 != 0x7f80 || i&0x7f == 0 {
				t.Fatalf("%#04x widens to NaN", i)
			}
			continue
		}
		if i&0x7fff < 0x7f80 { // finite
			want := magnitude(uint16(i))
			if i>>15 == 1 {
				want.Neg(want)
			}
			if got := new(big.Float).SetFloat64(float64(f)); got.Cmp(want) != 0 || math.Signbit(float64(f)) != (i>>15 == 1) {
				t.Fatalf("%#04x widens to %v; expected %v", i, got, want)
			}
		}
		if back := dtype.ToBF16(f); back != h {
			t.Fatalf("%#04x comes back as %#04x", i, uint16(back))
		}
	}
}

func TestABF16PrintsAsItsNumber(t *testing.T) {
	for _, c := range []struct {
		f    float32
		want string
	}{{1, "1"}, {-0.15625, "-0.15625"}, {float32(math.NaN()), "NaN"}, {float32(math.Inf(-1)), "-Inf"}} {
		if got := fmt.Sprint(dtype.ToBF16(c.f)); got != c.want {
			t.Errorf("%g prints as %q; expected %q", c.f, got, c.want)
		}
	}
}
