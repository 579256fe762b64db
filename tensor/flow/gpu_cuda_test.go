//go:build cuda

package flow_test

import (
	"fmt"
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/driver/host"
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
