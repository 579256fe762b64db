package devicetest

import (
	"slices"
	"testing"

	"github.com/weirgo/weir/internal/driver"
)

// Harness is what the suite must be told about a device family.
type Harness struct {
	// Families answers the families of one test, the one under test first. It
	// has a device that lives, whatever became of it in other tests.
	Families func(t *testing.T) []driver.Family
	// Stall holds back what is submitted to s after it, until release. On an idle
	// stream it returns when the stream is held. Several streams may be stalled at
	// once, and one several times; release may be called again.
	Stall func(s driver.Stream) (release func(), err error)
	// Kill makes the device's context die now, whatever its streams do, and
	// answers the cause that errors must match. nil where that is not to be tried.
	Kill func(d driver.Device) (cause error)
	// DeathSpreads says that the death of one device is that of all of the family
	// under test, with the same cause. The other families' devices go on.
	DeathSpreads bool
	// Held says what the family's devices hold, "" when it is nothing. nil where
	// they cannot be asked.
	Held func() string
}

// Run runs the whole suite, in groups that bear the names of the requirements'
// sections.
func Run(t *testing.T, h Harness) {
	hung := false // a test did not end: what it holds would fail the others
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) {
					if hung {
						t.Skip("an earlier test hangs")
					}
					f := &fixture{t: t, h: h}
					f.families = h.Families(t)
					t.Cleanup(func() { hung = f.hung })
					test.run(f)
				})
			}
		})
	}
}

// DeathTests names the tests of the group Death, which kill a device. Where it
// does not come back, each needs a process of its own.
func DeathTests() []string {
	var names []string
	for _, test := range deathTests {
		names = append(names, test.name)
	}
	return names
}

type group struct {
	name  string
	tests []test
}

// test is one statement; its name is the statement.
type test struct {
	name string
	run  func(f *fixture)
}

func groups() []group {
	return []group{
		{"Runtime", runtimeTests},
		{"Devices", deviceTests},
		{"Streams", slices.Concat(streamTests, waitingTests)},
		{"Completions", completionTests},
		{"Providers", providerTests},
		{"Buffers", slices.Concat(ledgerTests, partitionTests)},
		{"Memory", slices.Concat(memoryTests, exhaustedTests, plainTests)},
		{"Copies", slices.Concat(copyTests, pinnedTests)},
		{"Errors", errorTests},
		{"Decisions", decisionTests},
		{"Death", deathTests},
	}
}
