package einsum

import "math"

// value is what a subtree costs: its flops, and the peak of elements that are
// live at once when it is evaluated depth first, in the better order of the
// two operands of each product. Plain operands are the caller's and count
// nothing; layouts, and so packed copies, are not known yet.
type value struct{ flops, peak float64 }

// better says whether v is preferred to w when all peaks up to a ceiling are
// alike: the lower excess over it, then fewer flops, then the lower peak.
// noCeiling asks for the cheapest, the ceiling 0 for the smallest.
func (v value) better(w value, ceiling float64) bool {
	if a, b := max(v.peak, ceiling), max(w.peak, ceiling); a != b {
		return a < b
	}
	if v.flops != w.flops {
		return v.flops < w.flops
	}
	return v.peak < w.peak
}

// bound is the most flops that a better value can have.
func (v value) bound(ceiling float64) float64 {
	if v.peak <= ceiling {
		return v.flops
	}
	return math.Inf(1)
}

var noCeiling = math.Inf(1)

// join is the value of a product: from its operands' values and live elements,
// its own flops and its result's elements.
func join(a, b value, liveA, liveB, flops, result float64) value {
	return value{a.flops + b.flops + flops, max(operandsPeak(a, b, liveA, liveB), liveA+liveB+result)}
}

// operandsPeak is the peak of evaluating a and b, in the order with the lower
// one.
func operandsPeak(a, b value, liveA, liveB float64) float64 {
	return min(max(a.peak, liveA+b.peak), max(b.peak, liveB+a.peak))
}
