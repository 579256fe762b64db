// Package rafttest gives tests on the simulated CUDA driver a double of RAFT's
// libraries, which computes with plain loops. It shows that the right calls are made
// with the right arguments, and nothing about RAFT.
//
// A C compiler makes it. Concurrency: Build is to be called by one test at a time.
package rafttest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed testdata/stub.c
var source []byte

// Variable lists the folders of native libraries.
const Variable = "WEIR_NATIVE_LIBRARY_PATH"

// Build builds the double in a folder that the test removes, and answers the folder,
// which is to be that of Variable when a GPU's first handle is made. Where there is no
// compiler the test is skipped.
func Build(t testing.TB) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("the double of RAFT needs a C compiler: %v", err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "stub.c")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(folder, "libraftrkt.so")
	if out, err := exec.CommandContext(t.Context(), cc, "-std=c11", "-O1", "-shared", "-fPIC", "-o", library, file, "-ldl", "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Symlink(library, filepath.Join(folder, "libweirraft.so")); err != nil {
		t.Fatal(err)
	}
	return folder
}
