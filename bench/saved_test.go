package bench

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirgo/weir"
)

func aHeader() Header {
	return Header{Date: time.Date(2026, 11, 30, 8, 15, 0, 0, time.UTC), Device: "cuda:0, NVIDIA H200", Libraries: "driver /lib/libcuda.so.550",
		Processor: "a processor", Load: "0.1 0.2 0.3", BLAS: "gonum v0.17.0, 2 threads", Go: "go1.26", Weir: "v1.2.3",
		Peers: "torch 2.4 in Python 3.11", Settings: "GOGC=50", Command: "weir bench <all> | tee"}
}

// saved is what a run of the results writes.
func saved(t *testing.T, h Header, results ...Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteRun(&b, h); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if err := WriteJSON(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func read(t *testing.T, name, text string) *Saved {
	t.Helper()
	s, err := ReadSaved(strings.NewReader(text), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatWasSavedIsReadBack(t *testing.T) {
	results := []Result{sample(), {Scenario: "lease", Case: "b", Unit: "ns/op", Err: errors.New("it broke")}, {Scenario: "gpu", Device: "host:0", Skipped: "it needs a GPU"}}
	text := saved(t, aHeader(), results...)
	if !strings.HasPrefix(text, `{"run":{"format":1,"date":"2026-11-30T08:15:00Z","device":"cuda:0, NVIDIA H200",`) {
		t.Errorf("the first line is %.120s", text)
	}
	want := &Saved{Name: "a.jsonl", Header: aHeader(), Results: results}
	messages := cmp.Comparer(func(a, b error) bool { return message(a) == message(b) })
	for _, end := range []string{"", "\n"} { // the last line's end is no part of it
		got := read(t, "a.jsonl", strings.TrimSuffix(text, "\n")+end)
		if d := cmp.Diff(want, got, messages, cmpopts.EquateApproxTime(0)); d != "" {
			t.Errorf("what was read differs (-want +got):\n%s", d)
		}
	}
}

func TestFilesThatAreNoResultsAreRefusedByLine(t *testing.T) {
	good := saved(t, aHeader(), sample())
	first, second, _ := strings.Cut(good, "\n")
	for text, want := range map[string]string{
		"":                                       "a.jsonl: the file is empty",
		"hello\n":                                "a.jsonl: line 1: no description of a run",
		"PK\x03\x04":                             "a.jsonl: line 1: it is cut off",
		"[]\n":                                   "a.jsonl: line 1: no description of a run",
		second:                                   "a.jsonl: line 1: no description of a run", // of before there was a format
		`{"run":{}}`:                             "a.jsonl: line 1: format 0; expected 1",
		`{"run":{"format":2}}`:                   "a.jsonl: line 1: format 2; expected 1",
		good[:len(good)-20]:                      "a.jsonl: line 2: it is cut off",
		good + "{\n" + second:                    "a.jsonl: line 3: no result: ",
		good + "\n":                              "a.jsonl: line 3: no result: ",
		good + "{}\n":                            "a.jsonl: line 3: no result: it names no scenario",
		good + second:                            "a.jsonl: line 3: lease: stream / mutex stands on line 2 already",
		first + "\n" + first:                     "a.jsonl: line 2: no result: it names no scenario",
		good[:len(first)+1] + `{"scenario":"s"}`: "a.jsonl: line 2: no result: it names no case",
		good[:len(first)+1] + `{"scenario":"s","case":"c","unit":"s/op"}`:                      `a.jsonl: line 2: no result: its unit is "s/op"`,
		good[:len(first)+1] + `{"scenario":"s","case":"c","unit":"ns/op"}`:                     "a.jsonl: line 2: no result: it has not a value and a floor of every round",
		good[:len(first)+1] + `{"scenario":"s","case":"c","unit":"ns/op","values":"a number"}`: "a.jsonl: line 2: no result: ",
	} {
		s, err := ReadSaved(strings.NewReader(text), "a.jsonl")
		if !errors.Is(err, weir.ErrArgument) || !strings.Contains(err.Error(), want) || s != nil {
			t.Errorf("%.60q: %v; expected %s", text, err, want)
		}
	}
}
