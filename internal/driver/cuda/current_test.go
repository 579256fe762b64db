//go:build cuda

package cuda_test

import (
	"errors"
	goruntime "runtime"
	"testing"

	"gorgonia.org/cu"

	"github.com/weirgo/weir/internal/driver"
)

// TestADeviceThatIsSelectedStaysSoThroughCallsOnAnother, whatever context calls
// had left on the thread before.
func TestADeviceThatIsSelectedStaysSoThroughCallsOnAnother(t *testing.T) {
	f := gpus(t)
	if f.Count() < 2 {
		t.Skip("there is one device; this needs 2")
	}
	var devices [2]driver.Device
	var streams [2]driver.Stream
	for i := range devices {
		devices[i] = must(f.Open(i))
		streams[i] = must(devices[i].NewStream(0))
	}
	defer func() { ok(t, errors.Join(streams[0].Destroy(), streams[1].Destroy())) }()
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	for _, left := range []int{0, 1} {
		for _, selected := range []int{0, 1} {
			_ = must(streams[left].Query())
			restore, err := devices[selected].Select()
			ok(t, err)
			for _, called := range []int{0, 1, 0} {
				_ = must(streams[called].Query())
				if at := must(cu.CurrentDevice()); int(at) != selected {
					t.Errorf("after a call on device %d, and %d left before, device %d is current; expected the selected one, %d", called, left, at, selected)
				}
			}
			restore()
			if at := must(cu.CurrentDevice()); int(at) != left {
				t.Errorf("after the selection of %d, device %d is current; expected %d as before", selected, at, left)
			}
		}
	}
}

// TestAContextThatOthersMadeCurrentStaysSoThroughCalls.
func TestAContextThatOthersMadeCurrentStaysSoThroughCalls(t *testing.T) {
	d := must(gpus(t).Open(0))
	s := must(d.NewStream(0))
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	foreign := must(cu.Device(0).MakeContext(cu.SchedAuto)) // and makes it current
	for range 2 {
		_ = must(s.Query())
		if now := must(cu.CurrentContext()); now != foreign {
			t.Error("a call left another context current than the one that was")
		}
	}
	ok(t, foreign.Destroy())
	ok(t, s.Destroy())
}
