package buffer_test

import (
	"testing"

	"github.com/weirgo/weir/buffer"
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
