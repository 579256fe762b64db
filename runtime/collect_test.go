package runtime_test

import (
	goruntime "runtime"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir/runtime"
)

type garbage struct{ data [4]int }

func TestCollectRunsTheCleanupsOfAllThatIsUnreachable(t *testing.T) {
	const n = 1000
	var ran atomic.Int32
	func() {
		for range n {
			goruntime.SetFinalizer(&garbage{data: [4]int{1}}, func(*garbage) { ran.Add(1) })
		}
	}()
	runtime.Collect()
	if got := ran.Load(); got != n {
		t.Errorf("%d of %d cleanups had run", got, n)
	}
}
