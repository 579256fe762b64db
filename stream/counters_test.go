package stream_test

import (
	"testing"

	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/stream"
)

// TestCountersAreThoseOfTheDriver: what a pool says that its streams were given is what
// the driver was asked for.
func TestCountersAreThoseOfTheDriver(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		s, other := r.stream(0), r.stream(0)
		end := r.stall(s) // one submission
		c := r.record(s)
		r.wait(s, c)     // its own work
		r.wait(other, c) // another's, which is not done
		r.call(other, func() {})
		end()
		r.settle(s)      // which records
		r.wait(other, c) // known to be done
		r.settle(other)  // which records
		got := r.pools[0].Counters()
		if want := (stream.Counters{Submissions: 2, Records: 3, Waits: 1, Elided: 2}); got != want {
			t.Errorf("the counters are %+v; expected %+v", got, want)
		}
		if waits, records := r.count(fault.StreamWait), r.count(fault.StreamRecord); waits != int(got.Waits) || records != int(got.Records) {
			t.Errorf("the driver was given %d waits and %d records; the counters are %+v", waits, records, got)
		}
		r.release(s)
		r.release(other)
	})
}
