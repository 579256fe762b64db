package stream_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/stream"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "500"); err != nil { // the command line still has the last word
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var errCause = errors.New("the cause that the test gave")

// rig is a family of host devices whose calls are counted and can fail, with
// one pool of streams for each device. All work runs on goroutines of its own.
type rig struct {
	t       *testing.T
	plan    *fault.Plan
	devs    []driver.Device
	pools   []*stream.Pool
	refused int // streams and events that could not be made
}

// newRig makes devices with size streams each.
func newRig(t *testing.T, devices, size int) *rig {
	t.Helper()
	r := &rig{t: t, plan: &fault.Plan{}}
	family := fault.New(host.New(host.Options{HandOver: true, Devices: devices}), r.plan)
	for i := range devices {
		d, err := family.Open(i)
		if err != nil {
			t.Fatal(err)
		}
		p, err := stream.NewPool(d, stream.Options{Count: size})
		if err != nil {
			t.Fatal(err)
		}
		r.devs, r.pools = append(r.devs, d), append(r.pools, p)
	}
	return r
}

// inBubble runs test in a bubble of its own with a rig, which is healthy at the
// end.
func inBubble(t *testing.T, devices, size int, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, devices, size)
		defer r.close()
		test(t, r)
	})
}

// close closes the pools of a healthy rig and checks that nothing is left.
func (r *rig) close() {
	r.t.Helper()
	for _, p := range r.pools {
		if err := p.Close(); err != nil {
			r.t.Errorf("Close answers %v", err)
		}
	}
	r.expectNothingLeft()
}

// expectNothingLeft checks that every stream and event was destroyed, once.
func (r *rig) expectNothingLeft() {
	r.t.Helper()
	n := r.plan.Counts()
	made := n[fault.DeviceNewStream] + n[fault.DeviceNewEvent] - r.refused
	if gone := n[fault.StreamDestroy] + n[fault.EventDestroy]; made != gone {
		r.t.Errorf("%d streams and events were made and %d destroyed; expected as many", made, gone)
	}
}

// kill makes a device die of errCause.
func (r *rig) kill(device int) { r.devs[device].(interface{ Kill(error) }).Kill(errCause) }

// stream leases a stream of a device, which must have an idle one.
func (r *rig) stream(device int) stream.Stream {
	r.t.Helper()
	s, ok, err := r.pools[device].TryAcquire()
	if !ok || err != nil {
		r.t.Fatalf("a stream should be idle; got %v, %v", ok, err)
	}
	return s
}

// stall gives the stream work that lasts until the answer is called.
func (r *rig) stall(s stream.Stream) (end func()) {
	gate := make(chan struct{})
	r.call(s, func() { <-gate })
	return func() { close(gate) }
}

func (r *rig) call(s stream.Stream, fn func()) {
	r.t.Helper()
	if err := s.Call(fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) record(s stream.Stream) stream.Completion {
	r.t.Helper()
	c, err := s.Record()
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *rig) wait(s stream.Stream, c stream.Completion) {
	r.t.Helper()
	if err := s.Wait(c); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) release(s stream.Stream) {
	r.t.Helper()
	if err := s.Release(); err != nil {
		r.t.Fatal(err)
	}
}

// expectEventsUsedAgain records the idle stream often.
func (r *rig) expectEventsUsedAgain(s stream.Stream) {
	r.t.Helper()
	for range 20 { // it makes a few at first
		r.record(s)
	}
	before := r.count(fault.DeviceNewEvent)
	for range 100 {
		r.record(s)
	}
	if made := r.count(fault.DeviceNewEvent) - before; made > 1 {
		r.t.Errorf("100 records of an idle stream made %d events", made)
	}
}

// settle waits until the stream's work is done.
func (r *rig) settle(s stream.Stream) {
	r.t.Helper()
	if err := s.Synchronize(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// count is how often a call was made since the rig was made.
func (r *rig) count(call fault.Call) int { return r.plan.Counts()[call] }

func expectDone(t *testing.T, what string, c stream.Completion, expected bool) {
	t.Helper()
	if done, err := c.Done(); done != expected || err != nil {
		t.Errorf("%s: done is %v, %v; expected %v", what, done, err, expected)
	}
}

// expectCounts checks how many streams are idle, leased and pending, and how
// many callers wait.
func expectCounts(t *testing.T, p *stream.Pool, idle, leased, pending, waiting int) {
	t.Helper()
	if i, l, n, w := p.Counts(); i != idle || l != leased || n != pending || w != waiting {
		t.Errorf("idle, leased, pending, waiting are %d, %d, %d, %d; expected %d, %d, %d, %d", i, l, n, w, idle, leased, pending, waiting)
	}
}
