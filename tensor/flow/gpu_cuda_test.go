//go:build cuda

package flow_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

// TestOnAGPU is the tests that name no device, on a GPU and the host device.
func TestOnAGPU(t *testing.T) {
	if cuda.New().Count() == 0 {
		t.Skip("there is no GPU")
	}
	before := where
	defer func() { where = before }()
	where = world{[2]string{"cuda:0", "host:0"}, func(inline bool) []driver.Family {
		return []driver.Family{cuda.New(), host.New(host.Options{HandOver: !inline})}
	}}
	for name, test := range map[string]func(*testing.T){
		"programs":            TestOperationsMeanWhatTheirDirectFormsMean,
		"programs with tasks": TestOperationsAndTasksMeanTheOrderOfTheirCalls,
		"exhausted":           TestAnExhaustedPoolParksTheOperationAndNoLane,
		"cancelled parked":    TestCancellingAParkedOperationPoisonsItAlone,
		"cancelled aside":     TestCancellingAnOperationAsidePoisonsItAlone,
		"refused":             TestWhatCannotBeIsRefusedWithTheOperationAndTheLine,
		"poison":              TestAFailedOperationInPlacePoisonsWhatItWasToChange,
		"no runtime":          TestWithoutARuntimeEveryOperationSaysSo,
		"scope":               TestAScopeFreesWhatIsStillToBeLaunched,
		"keep":                TestKeepTakesAResultOutOfTheScope,
		"scope aside":         TestAScopeDoesNotWaitForWhatStandsAside,
		"scope of a task":     TestATaskFreesItsScope,
		"freed":               TestAFreedValueIsOneThatWasNeverWritten,
		"free":                TestFreeWaitsForEarlierReaders,
		"in and out":          TestAnOperationReadsWhatItChanges,
		"reader":              TestAReaderHoldsOffTheOperationInPlace,
		"einsum":              TestADeepEinsumChainIsThatOfTheDirectForm,
		"products":            TestProgramsOfProductsMeanWhatTheirDirectFormsMean,
		"products with tasks": TestProgramsOfProductsAndTasksMeanTheOrderOfTheirCalls,
		"a launch":            TestProductsThatNeedNothingOfEachOtherShareALaunch,
		"chains":              TestChainsAreLoweredStepByStep,
		"reproducible":        TestAReproducibleProgramHasTheSameBitsInEveryRun,
		"a member":            TestAMemberOfABatchFailsAlone,
		"a batch":             TestAFailureOfABatchIsOfItsMembers,
		"views":               TestViewsOfOneBufferAreTargetsOfOneBatch,
		"scope of a batch":    TestAScopeFreesWhatABatchMade,
		"known":               TestWhatABatchMadeIsKnownBeforeTheNextOneWaits,
		"a long chain":        TestALongChainOfProductsNeedsLittleMemory,
	} {
		t.Run(name, test)
	}
}

// mortal makes the simulator's device one that a plan can kill.
type mortal struct{ driver.Family }

func (m mortal) Open(ordinal int) (driver.Device, error) {
	d, err := m.Family.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return mortalDevice{d}, nil
}

type mortalDevice struct{ driver.Device }

func (d mortalDevice) Kill(error) { cudatest.Kill(d.Device) }

// TestEveryFaultOnAGPU is what TestEveryFaultEndsInAPoisonOrTheRightValue says of
// the host.
func TestEveryFaultOnAGPU(t *testing.T) {
	if cudatest.Simulator() == "" {
		t.Skip("the driver is no simulator")
	}
	for _, death := range []bool{false, true} {
		t.Run(fmt.Sprintf("death %t", death), func(t *testing.T) {
			everyFault(t, false, death, func() driver.Family { return mortal{cuda.New()} }, func() {
				if !death {
					return
				}
				if left := cudatest.Left("context"); left != "" {
					t.Fatal(left)
				}
				cudatest.Revive()
			})
		})
	}
}

// TestNoProductOfABatchIsAppliedTwiceOnAGPU is what TestNoProductOfABatchIsAppliedTwice
// says of the host.
func TestNoProductOfABatchIsAppliedTwiceOnAGPU(t *testing.T) {
	if cudatest.Simulator() == "" {
		t.Skip("the driver is no simulator")
	}
	for _, death := range []bool{false, true} {
		t.Run(fmt.Sprintf("death %t", death), func(t *testing.T) {
			noneTwice(t, death, func() driver.Family { return mortal{cuda.New()} }, func() {
				if !death {
					return
				}
				if left := cudatest.Left("context"); left != "" {
					t.Fatal(left)
				}
				cudatest.Revive()
			})
		})
	}
}

// TestProductsOfOneLevelAreOneCallOfTheLibrary, whatever their shapes.
func TestProductsOfOneLevelAreOneCallOfTheLibrary(t *testing.T) {
	if cudatest.Simulator() == "" {
		t.Skip("the driver is no simulator")
	}
	before := where
	defer func() { where = before }()
	where = world{[2]string{"cuda:0", "host:0"}, func(bool) []driver.Family { return []driver.Family{cuda.New(), host.New(host.Options{})} }}
	ctx := inOneWindow(t, runtime.ResourceOptions{}, nil)
	functions := []string{"cublasGemmGroupedBatchedEx_64", "cublasDgemmBatched_64", "cublasDgemm_v2_64", "cublasDgemmStridedBatched_64", "cublasGemmEx_64", "cuLaunchKernel"}
	made := map[string]int{}
	all, want := asksFor(ctx, 64)
	for _, f := range functions {
		made[f] = -cudatest.Count(f)
	}
	if err := all[63].Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for _, f := range functions {
		if made[f] += cudatest.Count(f); made[f] == 0 {
			delete(made, f)
		}
	}
	if expected := map[string]int{"cublasGemmGroupedBatchedEx_64": 1}; !maps.Equal(made, expected) {
		t.Errorf("64 products are %v; expected %v", made, expected)
	}
	for i, v := range all {
		wants(t, ctx, v, want[i]...)
	}
}
