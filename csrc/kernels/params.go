package kernels

// MaxAxes is how many axes Views has room for.
const MaxAxes = 32

// Block is how many threads a block has in every launch.
const Block = 256

// Views is struct weir_views of params.h, which says what the fields mean.
type Views struct {
	Base              [3]uint64
	Count, InnerCount int64
	Extent            [MaxAxes]int64
	Step              [3][MaxAxes]int64
	Magic, Shift      [MaxAxes]uint32
	Alpha, Beta       [2]float64
	Value             [2]uint64
	Outer, Inner      int32
	Narrow            int32
	Conj              [2]int32
	From, To          int32
	Lanes             int32
}

// Product is struct weir_product of params.h.
type Product struct {
	A, B, C                   uint64
	M, N, K, Batch            int64
	LDA, LDB, LDC             int64
	StrideA, StrideB, StrideC int64
	Alpha, Beta               int64
	TransA, TransB            int32
}

// Divide fills in how axis k is divided by: for 0 <= i < 2^31,
// i / Extent[k] = (hi32(i * Magic[k]) + i) >> Shift[k]. It needs an extent
// below 2^31. (Granlund and Montgomery, "Division by invariant integers using
// multiplication", 1994, figure 4.1, with N = 32.)
func (v *Views) Divide(k int) {
	n, shift := uint64(v.Extent[k]), uint32(0)
	for uint64(1)<<shift < n {
		shift++
	}
	v.Shift[k] = shift
	v.Magic[k] = uint32((uint64(1)<<32)*(uint64(1)<<shift-n)/n + 1)
}
