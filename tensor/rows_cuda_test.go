//go:build cuda

package tensor

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/provider/raft"
	"github.com/weirgo/weir/provider/raft/rafttest"
	"github.com/weirgo/weir/runtime"
)

func init() {
	if cuda.New().Count() > 0 {
		rowDevices["cuda"] = startWithRAFT
	}
}

// startWithRAFT starts a GPU: a simulated one with a double of RAFT. Without RAFT's
// libraries the test is skipped with the reason.
func startWithRAFT(t *testing.T) context.Context {
	t.Helper()
	if err := cuda.New().Unavailable(); err != nil {
		t.Skip(err)
	}
	double(t)
	ctx := startOn(t, []driver.Family{cuda.New()}, func(o *runtime.Options) { o.Devices = []string{"cuda:0"} })
	if _, err := raft.Of(must(runtime.Here(ctx))); errors.Is(err, weir.ErrNotSupported) {
		t.Skip(err)
	}
	return ctx
}

// double has the simulated driver's GPUs use the double of RAFT, once it is loaded for
// the rest of the process.
func double(t *testing.T) {
	t.Helper()
	if cudatest.Simulated() && os.Getenv(lackingVariable) == "" {
		t.Setenv(rafttest.Variable, rafttest.Build(t))
	}
}

// TestEveryFaultOfOperationsOnRowsOnAGPU is what
// TestEveryFaultOfOperationsOnRowsEndsInAnErrorOrTheRightValue says of the host.
func TestEveryFaultOfOperationsOnRowsOnAGPU(t *testing.T) {
	simulated(t)
	double(t)
	for _, death := range []bool{false, true} {
		everyFault(t, death, rowsProgram, func() driver.Family { return mortal{cuda.New()} }, func(int) {
			if death {
				revive(t)
			}
			nothing(t, cudatest.Live("cublas"))
		})
	}
}

// TestWhatRAFTDoesNotTakeIsRefused on a GPU; a host device computes it.
func TestWhatRAFTDoesNotTakeIsRefused(t *testing.T) {
	ctx := startWithRAFT(t)
	c, h := must(Zeros(ctx, Complex64, 3, 3)), must(Zeros(ctx, Float16, 2, 2))
	for want, err := range map[string]error{
		"tensor.MatMul: the arrays are complex64; RAFT multiplies float32 and float64": second(MatMul(ctx, c, c, RAFT)),
		"tensor.GemmInto: the arrays are float16; RAFT multiplies float32 and float64": GemmInto(ctx, 1, h, h, 0, must(Zeros(ctx, Float16, 2, 2)), RAFT),
		"tensor.RandomizedSVD: a is complex64; RAFT takes float32 and float64":         func() error { _, _, _, err := RandomizedSVD(ctx, c, 1, RAFT); return err }(),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Errorf("got %v\nexpected %s", err, want)
		}
	}
}
