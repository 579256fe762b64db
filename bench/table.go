package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes results for people, one scenario after another.
type Table struct {
	w       io.Writer
	results []Result // of the current scenario
}

// NewTable makes a table on w.
func NewTable(w io.Writer) *Table { return &Table{w: w} }

// Add adds a result. A scenario's lines are written when the next one begins
// or at Flush, since columns fit all of its cases.
func (t *Table) Add(r Result) error {
	if len(t.results) > 0 && t.results[0].Scenario != r.Scenario {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	t.results = append(t.results, r)
	return nil
}

// Flush writes what has not been written.
func (t *Table) Flush() error {
	if len(t.results) == 0 {
		return nil
	}
	var text strings.Builder // whose writes do not fail
	fmt.Fprintf(&text, "\n%s\n", t.results[0].Scenario)
	if why := t.results[0].Skipped; why != "" {
		fmt.Fprintf(&text, "  not measured: %s\n", why)
		return t.end(&text)
	}
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "  value / floor\tvalue\tfloor\tunit\tratio\tquartiles\tallocs\trequired\talso")
	for _, r := range t.results {
		if r.Err != nil {
			fmt.Fprintf(columns, "  %s\tfailed, see below\n", r.Case)
			continue
		}
		fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\t%.3f\t%.3f-%.3f\t%s\t%s\t%s\n", r.Case, number(r.Value), number(r.Floor), r.Unit,
			r.Ratio, r.Low, r.High, r.allocs(), r.verdict(), figures(r.Figures))
	}
	columns.Flush()
	for _, r := range t.results {
		if r.Err != nil {
			fmt.Fprintf(&text, "  %s failed: %v\n", r.Case, r.Err)
		}
	}
	return t.end(&text)
}

func (t *Table) end(text *strings.Builder) error {
	t.results = nil
	_, err := io.WriteString(t.w, text.String())
	return err
}

func (r *Result) allocs() string {
	if r.Allocs == nil {
		return "-"
	}
	return fmt.Sprintf("%d / %d", *r.Allocs, *r.FloorAllocs)
}

func (r *Result) verdict() string {
	switch {
	case r.OK == nil:
		return "-"
	case *r.OK:
		return r.Limit + ": ok"
	}
	return r.Limit + ": not reached"
}

func figures(all []Figure) string {
	var parts []string
	for _, f := range all {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Name, number(f.Value), f.Unit)))
	}
	return strings.Join(parts, ", ")
}

// number has three significant digits, and all before the point.
func number(x float64) string {
	switch {
	case x >= 100 || x == 0:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
