package buffer_test

import (
	"testing"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
)

func TestTakingLargeMemoryDoesNotDependOnWhatIsStillBeingGivenBack(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(2)
	old := w.new(3 << 20)
	release := w.stall(s[0])
	w.write(s[0], old, func(buffer.Ptr) {})
	w.free(old) // in flight behind the stalled stream
	arrives(t, w.write(s[1], w.new(3<<20), func(buffer.Ptr) {}))
	release()
}

func TestOverlappingAllocationsHaveACompletionEach(t *testing.T) {
	w := newWorld(t, options{})
	var inner *buffer.Buffer
	first := true
	w.plan.Delay(fault.PoolAlloc, func() { // while the outer one has the stream and no memory yet
		if first {
			first = false
			inner = w.new(3 << 20)
		}
	})
	if n := w.count(fault.StreamRecord, func() { w.free(w.new(5 << 20)) }); n < 2 {
		t.Errorf("%d records for two allocations: one has a completion from before it", n)
	}
	w.free(inner)
}
