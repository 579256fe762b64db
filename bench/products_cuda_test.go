//go:build cuda

package bench

import (
	"testing"

	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

func TestReferencesOfProductsOnAGPUComputeWhatTheDefinitionSays(t *testing.T) {
	env := startGPU(t)
	live := func() (n int) {
		for _, kind := range []string{"stream", "event", "allocation", "host-allocation", "cublas", "graph", "graph-exec"} {
			n += cudatest.Live(kind)
		}
		return n
	}
	before := live()
	for name, p := range kinds {
		for _, streams := range []int{1, 3} {
			ref, err := loopReference(env, p, streams, false)
			if err != nil {
				t.Fatal(err)
			}
			referenceComputes(t, name, p, ref)
		}
	}
	p := independentProducts(8, 11) // whose bytes are a multiple of the alignment
	ref, err := batchReference(env, p)
	if err != nil {
		t.Fatal(err)
	}
	referenceComputes(t, "batch", p, ref)
	if n := live(); n != before {
		t.Errorf("%d things of the driver's live, %d before", n, before)
	}
	if misuse := cudatest.Misuse(); misuse != "" {
		t.Errorf("the driver was misused:\n%s", misuse)
	}
}

func TestFlowsOnAGPUHavePeersThatAreChecked(t *testing.T) {
	flowsHavePeers(t, startGPU(t))
	if misuse := cudatest.Misuse(); misuse != "" {
		t.Errorf("the driver was misused:\n%s", misuse)
	}
}

func TestFlowsOnAGPUAreDrawnWithTheirPeers(t *testing.T) {
	flowsAreDrawn(t, Env{Resources: startGPU(t).Resources}, "size-count64", "size-count4096", "count-size64", "count-size256")
}

// TestTheFloorOfIndependentProductsIsOneCall, and that of a chain one call for each
// product and nothing else.
func TestTheFloorOfIndependentProductsIsOneCall(t *testing.T) {
	env := startGPU(t)
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
	batch := open(t, flowIndependent.Cases(env)[0])
	before := counts("cublasSgemmBatched", "cublasSgemmStridedBatched")
	calls := callsOf(t, batch.Floor, batch.Fixed)
	after := counts("cublasSgemmBatched", "cublasSgemmStridedBatched")
	n := 0
	for f := range after {
		n += after[f] - before[f]
	}
	if n != 1 || calls["product"] != 0 {
		t.Errorf("%d batches and %v; expected one batch and nothing else", n, calls)
	}
	chain := open(t, flowChain.Cases(env)[0])
	calls = callsOf(t, chain.Floor, chain.Fixed)
	if calls["product"] != chain.Fixed || calls["cuEventRecord"] != 0 || calls["cuStreamWaitEvent"] != 0 {
		t.Errorf("%v; expected %d products, no record and no wait", calls, chain.Fixed)
	}
}
