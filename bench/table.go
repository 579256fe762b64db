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
	layout  layout
	results []Result // of the current scenario
}

// layout writes the table of a scenario: rows under a heading, and notes, for one
// that was not measured alone.
type layout func(w io.Writer, scenario string, heading []string, rows [][]string, notes []string)

// NewTable makes a table of plain text on w.
func NewTable(w io.Writer) *Table { return &Table{w: w, layout: plain} }

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
	rows, notes := cells(t.results)
	t.layout(&text, t.results[0].Scenario, heading, rows, notes)
	t.results = nil
	_, err := io.WriteString(t.w, text.String())
	return err
}

var heading = []string{"value / floor", "value", "floor", "unit", "ratio", "quartiles", "allocs", "required", "also"}

// cells are the rows of a scenario's results, those of peers below their cases,
// and what else is to be said.
func cells(results []Result) (rows [][]string, notes []string) {
	for _, r := range results {
		if r.Skipped != "" {
			notes = append(notes, "not measured: "+r.Skipped)
			continue
		}
		if r.Err != nil {
			rows = append(rows, []string{r.Case, "failed"})
			notes = append(notes, fmt.Sprintf("%s failed: %v", r.Case, r.Err))
			continue
		}
		rows = append(rows, []string{r.Case, number(r.Value), number(r.Floor), r.Unit, fmt.Sprintf("%.3f", r.Ratio),
			fmt.Sprintf("%.3f-%.3f", r.Low, r.High), r.allocs(), r.verdict(), figures(r.Figures)})
		for _, p := range r.Peers {
			if p.Err != nil {
				rows = append(rows, []string{"+ " + p.Name, "failed"})
				notes = append(notes, fmt.Sprintf("%s: %s failed: %v", r.Case, p.Name, p.Err))
				continue
			}
			rows = append(rows, []string{"+ " + p.Name, number(p.Value), "", r.Unit, fmt.Sprintf("%.3f", p.Value/r.Floor),
				fmt.Sprintf("%.3f-%.3f", p.Low/r.Floor, p.High/r.Floor), "-", "-", ""})
		}
	}
	return rows, notes
}

func plain(w io.Writer, scenario string, heading []string, rows [][]string, notes []string) {
	fmt.Fprintf(w, "\n%s\n", scenario)
	if len(rows) > 0 {
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{heading}, rows...) {
			// A line with fewer cells would end the columns.
			fmt.Fprintf(columns, "  %s%s\n", strings.Join(row, "\t"), strings.Repeat("\t", len(heading)-len(row)))
		}
		columns.Flush()
	}
	for _, note := range notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
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
