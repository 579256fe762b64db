package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// Compare writes what changed from old to now: the medians of every case that both
// have, by how many percent they differ, or ~ where by benchstat's test (Mann and
// Whitney's, at 0.05) their rounds may well be of one distribution; and the same
// of the floors, which change when the machine does. It names what differs in how
// the runs were made, and the cases that only one has numbers of.
func Compare(w io.Writer, old, now *Saved) error {
	out := &strings.Builder{} // whose writes do not fail
	fmt.Fprintf(out, "old: %s, of %s\nnew: %s, of %s\n", old.Name, old.Date.Format(dateLayout), now.Name, now.Date.Format(dateLayout))
	was, is := old.conditions(), now.conditions()
	for i, c := range was {
		if c != is[i] {
			fmt.Fprintf(out, "the runs differ in %s: %q, now %q\n", c[0], c[1], is[i][1])
		}
	}

	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var notes []string
	scenario := ""
	for _, n := range now.Results {
		o, both := old.measured(n)
		if !both || n.Err != nil || n.Skipped != "" {
			continue
		}
		if o.Unit != n.Unit {
			notes = append(notes, fmt.Sprintf("not compared: %s: %s is in %s, now in %s", n.Scenario, n.Case, o.Unit, n.Unit))
			continue
		}
		if n.Scenario != scenario {
			scenario = n.Scenario
			fmt.Fprintf(columns, "\n%s\n  case\told\tnew\tunit\tdelta\t\tfloor's delta\t\n", scenario)
		}
		value, warnings := delta(o.Values, n.Values)
		floor, _ := delta(o.Floors, n.Floors)
		fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\t%s\t%s\n", n.Case, number(o.Value), number(n.Value), n.Unit, value, floor)
		for _, warning := range warnings {
			notes = append(notes, fmt.Sprintf("%s: %s: %v", n.Scenario, n.Case, warning))
		}
	}
	columns.Flush()
	notes = append(append(notes, old.beyond(now, "old")...), now.beyond(old, "new")...)
	for i, note := range notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, note)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

const dateLayout = "2006-01-02 15:04 MST"

// conditions are what a run's figures depend on, but for the moment.
func (h Header) conditions() [][2]string {
	return [][2]string{{"device", h.Device}, {"libraries", h.Libraries}, {"processor", h.Processor}, {"blas", h.BLAS}, {"go", h.Go}, {"weir", h.Weir},
		{"settings", h.Settings}}
}

// delta is the difference of two samples' medians, and the probability of such
// samples if nothing had changed, in two columns.
func delta(old, now []float64) (text string, warnings []error) {
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	}
	c := benchmath.AssumeNothing.Compare(sample(old), sample(now))
	return c.FormatDelta(quantile(old, 0.5), quantile(now, 0.5)) + "\t" + c.String(), c.Warnings
}

// beyond names the cases that s has numbers of and other has not. name is that of s.
func (s *Saved) beyond(other *Saved, name string) (notes []string) {
	for _, r := range s.Results {
		if _, both := other.measured(r); !both && r.Err == nil && r.Skipped == "" {
			notes = append(notes, fmt.Sprintf("only in %s: %s: %s", name, r.Scenario, r.Case))
		}
	}
	return notes
}

// measured answers the result of the same case, if it has numbers.
func (s *Saved) measured(r Result) (Result, bool) {
	i := slices.IndexFunc(s.Results, func(o Result) bool {
		return o.Scenario == r.Scenario && o.Case == r.Case && o.Err == nil && o.Skipped == ""
	})
	if i < 0 {
		return Result{}, false
	}
	return s.Results[i], true
}
