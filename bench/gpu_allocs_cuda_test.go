//go:build cuda && !race

package bench

import "testing"

func TestRequiredAllocationsAreKeptOnAGPU(t *testing.T) {
	keepsAllocations(t, startGPU(t), []Scenario{gpuSmall})
}
