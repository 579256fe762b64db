package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() Result {
	zero, two, ok := int64(0), int64(2), true
	return Result{Scenario: "lease", Case: "stream / mutex", Device: "host:0", Unit: "ns/op", Value: 120, Floor: 10, Ratio: 12,
		Low: 11.5, High: 12.25, Spread: 0.75, Rounds: 3, Values: []float64{119, 120, 121}, Floors: []float64{10, 9.5, 10.5}, Allocs: &zero, FloorAllocs: &two, Limit: "value <= 150 ns/op", OK: &ok,
		Figures: []Figure{{"p50", 110, "ns"}, {"fraction", 0.5, ""}}, At: Point{Series: "stream", Count: 4},
		Peers: []PeerResult{{Name: "torch loop", Value: 240, Low: 230, High: 250, Values: []float64{230, 240, 250}}, {Name: "jax", Err: errors.New("it fell")}}}
}

func TestAResultIsOneLineOfJSONWithAllFields(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, sample()); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "\n") != 1 || !strings.Contains(b.String(), `"value <= 150 ns/op"`) {
		t.Errorf("wrote %q; expected one line with the limit as it is", b.String())
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"scenario": "lease", "case": "stream / mutex", "device": "host:0", "unit": "ns/op", "value": 120., "floor": 10.,
		"ratio": 12., "spread": 0.75, "ratio_low": 11.5, "ratio_high": 12.25, "rounds": 3., "allocs": 0., "floor_allocs": 2., "limit": "value <= 150 ns/op",
		"ok": true, "figures": []any{map[string]any{"name": "p50", "value": 110., "unit": "ns"}, map[string]any{"name": "fraction", "value": 0.5}},
		"at":     map[string]any{"series": "stream", "count": 4.},
		"values": []any{119., 120., 121.}, "floors": []any{10., 9.5, 10.5},
		"peers": []any{
			map[string]any{"name": "torch loop", "value": 240., "low": 230., "high": 250., "values": []any{230., 240., 250.}},
			map[string]any{"name": "jax", "value": 0., "low": 0., "high": 0., "error": "it fell"},
		}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fields differ (-want +got):\n%s", d)
	}
}

func TestAFailureHasALineOfJSONWithItsError(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, Result{Scenario: "s", Case: "c", Device: "host:0", Unit: "ns/op", Err: errors.New("it broke")}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["error"] != "it broke" {
		t.Errorf("error is %v; expected it broke", got["error"])
	}
	for _, name := range []string{"ok", "skipped"} {
		if _, ok := got[name]; ok {
			t.Errorf("a failed case has a field %s", name)
		}
	}
	b.Reset()
	if err := WriteJSON(&b, Result{Scenario: "s", Device: "host:0", Skipped: "it needs a GPU"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"skipped":"it needs a GPU"`) {
		t.Errorf("a skipped scenario is %s", b.String())
	}
}

func TestATableListsTheCasesOfEachScenario(t *testing.T) {
	missed := false
	second := Result{Scenario: "gemm", Case: "a", Unit: "us/op", Value: 3.14159, Floor: 0.5, Ratio: 6.283, Low: 6, High: 7, Limit: "ratio <= 1.053", OK: &missed}
	failed := Result{Scenario: "gemm", Case: "b", Err: errors.New("it broke")}
	skipped := Result{Scenario: "gpu", Skipped: "it needs a GPU"}
	var b bytes.Buffer
	table := NewTable(&b)
	for _, r := range []Result{sample(), skipped, second, failed} {
		if err := table.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `
lease
  value / floor   value   floor  unit   ratio   quartiles      allocs  required                also
  stream / mutex  120     10.0   ns/op  12.000  11.500-12.250  0 / 2   value <= 150 ns/op: ok  p50 110 ns, fraction 0.5
  + torch loop    240            ns/op  24.000  23.000-25.000  -       -                       
  + jax           failed                                                                       
  stream / mutex: jax failed: it fell

gpu
  not measured: it needs a GPU

gemm
  value / floor  value   floor  unit   ratio  quartiles    allocs  required                     also
  a              3.14    0.5    us/op  6.283  6.000-7.000  -       ratio <= 1.053: not reached  
  b              failed                                                                         
  b failed: it broke
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("the table differs (-want +got):\n%s", d)
	}
}
