package bench

import (
	"encoding/json"
	"errors"
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
	Values, Floors         []float64 // of the rounds, in their order
	Allocs, FloorAllocs    *int64    // heap allocations of an operation, where they were counted
	Limit                  string    // what is required; "" is nothing
	OK                     *bool     // whether it is reached, where something is required
	Figures                []Figure
	Peers                  []PeerResult
	At                     Point
	Err                    error  // why there are no numbers
	Skipped                string // why the scenario was not run on this device; then there is no case
}

// line is a Result as one JSON object.
type line struct {
	Scenario    string     `json:"scenario"`
	Case        string     `json:"case"`
	Device      string     `json:"device"`
	Unit        string     `json:"unit"`
	Value       float64    `json:"value"`
	Floor       float64    `json:"floor"`
	Ratio       float64    `json:"ratio"`
	Spread      float64    `json:"spread"`
	Low         float64    `json:"ratio_low"`
	High        float64    `json:"ratio_high"`
	Rounds      int        `json:"rounds"`
	Allocs      *int64     `json:"allocs,omitempty"`
	FloorAllocs *int64     `json:"floor_allocs,omitempty"`
	Limit       string     `json:"limit,omitempty"`
	OK          *bool      `json:"ok,omitempty"`
	Figures     []Figure   `json:"figures,omitempty"`
	At          *Point     `json:"at,omitempty"`
	Peers       []peerLine `json:"peers,omitempty"`
	Error       string     `json:"error,omitempty"`
	Skipped     string     `json:"skipped,omitempty"`
	Values      []float64  `json:"values,omitempty"`
	Floors      []float64  `json:"floors,omitempty"`
}

// peerLine is a PeerResult in a line.
type peerLine struct {
	Name   string    `json:"name"`
	Value  float64   `json:"value"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Error  string    `json:"error,omitempty"`
	Values []float64 `json:"values,omitempty"`
}

// WriteJSON writes r as one JSON object on a line of its own: scenario, case,
// device, unit, value, floor, ratio, spread, ratio_low, ratio_high, rounds, and
// where there are any allocs, floor_allocs, limit, ok, figures (each name, value,
// unit), at (series, size, count), peers (each name, value, the quartiles low and
// high, error, values), error, skipped, and the rounds' values and floors.
func WriteJSON(w io.Writer, r Result) error {
	l := line{
		Scenario: r.Scenario, Case: r.Case, Device: r.Device, Unit: r.Unit,
		Value: r.Value, Floor: r.Floor, Ratio: r.Ratio, Spread: r.Spread, Low: r.Low, High: r.High,
		Rounds: r.Rounds, Allocs: r.Allocs, FloorAllocs: r.FloorAllocs, Limit: r.Limit, OK: r.OK,
		Figures: r.Figures, Error: message(r.Err), Skipped: r.Skipped, Values: r.Values, Floors: r.Floors,
	}
	if r.At != (Point{}) {
		l.At = &r.At
	}
	for _, p := range r.Peers {
		l.Peers = append(l.Peers, peerLine{p.Name, p.Value, p.Low, p.High, message(p.Err), p.Values})
	}
	return encode(w, l)
}

// result is what WriteJSON wrote; errors have their messages alone.
func (l *line) result() Result {
	r := Result{
		Scenario: l.Scenario, Case: l.Case, Device: l.Device, Unit: l.Unit,
		Value: l.Value, Floor: l.Floor, Ratio: l.Ratio, Spread: l.Spread, Low: l.Low, High: l.High,
		Rounds: l.Rounds, Allocs: l.Allocs, FloorAllocs: l.FloorAllocs, Limit: l.Limit, OK: l.OK,
		Figures: l.Figures, Err: failure(l.Error), Skipped: l.Skipped, Values: l.Values, Floors: l.Floors,
	}
	if l.At != nil {
		r.At = *l.At
	}
	for _, p := range l.Peers {
		r.Peers = append(r.Peers, PeerResult{p.Name, p.Value, p.Low, p.High, p.Values, failure(p.Error)})
	}
	return r
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func failure(message string) error {
	if message == "" {
		return nil
	}
	return errors.New(message)
}

// encode writes v as a line of JSON, in one piece.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // limits hold "<="
	return e.Encode(v)
}
