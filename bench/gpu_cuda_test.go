//go:build cuda

package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// startGPU is start on a GPU; without one the test is skipped.
func startGPU(t *testing.T) Env {
	t.Helper()
	if err := runtime.NoGPU(); err != nil {
		t.Skip(err)
	}
	return Env{Resources: startWith(t, runtime.Options{}), Quick: true}
}

// open readies a case, whose check must hold, until the test ends.
func open(t *testing.T, c Case) *Trial {
	t.Helper()
	trial, err := c.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := trial.Close(); err != nil {
			t.Error(err)
		}
		if misuse := cudatest.Misuse(); misuse != "" {
			t.Errorf("the driver was misused:\n%s", misuse)
		}
	})
	if err := trial.Check(); err != nil {
		t.Fatal(err)
	}
	return trial
}

// counts is how often each function was called.
func counts(functions ...string) map[string]int {
	n := map[string]int{}
	for _, f := range functions {
		n[f] = cudatest.Count(f)
	}
	return n
}

// callsOf counts the driver's calls of a round of n operations.
func callsOf(t *testing.T, loop Loop, n int) map[string]int {
	t.Helper()
	functions := []string{"cublasSgemm_v2", "cublasSgemm_v2_64", "cuStreamWaitEvent", "cuEventRecord", "cuLaunchHostFunc", "cuMemAllocFromPoolAsync",
		"cublasSetStream_v2", "cuEventCreate"}
	before := counts(functions...)
	if _, err := loop(n); err != nil {
		t.Fatal(err)
	}
	after := counts(functions...)
	for f, n := range before {
		after[f] -= n
	}
	after["product"] = after["cublasSgemm_v2"] + after["cublasSgemm_v2_64"]
	return after
}

func TestEveryScenarioRunsOnAGPUAndItsChecksHold(t *testing.T) {
	startGPU(t)
	everyScenarioRuns(t)
	if misuse := cudatest.Misuse(); misuse != "" {
		t.Errorf("the driver was misused:\n%s", misuse)
	}
}

// TestASubmissionMakesTheDriverCallsOfItsFloor, but for its waits: as many products and
// records, and no host function, memory, event or change of a handle's stream.
func TestASubmissionMakesTheDriverCallsOfItsFloor(t *testing.T) {
	env := startGPU(t)
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
	const rounds, burst = 4, 8
	for i, waits := range []int{0, rounds * (burst - 1)} {
		c := gpuSmallCases(env)[i]
		trial := open(t, c)
		for range 2 { // each stream and handle has had its first use then
			callsOf(t, trial.Value, burst)
		}
		value, raw := callsOf(t, trial.Value, rounds*burst), callsOf(t, trial.Floor, rounds*burst)
		for _, f := range []string{"product", "cuEventRecord", "cuLaunchHostFunc", "cuMemAllocFromPoolAsync", "cublasSetStream_v2", "cuEventCreate"} {
			if value[f] != raw[f] {
				t.Errorf("%s: %d of %s; the floor makes %d", c.Name, value[f], f, raw[f])
			}
		}
		if n := value["cuStreamWaitEvent"]; n > 0 { // a product of one result goes on where the last one ran
			t.Errorf("%s: %d waits; expected none", c.Name, n)
		}
		if raw["product"] != rounds*burst || raw["cuStreamWaitEvent"] != waits || raw["cuEventRecord"] != rounds*burst {
			t.Errorf("%s: the floor made %v; expected %d products and records and %d waits", c.Name, raw, rounds*burst, waits)
		}
	}
}

// TestAChainMakesNoFurtherWaitAndNoHostFunction, on one lease and by operations that
// each lease: what follows goes on where its cause ran, with the same handle.
func TestAChainMakesNoFurtherWaitAndNoHostFunction(t *testing.T) {
	env := startGPU(t)
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
	for _, c := range gpuChainCases(env) {
		value := callsOf(t, open(t, c).Value, smallChainLength)
		// The first operations may have to wait for what other streams wrote, the four
		// matrices, and bind their handle, which waits for its last stream.
		if value["product"] != smallChainLength || value["cuStreamWaitEvent"] > 4+value["cublasSetStream_v2"] || value["cublasSetStream_v2"] > 2 || value["cuLaunchHostFunc"] != 0 {
			t.Errorf("%s: %v; expected %d products, at most four waits and one for each handle bound, of those two, and no host function", c.Name, value, smallChainLength)
		}
	}
}

func TestAWrongResultOnTheGPUFailsTheCheck(t *testing.T) {
	env := startGPU(t)
	x := &rig{ctx: runtime.On(t.Context(), env.Resources.Device()), r: env.Resources}
	var err error
	if x.gpu, err = floor.Open(0, 1); err != nil {
		t.Fatal(err)
	}
	x.later(x.gpu.Close)
	defer func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	}()
	const n = 16
	l, err := newLargeChain[float64](x, n, floor.Double)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.check(); err != nil {
		t.Errorf("the right product: %v", err)
	}
	changed := make([]float64, n*n)
	if _, err := x.gpu.CopyOut(bytesOf(changed), l.b.at); err != nil {
		t.Fatal(err)
	}
	changed[5] += 1e-6
	if _, err := x.gpu.CopyIn(l.b.at, bytesOf(changed)); err != nil {
		t.Fatal(err)
	}
	if err := l.check(); !errors.Is(err, ErrCheck) {
		t.Errorf("with an operand that differs: %v; expected a failed check", err)
	}

	copies, err := newTransfer(x, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	value, raw, err := copies.toSlice()
	if err != nil {
		t.Fatal(err)
	}
	if err := copies.check(value, raw); err != nil {
		t.Errorf("the right copy: %v", err)
	}
	copies.words[1000]++
	if err := copies.check(value, raw); !errors.Is(err, ErrCheck) {
		t.Errorf("a copy that differs: %v; expected a failed check", err)
	}
}

func TestMemoryThatGrowsOnTheGPUFailsTheCheck(t *testing.T) {
	env := startGPU(t)
	m, err := buffer.Of(env.Resources)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := floor.Open(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := &rig{ctx: t.Context(), r: env.Resources, gpu: gpu, end: []func() error{gpu.Close}}
	f := &flat{x: x, memory: m}
	var kept []*buffer.Buffer
	keeps := func() error {
		b, err := m.New(4 << 20)
		kept = append(kept, b)
		return err
	}
	if err := f.check(keeps, 0, 20); !errors.Is(err, ErrCheck) || f.device < 20*4<<20 {
		t.Errorf("20 blocks of 4 MiB, kept: %v, and the device's memory grew by %d; expected a failed check", err, f.device)
	}
	for _, b := range kept {
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(f.check(f.once, 1000, 1000), x.close()); err != nil {
		t.Error(err)
	}
}

// TestResourcesMakeNoHandleBeforeItsFirstUse counts cuBLAS's handles.
func TestResourcesMakeNoHandleBeforeItsFirstUse(t *testing.T) {
	env := startGPU(t)
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
	x := &rig{ctx: t.Context(), r: env.Resources}
	r, err := runtime.NewResources(env.Resources.Device(), runtime.ResourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := cudatest.Live("cublas") + cudatest.Live("cusolver"); n != 0 {
		t.Errorf("%d handles after the start", n)
	}
	if _, err := firstProduct(x, r); err != nil {
		t.Fatal(err)
	}
	if n := cudatest.Live("cublas"); n != stream.DefaultCount {
		t.Errorf("%d handles after the first product; expected %d", n, stream.DefaultCount)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := cudatest.Live("cublas"); n != 0 {
		t.Errorf("%d handles after Close", n)
	}
}
