package bench

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirgo/weir"
)

// scenarioOf is a scenario of ready cases.
func scenarioOf(cases ...Case) Scenario {
	return Scenario{Name: "test", Cases: func(Env) []Case { return cases }}
}

// caseOf is a case that does nothing, with a check and a note of its closing.
func caseOf(name string, check error, closed *[]string) Case {
	nothing := each(func() error { return nil })
	return Case{Name: name, Unit: Nanoseconds, Open: func(context.Context) (*Trial, error) {
		return &Trial{Value: nothing, Floor: nothing, Fixed: 1000,
			Check: func() error { return check },
			Close: func() error { *closed = append(*closed, name); return nil }}, nil
	}}
}

func TestAFailedCheckFailsTheRunAndTheOthersAreMeasured(t *testing.T) {
	start(t)
	var closed []string
	var results []Result
	unopened := Case{Name: "unopened", Open: func(context.Context) (*Trial, error) { return nil, weir.ErrOutOfMemory }}
	err := Run(context.Background(), Options{Quick: true,
		Scenarios: []Scenario{scenarioOf(caseOf("wrong", wrong("7 is 8"), &closed), unopened, caseOf("right", nil, &closed))},
		Report:    func(r Result) error { results = append(results, r); return nil },
	})
	if !errors.Is(err, ErrCheck) || !errors.Is(err, weir.ErrOutOfMemory) || !strings.Contains(err.Error(), "test: wrong") {
		t.Errorf("Run answered %v; expected the failed check of test: wrong, and the memory's end", err)
	}
	if len(results) != 3 {
		t.Fatalf("%d results; expected 3", len(results))
	}
	if r := results[0]; !errors.Is(r.Err, ErrCheck) || r.Rounds != 0 {
		t.Errorf("the failed case: %+v; expected an error and no numbers", r)
	}
	if r := results[2]; r.Err != nil || r.Rounds == 0 || r.Device != "host:0" {
		t.Errorf("the case after it: %+v; expected numbers", r)
	}
	if len(closed) != 2 || closed[0] != "wrong" || closed[1] != "right" {
		t.Errorf("closed were %v; expected both that opened", closed)
	}
}

func TestAScenarioOfAnotherKindOfDeviceIsSkippedAndSaysSo(t *testing.T) {
	start(t)
	var closed []string
	only := scenarioOf(caseOf("only", nil, &closed))
	only.On = GPUOnly
	var results []Result
	err := Run(context.Background(), Options{Quick: true, Scenarios: []Scenario{only, scenarioOf(caseOf("other", nil, &closed))},
		Report: func(r Result) error { results = append(results, r); return nil }})
	if err != nil || len(results) != 2 || len(closed) != 1 {
		t.Fatalf("%v, %d results, %v closed; expected a skipped scenario and one case", err, len(results), closed)
	}
	if r := results[0]; r.Scenario != "test" || r.Case != "" || r.Rounds != 0 || r.Err != nil ||
		!strings.HasPrefix(r.Skipped, "it needs a GPU; this is host:0") {
		t.Errorf("the skipped scenario: %+v", r)
	}
	if r := results[1]; r.Skipped != "" || r.Rounds == 0 {
		t.Errorf("the other: %+v; expected numbers", r)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	start(t)
	ctx, cancel := context.WithCancel(context.Background())
	var closed []string
	reported := 0
	err := Run(ctx, Options{Quick: true,
		Scenarios: []Scenario{scenarioOf(caseOf("first", nil, &closed), caseOf("second", nil, &closed), caseOf("third", nil, &closed))},
		Report:    func(Result) error { reported++; return nil },
		Progress: func(_ string, part float64) {
			if part > 0.4 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || reported != 1 || len(closed) != 2 {
		t.Errorf("%v after %d reports with %v closed; expected a cancellation in the second case, closed too", err, reported, closed)
	}
}

func TestProgressGrowsOverAllCases(t *testing.T) {
	start(t)
	var closed []string
	last := 0.0
	labels := map[string]bool{}
	err := Run(context.Background(), Options{Quick: true,
		Scenarios: []Scenario{scenarioOf(caseOf("first", nil, &closed), caseOf("second", nil, &closed))},
		Report:    func(Result) error { return nil },
		Progress: func(label string, part float64) {
			if part < last || part > 1 {
				t.Errorf("progress went from %v to %v", last, part)
			}
			last, labels[label] = part, true
		},
	})
	if err != nil || last != 1 || !labels["test: first"] || !labels["test: second"] {
		t.Errorf("%v; progress to %v with labels %v; expected 1 and both cases", err, last, labels)
	}
}

func TestAnUnknownScenarioIsNamedWithTheKnownOnes(t *testing.T) {
	_, err := Find("lease", "leese")
	if !errors.Is(err, weir.ErrArgument) {
		t.Fatalf("Find answered %v; expected an argument error", err)
	}
	for _, part := range []string{`"leese"`, "gemm-large", "events"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	found, err := Find("events", "lease")
	if err != nil || len(found) != 2 || found[0].Name != "events" || found[1].Name != "lease" {
		t.Errorf("Find answered %d scenarios and %v; expected events and lease in that order", len(found), err)
	}
}

func TestAHeaderNamesWhatAFigureDependsOn(t *testing.T) {
	r := start(t)
	t.Setenv("OPENBLAS_NUM_THREADS", "3")
	var b bytes.Buffer
	if err := NewHeader(r.Device(), "v1.2.3", nil, []string{"weir", "bench", "lease"}).Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"date:", "host:0", "cores used", "threads", "go1.", "v1.2.3", "OPENBLAS_NUM_THREADS=3", "weir bench lease"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the header lacks %s:\n%s", part, b.String())
		}
	}
}
