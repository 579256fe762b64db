//go:build cuda

package cuda_test

import (
	"fmt"
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(strict{m}) }

// strict also fails when the simulator saw misuse, or holds something at the end.
type strict struct{ *testing.M }

func (m strict) Run() int {
	code := m.M.Run()
	if misuse := cudatest.Misuse(); misuse != "" {
		fmt.Printf("the driver was misused:\n%s", misuse)
		code = 1
	}
	for _, kind := range []string{"context", "stream", "event", "pool", "module", "allocation", "host-allocation", "byte", "cublas", "cusolver"} {
		if n := live(kind); n != 0 {
			fmt.Printf("%d of kind %s live at the end\n", n, kind)
			code = 1
		}
	}
	return code
}

// forgotten counts handles of devices that died, which stay for ever.
var forgotten = map[string]int{}

func live(kind string) int { return cudatest.Live(kind) - forgotten[kind] }

// gpus answers a family with devices, of which the test leaves nothing. Without
// one the test is skipped with the reason, or fails where WEIR_TEST_CUDA=1 says
// that there are.
func gpus(t testing.TB) driver.Family {
	t.Helper()
	f := cuda.New()
	if f.Count() > 0 {
		t.Cleanup(func() { awaitNone(t, "context") })
		return f
	}
	if os.Getenv("WEIR_TEST_CUDA") == "1" {
		t.Fatal(f.Unavailable())
	}
	t.Skip(f.Unavailable())
	return nil
}

// simulated skips the test on a real driver.
func simulated(t testing.TB) {
	t.Helper()
	gpus(t)
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
}

// awaitNone waits until nothing of a kind lives: the last reference to a context
// may be a notification's, which the reader gives up.
func awaitNone(t testing.TB, kind string) {
	t.Helper()
	for deadline := time.After(time.Minute); cudatest.Live(kind) != 0; {
		select {
		case <-deadline:
			t.Fatalf("%d of kind %s live", cudatest.Live(kind), kind)
		default:
			goruntime.Gosched()
		}
	}
}

// revive gives the simulated devices their lives back, once their last user is gone.
func revive(t testing.TB) {
	t.Helper()
	awaitNone(t, "context")
	cudatest.Revive()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
