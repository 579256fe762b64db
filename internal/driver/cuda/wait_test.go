//go:build cuda

package cuda_test

import (
	"os"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// threads counts the process's system threads.
func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	ok(t, err)
	return len(tasks)
}

// TestManyWhoWaitHoldFewSystemThreads, and all come back.
func TestManyWhoWaitHoldFewSystemThreads(t *testing.T) {
	const waiters, most = 500, 100
	d := must(gpus(t).Open(0))
	s, e := must(d.NewStream(0)), must(d.NewEvent())
	release, err := cudatest.Stall(s)
	ok(t, err)
	ok(t, s.Record(e))
	before := threads(t)
	var begun, all sync.WaitGroup
	begun.Add(waiters)
	for i := range waiters {
		all.Go(func() {
			begun.Done()
			wait := e.Synchronize
			if i%2 == 0 {
				wait = s.Synchronize
			}
			if err := wait(); err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	for range 2000 { // they get into the driver, as far as they ever do
		goruntime.Gosched()
	}
	if n := threads(t) - before; n > most {
		t.Errorf("%d goroutines that wait hold %d more threads; expected at most %d", waiters, n, most)
	}
	release()
	all.Wait()
	ok(t, s.Destroy())
	ok(t, e.Destroy())
}
