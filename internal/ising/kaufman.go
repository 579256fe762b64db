package ising

import "math"

// Kaufman is log Z by the closed formula for the finite torus: B. Kaufman,
// Crystal statistics II, Phys. Rev. 76, 1232 (1949). With K = 1/T,
//
//	Z = ½·(2·sinh 2K)^(L²/2) · (Π 2·cosh(L·γ/2) + Π 2·sinh(L·γ/2)   over odd k
//	                          + Π 2·cosh(L·γ/2) + Π 2·sinh(L·γ/2))  over even k
//
// for k = 0 … 2L-1 and cosh γ(k) = cosh 2K · coth 2K - cos(πk/L). γ(0) is the
// root 2K + ln tanh K, which is negative above the critical temperature and
// makes the last product so; every other γ is positive.
//
// The products are summed as logarithms, each of which would overflow or
// vanish by itself.
func (m Model) Kaufman() float64 {
	k, l := m.beta, float64(m.size)
	half := k + logTanh(k)/2 // γ(0)/2
	var cosh, sinh [2]float64
	for i := range 2 * m.size {
		x := l * m.halfGamma(half, i)
		cosh[i%2] += log2Cosh(x)
		sinh[i%2] += log2Sinh(x)
	}
	sign := 1.0
	if half < 0 {
		sign = -1
	}
	// log sinh 2K = 2K + log(1-exp(-4K)) - log 2
	prefactor := l * l / 2 * (2*k + math.Log(-math.Expm1(-4*k)))
	return prefactor - math.Ln2 + logSum(
		term{1, cosh[1]}, term{1, sinh[1]}, term{1, cosh[0]}, term{sign, sinh[0]})
}

// halfGamma is |γ(i)|/2, given γ(0)/2. Near the critical temperature the
// defining equation loses half its digits; sinh²(γ/2) = sinh²(γ(0)/2) +
// sin²(πi/2L), which is the same, loses none.
func (m Model) halfGamma(half float64, i int) float64 {
	const far = 40 // where sin² ≤ 1 is below a rounding of sinh²
	if i == 0 || math.Abs(half) > far {
		return math.Abs(half)
	}
	return math.Asinh(math.Hypot(math.Sinh(half), math.Sin(math.Pi*float64(i)/float64(2*m.size))))
}

// logTanh is log tanh x for x > 0.
func logTanh(x float64) float64 {
	if x < 1 {
		return math.Log(math.Tanh(x))
	}
	return math.Log1p(-2 / (math.Exp(2*x) + 1))
}

// log2Cosh is log(2·cosh x) for x ≥ 0.
func log2Cosh(x float64) float64 { return x + math.Log1p(math.Exp(-2*x)) }

// log2Sinh is log(2·sinh x) for x ≥ 0, -Inf for 0.
func log2Sinh(x float64) float64 { return x + math.Log(-math.Expm1(-2*x)) }

// term is sign·exp(log).
type term struct{ sign, log float64 }

// logSum is the logarithm of a sum of terms, which must be positive.
func logSum(terms ...term) float64 {
	largest := math.Inf(-1)
	for _, t := range terms {
		largest = math.Max(largest, t.log)
	}
	sum := 0.0
	for _, t := range terms {
		sum += t.sign * math.Exp(t.log-largest)
	}
	return largest + math.Log(sum)
}
