package bench

import (
	"math"
	"slices"
)

// quantile is the q-quantile of samples, of which there is at least one, with
// linear interpolation between neighbours: the seventh definition of Hyndman
// and Fan (The American Statistician 50, 1996), which NumPy uses as well.
func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	at := q * float64(len(sorted)-1)
	below := int(math.Floor(at))
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

// summarise fills in the statistics of rounds, of which there is at least one.
// The ratio is that of the medians; the spread is the interquartile range of
// the rounds' own ratios.
func (r *Result) summarise(values, floors []float64) {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / floors[i]
	}
	r.Rounds, r.Values, r.Floors = len(values), values, floors
	r.Value, r.Floor = quantile(values, 0.5), quantile(floors, 0.5)
	r.Ratio = r.Value / r.Floor
	r.Low, r.High = quantile(ratios, 0.25), quantile(ratios, 0.75)
	r.Spread = r.High - r.Low
}
