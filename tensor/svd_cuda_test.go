//go:build cuda

package tensor

import (
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

func init() {
	if cuda.New().Count() > 0 {
		decomposers["cuda"] = func() driver.Family { return cuda.New() }
	}
}

// TestEveryFaultOfSVDOnAGPU is what
// TestEveryFaultOfSVDEndsInAnErrorOrTheRightValue says of the host.
func TestEveryFaultOfSVDOnAGPU(t *testing.T) {
	simulated(t)
	for _, death := range []bool{false, true} {
		solvers := cudatest.Live("cusolver")
		everyFault(t, death, svdProgram, func() driver.Family { return mortal{cuda.New()} }, func(n int) {
			if death {
				revive(t)
				solvers = cudatest.Live("cusolver")
			}
			if live := cudatest.Live("cusolver"); live != solvers {
				t.Errorf("call %d: there are %d handles of cuSOLVER and were %d", n, live, solvers)
			}
		})
	}
}
