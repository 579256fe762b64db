package bench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/runtime"
)

// aDAG is two products of 2×3 and 3×2 matrices, and the product of both: six
// operations, of which the results were computed by hand.
func aDAG() *PeerWork {
	return &PeerWork{
		DType: dtype.Float32, Operations: 6,
		Inputs: []PeerInput{
			peerInput([]float32{1, 2, 3, 4, 5, 6}, 2, 3), peerInput([]float32{1, 0, 0, 1, 1, 1}, 3, 2), peerInput([]float32{0, 1, 1, 0, 2, 0}, 3, 2),
		},
		Products: [][2]int{{0, 1}, {0, 2}, {3, 4}},
		Results:  []int{2, 0},
		Check: peerCheck(func(i int) ([]float32, int, error) {
			return [][]float32{{117, 24, 267, 54}, {4, 5, 10, 11}}[i], 3, nil
		}),
	}
}

// fakePeers opens a fake peer.
func fakePeers(t *testing.T, does string) *Peers {
	t.Helper()
	p, err := openPeers(context.Background(), start(t).Device(), os.Args[0], []byte(does), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		folder := p.folder
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", folder, err)
		}
	})
	return p
}

// measured asks for aDAG, and answers names with values or errors.
func measured(t *testing.T, p *Peers) (all []string) {
	t.Helper()
	results, err := p.measure(context.Background(), aDAG(), effortOf(true), Nanoseconds)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		text := number(r.Value)
		if r.Err != nil {
			text = r.Err.Error()
		}
		all = append(all, r.Name+": "+text)
	}
	return all
}

func TestPeersMeasureTheSameWork(t *testing.T) {
	p := fakePeers(t, "right")
	if got, want := p.String(), "numpy 1.0, torch 2.0, jax 3.0 in Python 3.x"; got != want {
		t.Errorf("the peers are %q; expected %q", got, want)
	}
	for range 2 { // one process for all cases
		results, err := p.measure(context.Background(), aDAG(), effortOf(true), Microseconds)
		if err != nil || len(results) != 3 {
			t.Fatalf("%v, %v; expected three results", results, err)
		}
		want := PeerResult{Name: "torch loop", Value: 2, Low: 1.5, High: 2.5, Values: []float64{3, 1, 2}}
		near := cmp.Comparer(func(a, b float64) bool { return max(a-b, b-a) < 1e-9 })
		if d := cmp.Diff(want, results[1], near); d != "" {
			t.Errorf("torch differs (-want +got):\n%s", d)
		}
	}
}

func TestAPeerThatGoesWrongIsNamedAndTheOthersAreMeasured(t *testing.T) {
	for does, want := range map[string]string{
		"errs":     "torch loop: result 0: bench.Check: element 3 of the product is 55; expected 54",
		"shortens": "torch loop: bench.Check: result 0 has 15 bytes; expected 16",
		"omits":    "torch loop: bench.Check: it answered 0 results; expected 2",
		"quick":    "torch loop: bench.Check: its rounds took [0] s; expected positive times",
		"fails":    "torch loop: NotImplementedError: no such thing",
		"dies":     "torch: it ended: exit status 3: the sky fell",
		"chatters": `torch: it answered "hello\n"; expected a line of JSON`,
	} {
		t.Run(does, func(t *testing.T) {
			p := fakePeers(t, does)
			got := measured(t, p)
			if want := []string{"numpy loop: 2000", want, "jax loop: 2000"}; !prefixed(got, want) {
				t.Errorf("answered %q; expected %q", got, want)
			}
			// Only what ended the process is not asked again.
			again := want
			if name, why, _ := strings.Cut(want, ": "); name == "torch" {
				again = "torch: given up: " + why
			}
			if got := measured(t, p); !prefixed(got, []string{"numpy loop: 2000", again, "jax loop: 2000"}) {
				t.Errorf("then %q; expected %q", got, again)
			}
		})
	}
}

// prefixed ignores what errors say of the check beyond want.
func prefixed(got, want []string) bool {
	return slices.EqualFunc(got, want, func(g, w string) bool { return strings.HasPrefix(g, w) })
}

