package lazy

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgo/weir"
)

func TestListsSayWhatDocSays(t *testing.T) {
	got, err := fakeList()
	if err != nil {
		t.Fatal(err)
	}
	want := Library{
		Name: "fake", Sonames: []string{"libweirfake.so.7", "libweirfake.so.6"}, Missing: 77, MissingName: "FAKE_MISSING",
		Functions: []Function{
			{Name: "fakeVersion"}, {Name: "fakeMany"}, {Name: "fakeVariadic"}, {Name: "fakeComplex"}, {Name: "fakeLarge"}, {Name: "fakeAbsent"},
			{Name: "fakeText", Else: "weir_lazy_no_text"}, {Name: "fakeSwapped", By: "fakeInstead"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestListsWithMistakesAreRefused(t *testing.T) {
	const head = "soname a.so\nmissing 1 A\n"
	for text, message := range map[string]string{
		"":                         "x.txt: expected a soname, a missing line and a function",
		"a\nmissing 1 A":           "x.txt: expected a soname, a missing line and a function",
		"soname a.so\na":           "x.txt: expected a soname, a missing line and a function",
		head:                       "x.txt: expected a soname, a missing line and a function",
		head + "a\n# a\nb\na":      "x.txt, line 6: got a again; expected each function once",
		head + "a b":               `x.txt, line 3: got "a b"; expected a function, alone or with 'by' or 'else' and another`,
		head + "a for b":           `x.txt, line 3: got "a for b"; expected a function, alone or with 'by' or 'else' and another`,
		head + "a-b":               `x.txt, line 3: got "a-b"; expected a C identifier`,
		head + "a by 1b":           `x.txt, line 3: got "1b"; expected a C identifier`,
		"soname a.so\nmissing x A": `x.txt, line 2: strconv.ParseInt: parsing "x": invalid syntax`,
	} {
		_, err := Parse("x", text)
		if err == nil || !errors.Is(err, weir.ErrArgument) || err.Error() != "lazy.Parse: "+message {
			t.Errorf("%q: got %v; expected %s", text, err, message)
		}
	}
	if _, err := Parse("lib-x", head+"a"); err == nil || err.Error() != `lazy.Parse: name: got "lib-x"; expected a C identifier` {
		t.Errorf("got %v", err)
	}
}

func TestTheCommittedListsAreTheThreeLibraries(t *testing.T) {
	names := map[string][]string{}
	for _, l := range Libraries() {
		names[l.Name] = l.Sonames
	}
	want := map[string][]string{
		"cuda":     {"libcuda.so.1"},
		"cublas":   {"libcublas.so.13", "libcublas.so.12"},
		"cusolver": {"libcusolver.so.12", "libcusolver.so.11"},
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// The headers of an installed CUDA 13, or of the wheels, are the reference: a
// name that none of them has is a mistake in a list.
func TestEveryListedFunctionIsInNVIDIAsHeaders(t *testing.T) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	var include string
	for _, root := range []string{os.Getenv("CUDA_HOME"), filepath.Join(os.Getenv("WEIR_CUDA_SDK"), "nvidia/cu13"),
		filepath.Join(cache, "weir/cuda-13.0/nvidia/cu13"), "/usr/local/cuda"} {
		text, err := os.ReadFile(filepath.Join(root, "include/cuda.h"))
		if err == nil && strings.Contains(string(text), "#define CUDA_VERSION 13") {
			include = filepath.Join(root, "include")
			break
		}
	}
	if include == "" {
		t.Skip("no headers of CUDA 13; make cuda-sdk installs them")
	}
	word := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	declared := map[string]bool{}
	for _, header := range []string{"cuda.h", "cublas_api.h", "cublas_v2.h", "cusolver_common.h", "cusolverDn.h"} {
		text, err := os.ReadFile(filepath.Join(include, header))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range word.FindAllString(string(text), -1) {
			declared[w] = true
		}
	}
	for _, l := range Libraries() {
		for _, f := range l.Functions {
			if !declared[f.Name] {
				t.Errorf("%s.txt: no header has %s", l.Name, f.Name)
			}
		}
		if !declared[l.MissingName] {
			t.Errorf("%s.txt: no header has %s", l.Name, l.MissingName)
		}
	}
}

func TestUnknownArchitecturesAreRefused(t *testing.T) {
	_, err := Sources(Libraries(), "riscv64")
	if !errors.Is(err, weir.ErrNotSupported) || err.Error() != "lazy.Sources: architecture: got riscv64; expected amd64 or arm64" {
		t.Errorf("got %v", err)
	}
}
