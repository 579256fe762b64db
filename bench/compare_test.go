package bench

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rounds is a case whose rounds took so long, around a median.
func rounds(name string, value, floor float64) Result {
	r := Result{Scenario: "lease", Case: name, Unit: "ns/op"}
	var values, floors []float64
	for i := -3; i <= 3; i++ {
		values = append(values, value+float64(i))
		floors = append(floors, floor+float64(i)/10)
	}
	r.summarise(values, floors)
	return r
}

func compared(t *testing.T, old, now *Saved) string {
	t.Helper()
	var b bytes.Buffer
	if err := Compare(&b, old, now); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The probabilities are those of Mann and Whitney's tables for seven and seven: 2
// of 3432 orders when no round of one is among those of the other, and 1 when both
// are alike.
func TestAComparisonShowsWhatTheRoundsShow(t *testing.T) {
	few := Result{Scenario: "lease", Case: "few", Unit: "ns/op"}
	few.summarise([]float64{1, 2, 3}, []float64{1, 1, 1})
	fewNow := Result{Scenario: "lease", Case: "few", Unit: "ns/op"}
	fewNow.summarise([]float64{7, 8, 9}, []float64{1, 1, 1})
	failed := Result{Scenario: "lease", Case: "fails now", Unit: "ns/op", Err: wrong("7 is 8")}
	inMicroseconds := rounds("another unit", 100, 10)
	inMicroseconds.Unit = "us/op"
	skipped := Result{Scenario: "gpu", Skipped: "it needs a GPU"}

	old := &Saved{"old.jsonl", aHeader(), []Result{rounds("slower", 100, 10), rounds("same", 100, 10), few, rounds("gone", 1, 1), rounds("fails now", 100, 10),
		rounds("another unit", 100, 10), skipped}}
	h := aHeader()
	h.Date, h.Device, h.Command, h.Load = h.Date.AddDate(0, 0, 1), "cuda:0, NVIDIA H100", "another", "9 9 9"
	now := &Saved{"new.jsonl", h, []Result{rounds("slower", 150, 5), rounds("same", 100, 10), fewNow, failed, rounds("came", 1, 1), inMicroseconds, skipped}}

	want := `old: old.jsonl, of 2026-11-30 08:15 UTC
new: new.jsonl, of 2026-12-01 08:15 UTC
the runs differ in device: "cuda:0, NVIDIA H200", now "cuda:0, NVIDIA H100"

lease
  case    old   new   unit   delta                 floor's delta  
  slower  100   150   ns/op  +50.00%  p=0.001 n=7  -50.00%        p=0.001 n=7
  same    100   100   ns/op  ~        p=1.000 n=7  ~              p=1.000 n=7
  few     2.00  8.00  ns/op  ~        p=0.100 n=3  ~              p=1.000 n=3

lease: few: need >= 4 samples to detect a difference at alpha level 0.05
not compared: lease: another unit is in ns/op, now in us/op
only in old: lease: gone
only in old: lease: fails now
only in new: lease: came
`
	if d := cmp.Diff(want, compared(t, old, now)); d != "" {
		t.Errorf("the comparison differs (-want +got):\n%s", d)
	}
}