func TestAPeerThatHangsIsGivenUpAndTheOthersAreMeasured(t *testing.T) {
	p := fakePeers(t, "hangs")
	other := errors.New("not asked")
	p.givenUp["numpy"], p.givenUp["jax"] = other, other
	p.patience = time.Millisecond
	got := measured(t, p)
	if len(got) != 3 {
		t.Fatalf("answered %q; expected three results", got)
	}
	why, is := strings.CutPrefix(got[1], "torch: ")
	// A starved machine may not bring it the request in that time either.
	if !is || why != "it did not answer within 1ms" && why != "it did not take a request within 1ms" {
		t.Errorf("answered %q; expected that torch did not", got)
	}
	p.patience = time.Minute
	delete(p.givenUp, "numpy")
	delete(p.givenUp, "jax")
	want := []string{"numpy loop: 2000", "torch: given up: " + why, "jax loop: 2000"}
	if got := measured(t, p); !slices.Equal(got, want) {
		t.Errorf("then %q; expected %q", got, want)
	}
}

func TestPeersThatDoNotStart(t *testing.T) {
	d := start(t).Device()
	for _, c := range []struct{ does, want string }{
		{"old", "it speaks protocol 0; expected 1"},
		{"silent", "it did not answer within 1ms"},
	} {
		patience := time.Minute
		if c.does == "silent" {
			patience = time.Millisecond
		}
		_, err := openPeers(context.Background(), d, os.Args[0], []byte(c.does), patience)
		if !errors.Is(err, weir.ErrArgument) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a peer that is %s: %v; expected %q", c.does, err, c.want)
		}
	}
	if _, err := OpenPeers(context.Background(), d, "no/such/python"); !errors.Is(err, weir.ErrArgument) || !strings.Contains(err.Error(), "no/such/python") {
		t.Errorf("a python that is not there: %v; expected that it is named", err)
	}

	t.Setenv("PATH", t.TempDir())
	p, err := OpenPeers(context.Background(), d, "")
	if err != nil {
		t.Fatalf("without python3: %v; expected no peers", err)
	}
	if text := p.String(); !strings.HasPrefix(text, "none, since python3 does not start") || !strings.HasSuffix(text, "looked for numpy, torch, jax") {
		t.Errorf("without python3 there are %q", text)
	}
	if results, err := p.measure(context.Background(), aDAG(), effortOf(true), Nanoseconds); err != nil || results != nil {
		t.Errorf("without python3: %v, %v; expected nothing", results, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestWorkThatIsNotWellFormedIsRefused(t *testing.T) {
	p := fakePeers(t, "right")
	for part, spoil := range map[string]func(*PeerWork){
		"input 1 has 24 bytes and shape [3 3]":              func(w *PeerWork) { w.Inputs[1].Shape = []int{3, 3} },
		"input 0 has 24 bytes and shape [6]":                func(w *PeerWork) { w.Inputs[0].Shape = []int{6} },
		"product 0 is of shapes [2 3] and [2 3]":            func(w *PeerWork) { w.Products[0] = [2]int{0, 0} },
		"product 1 is of [4 0]; expected inputs or earlier": func(w *PeerWork) { w.Products[1] = [2]int{4, 0} },
		"product 0 is of [-1 0]":                            func(w *PeerWork) { w.Products[0] = [2]int{-1, 0} },
		"result 3; there are 3 products":                    func(w *PeerWork) { w.Results = []int{3} },
	} {
		w := aDAG()
		spoil(w)
		_, err := p.measure(context.Background(), w, effortOf(true), Nanoseconds)
		if !errors.Is(err, weir.ErrArgument) || !strings.Contains(err.Error(), part) {
			t.Errorf("answered %v; expected %q", err, part)
		}
	}
}

func TestARunHasItsPeersAndNoneFailsIt(t *testing.T) {
	p := fakePeers(t, "errs")
	nothing := each(func() error { return nil })
	with := Case{Name: "with", Unit: Nanoseconds, Open: func(context.Context) (*Trial, error) {
		return &Trial{Value: nothing, Floor: nothing, Fixed: 1000, Check: func() error { return nil }, Peers: aDAG()}, nil
	}}
	var closed []string
	var results []Result
	err := Run(context.Background(), Options{Quick: true, Peers: p, Scenarios: []Scenario{scenarioOf(with, caseOf("without", nil, &closed))},
		Report: func(r Result) error { results = append(results, r); return nil }})
	if err != nil || len(results) != 2 {
		t.Fatalf("%v, %d results; expected two and no failure", err, len(results))
	}
	if r := results[0]; len(r.Peers) != 3 || r.Peers[0].Err != nil || !errors.Is(r.Peers[1].Err, ErrCheck) || r.Rounds == 0 {
		t.Errorf("with peers: %+v; expected numbers, and of the second peer a failed check", r)
	}
	if r := results[1]; r.Peers != nil || r.Rounds == 0 {
		t.Errorf("without: %+v; expected numbers alone", r)
	}
}

// python is one with the module, or the test is skipped.
func python(t *testing.T, module string) string {
	t.Helper()
	name := os.Getenv("WEIR_PYTHON")
	if name == "" {
		name = "python3"
	}
	if err := exec.CommandContext(t.Context(), name, "-c", "import "+module).Run(); err != nil {
		t.Skipf("%s with %s: %v", name, module, err)
	}
	return name
}

func TestTheScriptSaysWhatIsThere(t *testing.T) {
	name := python(t, "json")
	folder := t.TempDir()
	// A module that would fail shows that nothing is imported to find its version.
	for _, module := range []string{"torch", "jax"} {
		if err := os.WriteFile(filepath.Join(folder, module+".py"), []byte("raise SystemExit('imported')"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	info := filepath.Join(folder, "torch-9.8.dist-info")
	if err := errors.Join(os.Mkdir(info, 0o700), os.WriteFile(filepath.Join(info, "METADATA"), []byte("Metadata-Version: 2.1\nName: torch\nVersion: 9.8\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", folder)
	p, err := OpenPeers(context.Background(), start(t).Device(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if text := p.String(); !strings.Contains(text, "torch 9.8, jax") {
		t.Errorf("there are %q; expected torch 9.8 and some jax", text)
	}
	for _, r := range measured(t, p) {
		if strings.HasPrefix(r, "torch") && !strings.Contains(r, "numpy") && !strings.Contains(r, "imported") {
			t.Errorf("answered %s; expected that torch, or before it numpy, cannot be imported", r)
		}
	}
}

// ranOn is the peers' work of products through flow, after their floor ran.
func ranOn(t *testing.T, r *runtime.Resources, p products) *PeerWork {
	t.Helper()
	x := flowOn(t, t.Context(), r, p)
	if _, err := x.ref.run(); err != nil {
		t.Fatal(err)
	}
	return x.peers()
}

// TestTheScriptMeasures needs NumPy, and has the other libraries that are there do
// the same.
func TestTheScriptMeasures(t *testing.T) {
	name := python(t, "numpy")
	r := start(t)
	p, err := OpenPeers(context.Background(), r.Device(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	alike := &PeerWork{DType: dtype.Float64,
		Inputs:   []PeerInput{peerInput([]float64{1, 2, 3, 4}, 2, 2), peerInput([]float64{0, 1, 1, 0}, 2, 2)},
		Products: [][2]int{{0, 1}, {1, 0}, {0, 0}},
		Check: peerCheck(func(i int) ([]float64, int, error) {
			return [][]float64{{2, 1, 4, 3}, {3, 4, 1, 2}, {7, 10, 15, 22}}[i], 2, nil
		})}
	loop := []string{"loop"}
	all := append(loop, "batched", "stack and batched")
	work := map[string]*PeerWork{"a DAG": aDAG(), "alike": alike}
	want := map[string][]string{"a DAG": loop, "alike": all, "independent": all, "chain": loop, "mixed": loop, "layers": loop, "many shapes": loop}
	for kind, products := range kinds {
		work[kind] = ranOn(t, r, products)
	}
	work["many shapes"] = ranOn(t, r, mixedProducts(1, 9, 100))
	for kind, w := range work {
		results, err := p.measure(context.Background(), w, effortOf(true), Nanoseconds)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range results {
			if kind == "many shapes" && strings.HasPrefix(r.Name, "jax") { // which compiles each
				if r.Err == nil || !strings.Contains(r.Err.Error(), "shapes to compile; at most 64 are") {
					t.Errorf("%s: %+v; expected that there are too many", kind, r)
				}
				continue
			}
			if r.Err != nil || r.Value <= 0 || len(r.Values) < 3 || r.Low > r.Value || r.High < r.Value {
				t.Errorf("%s: %+v; expected times", kind, r)
			}
			if variant, is := strings.CutPrefix(r.Name, "numpy "); is {
				names = append(names, variant)
			}
		}
		if !slices.Equal(names, want[kind]) {
			t.Errorf("%s: NumPy computed by %q; expected %q", kind, names, want[kind])
		}
		t.Logf("%s: %d results, of %v", kind, len(results), p)
	}
	// A pass that is many operations is told by the operation.
	many := aDAG()
	many.Operations = 6000
	few, err := p.measure(context.Background(), aDAG(), effortOf(true), Nanoseconds)
	if err != nil {
		t.Fatal(err)
	}
	lots, err := p.measure(context.Background(), many, effortOf(true), Nanoseconds)
	if err != nil || lots[0].Value > few[0].Value/30 {
		t.Errorf("%v; one of 6000 operations takes %v ns, and one of 6 in the same pass %v", err, lots[0].Value, few[0].Value)
	}
}
