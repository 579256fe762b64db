package bench

import (
	"encoding/json"
	"io"
)

// Result is what was measured of one case. Value and Floor are medians of the
// rounds, in Unit; Ratio is Value over Floor; Low and High are the quartiles
// of the rounds' ratios and Spread their distance.
type Result struct {
	Scenario, Case, Device string
	Unit                   string
	Value, Floor, Ratio    float64
	Low, High, Spread      float64
	Rounds                 int
	Allocs, FloorAllocs    *int64 // heap allocations of an operation, where they were counted
	Limit                  string // what is required; "" is nothing
	OK                     *bool  // whether it is reached, where something is required
	Figures                []Figure
	Err                    error  // why there are no numbers
	Skipped                string // why the scenario was not run on this device; then there is no case
}

// line is a Result as one JSON object.
type line struct {
	Scenario    string             `json:"scenario"`
	Case        string             `json:"case"`
	Device      string             `json:"device"`
	Unit        string             `json:"unit"`
	Value       float64            `json:"value"`
	Floor       float64            `json:"floor"`
	Ratio       float64            `json:"ratio"`
	Spread      float64            `json:"spread"`
	Low         float64            `json:"ratio_low"`
	High        float64            `json:"ratio_high"`
	Rounds      int                `json:"rounds"`
	Allocs      *int64             `json:"allocs,omitempty"`
	FloorAllocs *int64             `json:"floor_allocs,omitempty"`
	Limit       string             `json:"limit,omitempty"`
	OK          *bool              `json:"ok,omitempty"`
	Figures     map[string]float64 `json:"figures,omitempty"`
	Error       string             `json:"error,omitempty"`
	Skipped     string             `json:"skipped,omitempty"`
}

// WriteJSON writes r as one JSON object on a line of its own: scenario, case,
// device, unit, value, floor, ratio, spread, ratio_low, ratio_high, rounds, and
// where there are any allocs, floor_allocs, limit, ok, figures (by name and unit),
// error and skipped.
func WriteJSON(w io.Writer, r Result) error {
	l := line{
		Scenario: r.Scenario, Case: r.Case, Device: r.Device, Unit: r.Unit,
		Value: r.Value, Floor: r.Floor, Ratio: r.Ratio, Spread: r.Spread, Low: r.Low, High: r.High,
		Rounds: r.Rounds, Allocs: r.Allocs, FloorAllocs: r.FloorAllocs, Limit: r.Limit, OK: r.OK, Skipped: r.Skipped,
	}
	for _, f := range r.Figures {
		if l.Figures == nil {
			l.Figures = map[string]float64{}
		}
		name := f.Name
		if f.Unit != "" {
			name += " " + f.Unit
		}
		l.Figures[name] = f.Value
	}
	if r.Err != nil {
		l.Error = r.Err.Error()
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // limits hold "<="
	return e.Encode(l)
}
