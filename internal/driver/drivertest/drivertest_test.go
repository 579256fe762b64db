package drivertest

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
)

func TestMain(m *testing.M) {
	if os.Getenv(mutantVariable) != "" {
		patience = time.Second
		os.Exit(m.Run()) // what a mutant leaves behind is no news
	}
	goleak.VerifyTestMain(m)
}

// mutantVariable names the mutant in the environment of a child process.
const mutantVariable = "WEIR_DRIVERTEST_MUTANT"

var errMutant = errors.New("the cause that the test gave")

// TestMutant is the suite over one mutant; it is run by
// TestTheSuiteCatchesEveryMutant, in a process of its own.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantVariable)
	if name == "" {
		t.Skip("run by TestTheSuiteCatchesEveryMutant")
	}
	Run(t, Harness{
		Open: func(*testing.T) driver.Family {
			return &mutantFamily{Family: host.New(host.Options{Devices: 2}), m: mutants[name], devices: map[int]*mutantDevice{}}
		},
		Kill: func(d driver.Device) error {
			d.(*mutantDevice).Kill(errMutant)
			return errMutant
		},
	})
}

func TestTheSuiteCatchesEveryMutant(t *testing.T) {
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			for _, caught := range m.caught {
				group, statement, _ := strings.Cut(caught, "/")
				// A mutant whose fault is a race may win it, so it has some tries.
				var output []byte
				failed := false
				for try := 0; try < 10 && !failed; try++ {
					suite := exec.CommandContext(t.Context(), os.Args[0], "-test.timeout=2m",
						"-test.run=^TestMutant$/^"+group+"$/^"+regexp.QuoteMeta(statement)+"$")
					suite.Env = append(os.Environ(), mutantVariable+"="+name)
					output, _ = suite.CombinedOutput() // it is to fail
					failed = strings.Contains(string(output), "--- FAIL: TestMutant/"+caught)
				}
				if !failed {
					t.Errorf("%q never failed:\n%s", caught, output)
				}
			}
		})
	}
}
