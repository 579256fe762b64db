package compat

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compile compiles testdata/calls.c with the include folders given, and answers
// what the compiler says and what the object leaves to the linker.
func compile(t *testing.T, language string, includes ...string) (said string, undefined []string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("no gcc on Linux")
	}
	object := filepath.Join(t.TempDir(), "calls.o")
	args := []string{"-x", language, "-Wall", "-Werror", "-c", "testdata/calls.c", "-o", object}
	for _, include := range includes {
		args = append(args, "-I", include)
	}
	out, err := exec.CommandContext(t.Context(), gcc, args...).CombinedOutput()
	if err != nil {
		return string(out), nil
	}
	f, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && strings.HasPrefix(s.Name, "cu") {
			undefined = append(undefined, s.Name)
		}
	}
	slices.Sort(undefined)
	return string(out), undefined
}

// first are the first versions of what CUDA 13 changed.
var first = []string{
	"cuCtxCreate_v2", "cuEventElapsedTime",
	"cuGraphAddDependencies", "cuGraphGetEdges", "cuGraphNodeGetDependencies", "cuGraphNodeGetDependentNodes", "cuGraphRemoveDependencies",
	"cuMemAdvise", "cuMemPrefetchAsync",
}

func TestOlderCallsCompileToTheFirstVersionsWithEveryHeader(t *testing.T) {
	for _, language := range []string{"c", "c++"} {
		for _, header := range []string{"cuda12", "cuda13"} {
			t.Run(language+" "+header, func(t *testing.T) {
				if language == "c++" {
					if out, err := exec.Command("gcc", "-print-prog-name=cc1plus").Output(); err != nil || !filepath.IsAbs(strings.TrimSpace(string(out))) {
						t.Skip("no C++ compiler")
					}
				}
				said, undefined := compile(t, language, ".", filepath.Join("testdata", header))
				if diff := cmp.Diff(first, undefined); diff != "" {
					t.Errorf("%s%s", said, diff)
				}
			})
		}
	}
}

func TestWithoutCompatTheCallsDoNotCompileWithCUDA13(t *testing.T) {
	said, undefined := compile(t, "c", "testdata/cuda13")
	if undefined != nil || !strings.Contains(said, "cuCtxCreate") || !strings.Contains(said, "cuGraphGetEdges") {
		t.Errorf("the stand-in does not differ from CUDA 12: got %v %s", undefined, said)
	}
}
