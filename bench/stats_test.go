package bench

import (
	"math"
	"testing"
)

// The expected values are numpy.quantile's.
func TestQuantilesAreThoseOfNumPy(t *testing.T) {
	unsorted := []float64{9, 1, 4, 16, 25}
	for _, c := range []struct {
		samples []float64
		q, want float64
	}{
		{[]float64{7}, 0.25, 7},
		{[]float64{1, 2}, 0.5, 1.5},
		{unsorted, 0, 1},
		{unsorted, 0.25, 4},
		{unsorted, 0.5, 9},
		{unsorted, 0.75, 16},
		{unsorted, 1, 25},
		{[]float64{0, 10, 20, 30}, 0.25, 7.5},
		{[]float64{0, 10, 20, 30}, 0.9, 27},
	} {
		if got := quantile(c.samples, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("quantile(%v, %v) = %v; expected %v", c.samples, c.q, got, c.want)
		}
	}
	if unsorted[0] != 9 {
		t.Error("the samples were sorted in place, which would unpair value and floor")
	}
}

func TestARatioIsOfMediansAndItsSpreadOfRounds(t *testing.T) {
	var r Result
	// The rounds' own ratios are 2, 3, 2, 1, 4, so their quartiles are 2 and 3.
	r.summarise([]float64{20, 60, 20, 20, 80}, []float64{10, 20, 10, 20, 20})
	want := Result{Value: 20, Floor: 20, Ratio: 1, Low: 2, High: 3, Spread: 1, Rounds: 5}
	if r.Value != want.Value || r.Floor != want.Floor || r.Ratio != want.Ratio || r.Low != want.Low ||
		r.High != want.High || r.Spread != want.Spread || r.Rounds != want.Rounds {
		t.Errorf("got %+v; expected %+v", r, want)
	}
}

func TestALimitJudgesItsQuantity(t *testing.T) {
	one := int64(1)
	r := Result{Unit: "us/op", Value: 7, Floor: 5, Ratio: 1.4, Low: 0.9, High: 1.5, Allocs: &one,
		Figures: []Figure{{"submit", 1, "us"}, {"process CPU", 2, "us"}}}
	for _, c := range []struct {
		limit Limit
		want  bool
		text  string
	}{
		{Limit{Of: OfValue, Max: 7}, true, "value <= 7 us/op"},
		{Limit{Of: OfValue, Max: 6.9}, false, "value <= 6.9 us/op"},
		{Limit{Of: OfExcess, Max: 2}, true, "value-floor <= 2 us/op"},
		{Limit{Of: OfExcess, Max: 1.9}, false, "value-floor <= 1.9 us/op"},
		{Limit{Of: OfRatio, Max: 1.4}, true, "ratio <= 1.400"},
		{Limit{Of: OfRatio, Max: 1}, false, "ratio <= 1.000"},
		{Limit{Of: OfRatio, Max: 1, Spread: true}, true, "ratio <= 1.000 within the spread"},
		{Limit{Of: OfRatio, Max: 0.8, Spread: true}, false, "ratio <= 0.800 within the spread"},
		{Limit{Of: OfFigure, Figure: "process CPU", Max: 2}, true, "process CPU <= 2 us"},
		{Limit{Of: OfFigure, Figure: "process CPU", Max: 1.9}, false, "process CPU <= 1.9 us"},
		{Limit{Of: OfFigure, Figure: "none of that name", Max: 9}, false, "none of that name <= 9"},
		{Limit{Of: OfAllocs, Max: 1}, true, "allocs <= 1"},
		{Limit{Of: OfAllocs, Max: 0}, false, "allocs <= 0"},
	} {
		if got := c.limit.reached(&r); got != c.want {
			t.Errorf("%+v: reached is %v; expected %v", c.limit, got, c.want)
		}
		if got := c.limit.text(&r); got != c.text {
			t.Errorf("%+v reads %q; expected %q", c.limit, got, c.text)
		}
	}
	r.judge([]Limit{{Of: OfValue, Max: 7}, {Of: OfAllocs, Max: 0}})
	if r.OK == nil || *r.OK || r.Limit != "value <= 7 us/op, allocs <= 0" {
		t.Errorf("of a limit kept and one not: %q, %v; expected both limits and false", r.Limit, r.OK)
	}
	uncounted := Result{}
	if uncounted.judge([]Limit{{Of: OfAllocs, Max: 0}}); *uncounted.OK {
		t.Error("a limit of allocations that nobody counted was reached")
	}
}
