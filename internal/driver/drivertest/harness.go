package drivertest

import (
	"slices"
	"testing"

	"github.com/weirgo/weir/internal/driver"
)

// Harness is what the suite must be told about a family.
type Harness struct {
	// Open answers the family for one test. It may be the same every time, as
	// long as a device that Kill killed is alive in the next test.
	Open func(t *testing.T) driver.Family
	// Stall holds back what is submitted to s after it, until release. On an
	// idle stream it returns when the stream is held. Several streams may be
	// stalled at once, and release may be called again. nil stalls through
	// Stream.Call.
	Stall func(s driver.Stream) (release func(), err error)
	// Kill makes the device's context die now, whatever its streams do, and
	// answers the cause that errors must match, or nil if it is not known. nil
	// where a device cannot be made to die.
	Kill func(d driver.Device) (cause error)
	// DeathSpreads says that the death of one device is that of all of the family,
	// with the same cause, which each of them learns by itself.
	DeathSpreads bool
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Device", deviceTests},
		{"Stream", streamTests},
		{"Event", eventTests},
		{"Mark", markTests},
		{"Order", orderTests},
		{"Notify", notifyTests},
		{"Memory", memoryTests},
		{"Pool", poolTests},
		{"Kernel", kernelTests()},
		{"Gemm", gemmTests()},
		{"SVD", svdTests()},
		{"Handle", handleTests},
		{"Capture", captureTests},
		{"Misuse", misuseTests},
		{"Stress", stressTests},
		{"Death", slices.Concat(deathTests, markDeathTests)},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) {
					test.run(&fixture{t: t, h: h, family: h.Open(t)})
				})
			}
		})
	}
}

// test is one statement about a family; its name is the statement.
type test struct {
	name string
	run  func(f *fixture)
}
