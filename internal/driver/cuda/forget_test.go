//go:build cuda

package cuda_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// TestHandlesOfADeadDeviceGiveTheirMemoryBack compares what C's heap holds. The
// library keeps its own part.
func TestHandlesOfADeadDeviceGiveTheirMemoryBack(t *testing.T) {
	simulated(t)
	freed := func(t *testing.T, least int64, destroy func()) {
		t.Helper()
		before := cudatest.Heap()
		destroy()
		if got := before - cudatest.Heap(); got < least {
			t.Errorf("Destroy gave %d bytes back; expected %d or more", got, least)
		}
	}
	t.Run("blas", func(t *testing.T) {
		t.Cleanup(func() { revive(t) })
		const groups, words = 256, 80 // as many as one call takes, and bytes for each one's arguments
		x := newOnes(t, dtype.Float32, groups)
		ok(t, errors.Join(x.b.GemmGroups(x.s, x.groups), x.s.Synchronize()))
		cudatest.Kill(x.d)
		freed(t, groups*words, func() { _ = x.b.Destroy() })
		forgotten["cublas"]++
	})
	t.Run("solver", func(t *testing.T) {
		d := must(gpus(t).Open(0))
		t.Cleanup(func() { revive(t) })
		s := must(d.NewStream(0))      // keeps the context, which has a heap of its own to give back
		const handles, each = 1024, 64 // bytes of a handle, at least
		var destroy []func() error
		for range handles {
			destroy = append(destroy, must(d.NewSolver()).Destroy)
		}
		cudatest.Kill(d)
		freed(t, handles*each, func() {
			for _, f := range destroy {
				_ = f()
			}
		})
		_ = s.Destroy()
		forgotten["cusolver"] += 2 * handles // each with parameters
	})
}
