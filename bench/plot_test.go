package bench

import (
	"bytes"
	"errors"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// at is a case of 2 us, with a floor of 1 us and a peer of 4 us, at a point.
func at(series string, size, count int) Result {
	return Result{Scenario: "products", Case: series, Unit: "ns/op", Value: 2000, Floor: 1000, At: Point{series, size, count},
		Peers: []PeerResult{{Name: "torch loop", Value: 4000}, {Name: "jax", Err: errors.New("it fell")}}}
}

// drawn are the plots' names, with the lines and the places of their points.
func drawn(all []Plot) map[string]map[string][]float64 {
	names := map[string]map[string][]float64{}
	for _, p := range all {
		names[p.Name] = map[string][]float64{}
		for _, l := range p.lines {
			for _, xy := range l.points {
				name := l.series + ": " + l.of
				names[p.Name][name] = append(names[p.Name][name], xy.X, xy.Y)
			}
		}
	}
	return names
}

func TestPlotsAreAgainstWhateverVaries(t *testing.T) {
	failed, unplaced, other := at("loop", 32, 1), at("", 64, 1), at("alone", 64, 1)
	failed.Err, other.Scenario = errors.New("it broke"), "other" // a single point is no plot
	results := []Result{at("loop", 16, 1), at("loop", 8, 1), at("loop", 8, 10), at("batch", 8, 10), at("batch", 8, 1), failed, unplaced, other}
	want := map[string]map[string][]float64{
		"products-size-count1": {
			"loop: Weir": {8, 2, 16, 2}, "loop: floor": {8, 1, 16, 1}, "loop: torch loop": {8, 4, 16, 4},
			"batch: Weir": {8, 2}, "batch: floor": {8, 1}, "batch: torch loop": {8, 4},
		},
		"products-count-size8": {
			"loop: Weir": {1, 2, 10, 2}, "loop: floor": {1, 1, 10, 1}, "loop: torch loop": {1, 4, 10, 4},
			"batch: Weir": {1, 2, 10, 2}, "batch: floor": {1, 1, 10, 1}, "batch: torch loop": {1, 4, 10, 4},
		},
	}
	all := Plots(aHeader(), results)
	if d := cmp.Diff(want, drawn(all), cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Errorf("the plots differ (-want +got):\n%s", d)
	}
	if got, want := all[0].title, "products, count 1\ncuda:0, NVIDIA H200, 2026-11-30 08:15 UTC"; got != want {
		t.Errorf("the title is %q; expected %q", got, want)
	}
}

func TestFlowsAreDrawnWithTheirPeers(t *testing.T) {
	flowsAreDrawn(t, Env{Resources: start(t)}, "size-count64", "count-size64")
}

// flowsAreDrawn checks that the cases of flow-independent are in these plots, each with
// a line for Weir, the floor and a peer.
func flowsAreDrawn(t *testing.T, env Env, names ...string) {
	t.Helper()
	var results []Result
	for _, c := range flowIndependent.Cases(env) {
		r := at(c.At.Series, c.At.Size, c.At.Count)
		r.Scenario = flowIndependent.Name
		results = append(results, r)
	}
	all := drawn(Plots(aHeader(), results))
	for _, name := range names {
		name = flowIndependent.Name + "-" + name
		if lines := all[name]; len(lines) != 3 {
			t.Errorf("%s has the lines %v; expected three", name, lines)
		}
		for line, points := range all[name] {
			if len(points) < 4 {
				t.Errorf("%s: %s has the points %v; expected two or more", name, line, points)
			}
		}
	}
	if len(all) != len(names) {
		t.Errorf("%d plots; expected %q", len(all), names)
	}
}

func TestASeriesThatAllLinesAreOfIsInTheTitle(t *testing.T) {
	one := Plots(aHeader(), []Result{at("loop", 8, 0), at("loop", 16, 0)})
	title, names := one[0].legend()
	if want := []string{"Weir", "floor", "torch loop"}; !strings.HasPrefix(title, "loop\nproducts\n") || !slices.Equal(names, want) {
		t.Errorf("of one series: title %q, lines %q; expected that of loop, and %q", title, names, want)
	}
	two := Plots(aHeader(), []Result{at("loop", 8, 0), at("loop", 16, 0), at("batch", 8, 0), at("batch", 16, 0)})
	title, names = two[0].legend()
	if !strings.HasPrefix(title, "products\n") || len(names) != 6 || names[0] != "loop: Weir" || names[3] != "batch: Weir" {
		t.Errorf("of two: title %q, lines %q; expected each with its series", title, names)
	}
}

func TestAPlotIsAPicture(t *testing.T) {
	flat := []Result{at("loop", 8, 0), at("loop", 16, 0)} // Weir, floor and peer alike
	for i := range flat {
		flat[i].Value, flat[i].Floor, flat[i].Peers = 1000, 1000, nil
	}
	free := []Result{at("loop", 8, 0), at("loop", 16, 0)}
	free[0].Floor = 0
	for name, results := range map[string][]Result{"plain": {at("loop", 8, 0), at("loop", 1024, 0)}, "flat": flat, "free": free} {
		all := Plots(aHeader(), results)
		if len(all) != 1 || all[0].Name != "products-size" {
			t.Fatalf("%s: %d plots; expected products-size", name, len(all))
		}
		var b bytes.Buffer
		if err := all[0].Write(&b); err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		colours := map[any]bool{}
		for x := range picture.Bounds().Dx() {
			for y := range picture.Bounds().Dy() {
				colours[picture.At(x, y)] = true
			}
		}
		if len(colours) < 10 {
			t.Errorf("%s: %v with %d colours; expected a picture", name, picture.Bounds(), len(colours))
		}
	}
}
