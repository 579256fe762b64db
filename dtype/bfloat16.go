package dtype

import "math"

// bf16Bits keeps the upper 16 bits, rounded to nearest with ties to even. A
// NaN keeps its sign and becomes quiet, since rounding could make it infinite.
func bf16Bits(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func bf16Float(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
