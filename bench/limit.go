package bench

import (
	"fmt"
	"strings"
)

// Limit is a figure that a case must not exceed.
type Limit struct {
	Of     Quantity
	Figure string // its name, for OfFigure
	Max    float64
	// Spread lets the spread count: it is enough that the lower quartile of the
	// rounds' ratios reaches the limit. For limits that ask for equality, which
	// the median of two equal things misses half the time.
	Spread bool
}

// Quantity is what a Limit limits.
type Quantity int

const (
	OfValue  Quantity = iota // the value, in the case's unit
	OfExcess                 // the value less the floor, in the case's unit
	OfRatio                  // the value over the floor
	OfAllocs                 // heap allocations of an operation
	OfFigure                 // a figure of the trial, in its unit
)

// reached says whether r keeps the limit.
func (l Limit) reached(r *Result) bool {
	switch l.Of {
	case OfValue:
		return r.Value <= l.Max
	case OfExcess:
		return r.Value-r.Floor <= l.Max
	case OfRatio:
		if l.Spread {
			return min(r.Ratio, r.Low) <= l.Max
		}
		return r.Ratio <= l.Max
	case OfAllocs:
		return r.Allocs != nil && float64(*r.Allocs) <= l.Max
	case OfFigure:
		f := r.figure(l.Figure)
		return f.Name != "" && f.Value <= l.Max
	}
	return false
}

// figure is the one of that name; zero where there is none.
func (r *Result) figure(name string) Figure {
	for _, f := range r.Figures {
		if f.Name == name {
			return f
		}
	}
	return Figure{}
}

// text is the limit of r for people, as "value <= 150 ns/op".
func (l Limit) text(r *Result) string {
	u := Unit(r.Unit)
	switch l.Of {
	case OfValue:
		return fmt.Sprintf("value <= %g %s", l.Max, u)
	case OfExcess:
		return fmt.Sprintf("value-floor <= %g %s", l.Max, u)
	case OfAllocs:
		return fmt.Sprintf("allocs <= %g", l.Max)
	case OfFigure:
		return strings.TrimSpace(fmt.Sprintf("%s <= %g %s", l.Figure, l.Max, r.figure(l.Figure).Unit))
	}
	text := fmt.Sprintf("ratio <= %.3f", l.Max)
	if l.Spread {
		text += " within the spread"
	}
	return text
}

// judge fills in what the limits of a case say about its result.
func (r *Result) judge(limits []Limit) {
	if len(limits) == 0 {
		return
	}
	ok := true
	var texts []string
	for _, l := range limits {
		ok = ok && l.reached(r)
		texts = append(texts, l.text(r))
	}
	r.Limit, r.OK = strings.Join(texts, ", "), &ok
}
