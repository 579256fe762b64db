//go:build cuda

package devicetest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/devicetest"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/driver/host"
)

// hardware are the GPUs of a real driver. They are one family for the whole process:
// making a context and loading its kernels takes a GPU half a second.
var hardware = sync.OnceValue(cuda.New)

// visible are the GPUs. The simulator's are new for each test, so that they are
// seen to leave nothing.
func visible() driver.Family {
	if cudatest.Simulated() {
		return cuda.New()
	}
	return hardware()
}

// gpus are the GPUs and a host device beside them. Without a GPU the test is
// skipped with the reason, or fails where WEIR_TEST_CUDA=1 says that there is
// one.
func gpus(t *testing.T) []driver.Family {
	t.Helper()
	f := visible()
	switch {
	case f.Count() > 0:
	case os.Getenv("WEIR_TEST_CUDA") == "1":
		t.Fatal(f.Unavailable())
	default:
		t.Skip(f.Unavailable())
	}
	before := left() // by a test that failed
	t.Cleanup(func() { expectLeft(t, before) })
	return []driver.Family{f, host.New(host.Options{HandOver: true})}
}

// left is what the simulated devices hold; of a real GPU it is not known.
func left() string {
	var all []string
	for _, kind := range []string{"context", "stream", "event", "pool", "module", "allocation", "host-allocation", "byte", "cublas", "cusolver"} {
		if n := cudatest.Live(kind); n != 0 {
			all = append(all, fmt.Sprintf("%d of kind %s", n, kind))
		}
	}
	return strings.Join(all, ", ")
}

// expectLeft waits until a test's last notification has let go of its context,
// and fails the test when the simulator saw misuse, or holds more than before.
func expectLeft(t *testing.T, before string) {
	t.Helper()
	for deadline := time.After(time.Minute); left() != before; {
		select {
		case <-deadline:
			t.Errorf("the test left %s", left())
			return
		default:
			goruntime.Gosched()
		}
	}
	if misuse := cudatest.Misuse(); misuse != "" {
		t.Errorf("the driver was misused:\n%s", misuse)
	}
}

// keepContexts has the contexts of a real driver's first GPUs live through the
// test.
func keepContexts(t *testing.T) {
	t.Helper()
	if cudatest.Simulated() {
		return
	}
	for i := range min(2, hardware().Count()) {
		d, err := hardware().Open(i)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.NewStream(0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Destroy() }) // it did nothing
	}
}

func gpuHarness() devicetest.Harness {
	h := devicetest.Harness{Families: gpus, Stall: cudatest.Stall}
	if cudatest.Simulated() {
		h.Held = left
	}
	return h
}

// TestGPUsKeepTheContract leaves the death of devices, from which a GPU does not
// come back, to TestADeadGPUKeepsTheContract.
func TestGPUsKeepTheContract(t *testing.T) {
	gpus(t)
	keepContexts(t)
	devicetest.Run(t, gpuHarness())
}

// mortals are GPUs that a plan can kill; a simulated one is given its life back.
type mortals struct{ driver.Family }

func (f mortals) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return mortal{d}, nil
}

type mortal struct{ driver.Device }

func (d mortal) Kill(error) { _ = cudatest.Kill(d.Device) } // the cause is the driver's

// revived answers the GPUs, alive if they are simulated.
func revived(t *testing.T) driver.Family {
	t.Helper()
	if !cudatest.Simulated() {
		return hardware()
	}
	for deadline := time.After(time.Minute); cudatest.Live("context") != 0; {
		select {
		case <-deadline:
			t.Fatalf("%d contexts live", cudatest.Live("context"))
		default:
			goruntime.Gosched()
		}
	}
	cudatest.Revive()
	return mortals{cuda.New()}
}

// child says what a child process is for.
const child = "WEIR_DEVICETEST_CHILD"

// TestChild is the suite in a process of its own.
func TestChild(t *testing.T) {
	switch os.Getenv(child) {
	case "mortal":
		h := gpuHarness()
		h.Kill, h.DeathSpreads = cudatest.Kill, true
		h.Families = func(t *testing.T) []driver.Family { // what a dead context leaves goes with the process
			return []driver.Family{revived(t), host.New(host.Options{HandOver: true})}
		}
		devicetest.Run(t, h)
	case "poolless":
		devicetest.Run(t, gpuHarness())
	default:
		t.Skip("run by other tests")
	}
}

// run runs tests of TestChild and answers the output.
func run(t *testing.T, purpose, pattern string, environment ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	suite := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.timeout=2m", "-test.run=^TestChild$/"+pattern)
	suite.Env = append(append(os.Environ(), child+"="+purpose), environment...)
	output, _ := suite.CombinedOutput() // the output says how it went
	return string(output)
}

// TestADeadGPUKeepsTheContract gives each test of death a process of its own.
func TestADeadGPUKeepsTheContract(t *testing.T) {
	gpus(t)
	for _, name := range devicetest.DeathTests() {
		t.Run(name, func(t *testing.T) {
			line := "TestChild/Death/" + strings.ReplaceAll(name, " ", "_")
			output := run(t, "mortal", "^Death$/^"+regexp.QuoteMeta(name)+"$")
			switch {
			case strings.Contains(output, "--- SKIP: "+line):
				t.Skip(output)
			case !strings.Contains(output, "--- PASS: "+line):
				t.Error(output)
			}
		})
	}
}

// TestGPUsWithoutPoolsKeepTheContract is of a driver that says so.
func TestGPUsWithoutPoolsKeepTheContract(t *testing.T) {
	gpus(t)
	if !cudatest.Simulated() {
		t.Skip("a real driver's devices have pools")
	}
	output := run(t, "poolless", "^(Runtime|Buffers|Memory|Copies|Errors)$", "WEIR_SIM_POOLS=0")
	if !strings.Contains(output, "--- PASS: TestChild (") || !strings.Contains(output, "has no stream-ordered pools") {
		t.Error(output)
	}
}
