package einsum

import (
	"math"
	"math/bits"
)

// Element and byte counts are int64 and saturate at tooMany, which no path is
// allowed to reach: so an overflow is refused like any other excess of memory.
const tooMany = math.MaxInt64

// mul multiplies two counts (not negative) and saturates.
func mul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > tooMany {
		return tooMany
	}
	return int64(lo)
}

// add adds two counts (not negative) and saturates.
func add(a, b int64) int64 {
	if a > tooMany-b {
		return tooMany
	}
	return a + b
}

// product multiplies extents and saturates; an extent of zero makes zero,
// however large the others are.
func product(extents []int64) int64 {
	n := int64(1)
	for _, e := range extents {
		if e == 0 {
			return 0
		}
		n = mul(n, e)
	}
	return n
}
