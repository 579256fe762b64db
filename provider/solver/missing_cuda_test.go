//go:build cuda

package solver_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/provider/solver"
	"github.com/weirgo/weir/runtime"
)

// missingVariable has a child process look for a library that is not there.
const missingVariable = "WEIR_SOLVER_MISSING_TEST"

// TestMissing is run by TestAMissingLibraryIsNamedWhileBLASWorks.
func TestMissing(t *testing.T) {
	if os.Getenv(missingVariable) == "" {
		t.Skip("run by TestAMissingLibraryIsNamedWhileBLASWorks")
	}
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	l, err := blas.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := solver.Acquire(ctx); !errors.Is(err, weir.ErrNotSupported) {
		t.Errorf("a solver: %v; expected ErrNotSupported", err)
	} else {
		t.Logf("a solver: %v", err)
	}
	if err := errors.Join(l.Release(), rt.Close()); err != nil {
		t.Error(err)
	}
}

func TestAMissingLibraryIsNamedWhileBLASWorks(t *testing.T) {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
	folder := t.TempDir()
	for _, path := range filepath.SplitList(os.Getenv("WEIR_CUDA_LIBRARY_PATH")) {
		for _, name := range []string{"libcuda.so.1", "libcublas.so.13"} {
			if _, err := os.Stat(filepath.Join(path, name)); err == nil {
				_ = os.Symlink(filepath.Join(path, name), filepath.Join(folder, name)) // the first one counts
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestMissing$")
	cmd.Env = append(os.Environ(), missingVariable+"=1", "WEIR_CUDA_LIBRARY_PATH="+folder, "LD_LIBRARY_PATH=")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "a solver: <nil>") {
		t.Skip("the system has cuSOLVER")
	}
	want := "a solver: Device.NewSolver on cuda:0: libcusolver.so.12 or libcusolver.so.11 was found neither in"
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %q is not in\n%s", err, want, out)
	}
}
