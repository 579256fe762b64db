//go:build cuda

package cuda_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/driver/drivertest"
)

// TestCUDAPassesTheConformanceSuite leaves the death of devices, from which a GPU
// does not come back, to TestADeviceDiesAsTheSuiteSays.
func TestCUDAPassesTheConformanceSuite(t *testing.T) {
	gpus(t)
	drivertest.Run(t, drivertest.Harness{Open: func(t *testing.T) driver.Family { return gpus(t) }, Stall: cudatest.Stall})
}

// mortalVariable tells a child process what to do with the suite.
const mortalVariable = "WEIR_CUDA_MORTAL_TEST"

// TestMortal is the suite with devices that may die, run by
// TestADeviceDiesAsTheSuiteSays: one test in each process, or none to list them.
func TestMortal(t *testing.T) {
	mode := os.Getenv(mortalVariable)
	if mode == "" {
		t.Skip("run by TestADeviceDiesAsTheSuiteSays")
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) driver.Family {
			if mode == "list" {
				t.Skip("listed")
			}
			return gpus(t)
		},
		Stall: cudatest.Stall,
		Kill:  cudatest.Kill,

		DeathSpreads: true,
	})
}

// TestADeviceDiesAsTheSuiteSays gives each test of death a process of its own.
func TestADeviceDiesAsTheSuiteSays(t *testing.T) {
	gpus(t)
	child := func(mode, pattern string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		suite := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.timeout=2m", "-test.run="+pattern)
		suite.Env = append(os.Environ(), mortalVariable+"="+mode)
		output, _ := suite.CombinedOutput() // the output says how it went
		return string(output)
	}
	names := regexp.MustCompile(`--- SKIP: TestMortal/Death/(\S+)`).FindAllStringSubmatch(child("list", "^TestMortal$/^Death$"), -1)
	if len(names) < 5 {
		t.Fatalf("the suite lists %d tests of death", len(names))
	}
	for _, name := range names {
		t.Run(name[1], func(t *testing.T) {
			output := child("run", "^TestMortal$/^Death$/^"+regexp.QuoteMeta(name[1])+"$")
			switch {
			case strings.Contains(output, "--- SKIP: TestMortal/Death/"+name[1]):
				t.Skip(output)
			case !strings.Contains(output, "--- PASS: TestMortal/Death/"+name[1]):
				t.Error(output)
			}
		})
	}
}
