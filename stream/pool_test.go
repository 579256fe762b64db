package stream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

// acquire starts an Acquire and lets it come to rest.
func acquire(ctx context.Context, p *stream.Pool) <-chan result {
	answer := make(chan result, 1)
	go func() {
		s, err := p.Acquire(ctx)
		answer <- result{s, err}
	}()
	synctest.Wait()
	return answer
}

func TestAPoolHasTheStreamsItWasAskedFor(t *testing.T) {
	for given, expected := range map[int]int{0: stream.DefaultCount, 1: 1, 5: 5} {
		r := newRig(t, 1, given)
		if n := r.pools[0].Size(); n != expected || r.count(fault.DeviceNewStream) != expected {
			t.Errorf("count %d made %d streams, the pool says %d; expected %d", given, r.count(fault.DeviceNewStream), n, expected)
		}
		expectCounts(t, r.pools[0], expected, 0, 0, 0)
		r.close()
	}
	r := newRig(t, 1, 1)
	defer r.close()
	for _, count := range []int{-1, stream.MaxCount + 1} {
		if _, err := stream.NewPool(r.devs[0], stream.Options{Count: count}); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("count %d answers %v; expected ErrArgument", count, err)
		}
	}
}

// ranked is a device with stream priorities, of which the host has none.
type ranked struct {
	driver.Device
	caps  driver.Capabilities
	asked []int
}

func (d *ranked) Capabilities() *driver.Capabilities { return &d.caps }

func (d *ranked) NewStream(priority int) (driver.Stream, error) {
	d.asked = append(d.asked, priority)
	return d.Device.NewStream(0)
}

func TestPrioritiesAreSelectableInTheRangeOfTheDevice(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	d := &ranked{Device: r.devs[0], caps: driver.Capabilities{PriorityGreatest: -3}}
	for _, priority := range []int{0, -1, -3} {
		d.asked = nil
		p, err := stream.NewPool(d, stream.Options{Count: 2, Priority: priority})
		if err != nil || !slices.Equal(d.asked, []int{priority, priority}) {
			t.Fatalf("priority %d made streams of %v, %v", priority, d.asked, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, outside := range []int{1, -1} { // of the host's range
		if _, err := stream.NewPool(r.devs[0], stream.Options{Count: 1, Priority: outside}); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("priority %d answers %v; expected ErrArgument", outside, err)
		}
		r.refused++
	}
}

func TestAPoolThatCannotBeMadeLeavesNothingBehind(t *testing.T) {
	r := newRig(t, 1, 1)
	r.plan.FailNth(fault.DeviceNewStream, 3, errCause)
	if _, err := stream.NewPool(r.devs[0], stream.Options{Count: 4}); !errors.Is(err, errCause) {
		t.Errorf("got %v; expected the failure of its third stream", err)
	}
	r.refused++
	r.close()
}

// TestUnrelatedWorkIsNeverQueuedBehindARunningKernel leaves a stream with a
// stalled kernel, and finds the pool to hand out the others only.
func TestUnrelatedWorkIsNeverQueuedBehindARunningKernel(t *testing.T) {
	r := newRig(t, 1, 2)
	defer r.close()
	stalled := r.stream(0)
	name := stalled.String()
	end := r.stall(stalled)
	r.release(stalled)
	for range 5 {
		s := r.stream(0)
		if s.String() == name {
			t.Fatal("a stream was leased while its kernel ran")
		}
		r.call(s, func() {})
		r.settle(s)
		r.release(s)
	}
	end()
}

// TestThePoolIsTheThrottle has many goroutines submit work, and counts how many
// streams are at work at a time.
func TestThePoolIsTheThrottle(t *testing.T) {
	const size, goroutines, each = 3, 10, 50
	r := newRig(t, 1, size)
	defer r.close()
	var working, most, ran atomic.Int32
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				s, err := r.pools[0].Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				err = errors.Join(
					s.Call(func() {
						for n, m := working.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
					}),
					s.Call(func() { ran.Add(1) }),
					s.Call(func() { working.Add(-1) }),
					s.Release())
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := r.pools[0].Drain(); err != nil {
		t.Error(err)
	}
	if most.Load() > size || ran.Load() != goroutines*each {
		t.Errorf("%d pieces ran, up to %d at a time; expected %d, up to %d", ran.Load(), most.Load(), goroutines*each, size)
	}
	t.Logf("up to %d of %d streams worked at a time", most.Load(), size)
}

func TestATaskThatWaitsForAStreamGivesItsLaneBack(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		r.release(s)
		lane := &laneLog{}
		answer := acquire(scheduler.WithLane(context.Background(), lane), r.pools[0])
		lane.expect(t, "while parked", "yield")
		end()
		r.release((<-answer).s)
		lane.expect(t, "afterwards", "yield", "resume")
	})
}

// laneLog is a lane that notes what happens to it.
type laneLog struct {
	mu     sync.Mutex
	events []string
}

func (l *laneLog) Yield(scheduler.Wait) { l.note("yield") }
func (l *laneLog) Resume()              { l.note("resume") }

func (l *laneLog) note(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

func (l *laneLog) expect(t *testing.T, when string, events ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.events, events) {
		t.Errorf("%s the lane had %v; expected %v", when, l.events, events)
	}
}

// TestTheSubmittedWorkOfACancelledCallerIsDrained: cancelling ends the wait for
// a stream, not the work on it.
func TestTheSubmittedWorkOfACancelledCallerIsDrained(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		ran := false
		r.call(s, func() { ran = true })
		c := r.record(s)
		r.release(s)
		ctx, cancel := context.WithCancelCause(context.Background())
		acquiring := acquire(ctx, r.pools[0])
		waiting := make(chan error)
		go func() { waiting <- c.Wait(ctx) }()
		synctest.Wait()
		cancel(errCause)
		asked := r.count(fault.EventQuery)
		if a, b := (<-acquiring).err, <-waiting; !errors.Is(a, errCause) || !errors.Is(b, errCause) {
			t.Errorf("the cancelled calls answer %v and %v; expected the cause", a, b)
		}
		<-time.After(10 * lease.WatchInterval)
		if n := r.count(fault.EventQuery) - asked; n > 0 {
			t.Errorf("the completion was asked %d more times for nobody", n)
		}
		end()
		synctest.Wait()
		if !ran {
			t.Error("the work did not run")
		}
		expectDone(t, "the completion", c, true)
	})
}

// TestNotificationsAreArmedOnlyForWaiters counts them over a thousand
// operations that nobody waited behind, then with a waiter.
func TestNotificationsAreArmedOnlyForWaiters(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		for range 1000 {
			s := r.stream(0)
			r.call(s, func() {})
			synctest.Wait()
			r.release(s)
		}
		if n := r.count(fault.StreamNotify); n != 0 {
			t.Errorf("%d notifications were armed for nobody", n)
		}
		a, b := r.stream(0), r.stream(0)
		end := r.stall(a)
		r.release(a)
		answer := acquire(context.Background(), r.pools[0])
		end()
		r.release((<-answer).s)
		r.release(b)
		if n := r.count(fault.StreamNotify); n != 1 {
			t.Errorf("%d notifications were armed for one waiter", n)
		}
	})
}

// TestAnOperationIsRecordedOnce counts the driver's calls for an operation that
// recorded its own completion, for one that did not, and for an idle lease.
func TestAnOperationIsRecordedOnce(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	for name, c := range map[string]struct {
		do       func(s stream.Stream)
		expected int
	}{
		"an idle lease":           {func(stream.Stream) {}, 0},
		"unrecorded work":         {func(s stream.Stream) { r.call(s, func() {}) }, 1},
		"recorded work":           {func(s stream.Stream) { r.call(s, func() {}); r.record(s) }, 1},
		"work after the record":   {func(s stream.Stream) { r.record(s); r.call(s, func() {}) }, 2},
		"a native submission":     {func(s stream.Stream) { _, _ = s.Native() }, 1},
		"a tail":                  {func(s stream.Stream) { r.call(s, func() {}); _, _ = s.Tail(); _, _ = s.Tail() }, 1},
		"a tail of an idle lease": {func(s stream.Stream) { _, _ = s.Tail() }, 0},
	} {
		s := r.stream(0)
		if more, err := s.Retain(); err != nil { // that an earlier lease was shared makes no difference
			t.Fatal(err)
		} else {
			r.release(s)
			r.release(more)
		}
		s = r.stream(0)
		before := r.count(fault.StreamRecord)
		c.do(s)
		r.release(s)
		if n := r.count(fault.StreamRecord) - before; n != c.expected {
			t.Errorf("%s: %d records; expected %d", name, n, c.expected)
		}
		again, err := r.pools[0].Acquire(context.Background()) // when the work is done
		if err != nil {
			t.Fatal(err)
		}
		r.release(again)
	}
}

func TestCloseWakesWaitersDrainsAndDestroysEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 2)
		p := r.pools[0]
		s, held := r.stream(0), r.stream(0)
		end := r.stall(s)
		ran := false
		r.call(s, func() { ran = true })
		r.release(s)
		var answers []<-chan result
		for range 3 {
			answers = append(answers, acquire(context.Background(), p))
		}
		closed := make(chan error)
		go func() { closed <- p.Close() }()
		for _, a := range answers {
			if x := <-a; !errors.Is(x.err, weir.ErrClosed) {
				t.Errorf("a waiter got %v; expected ErrClosed", x.err)
			}
		}
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("Close answered %v before the work was done", err)
		default:
		}
		end()
		if err := <-closed; err != nil || !ran {
			t.Errorf("Close answers %v, and the work ran %v", err, ran)
		}
		r.expectNothingLeft()
		if err := errors.Join(p.Close(), p.Drain()); err != nil {
			t.Errorf("another Close and Drain answer %v", err)
		}
		r.expectNothingLeft()

		// A handle that outlived its pool reaches no destroyed stream.
		_, err1 := held.Submit()
		_, err2 := held.Record()
		_, err3 := held.Tail()
		_, err4 := held.Native()
		for _, err := range []error{err1, err2, err3, err4, held.Wait(stream.Completion{}), held.Call(func() {}), held.Synchronize(t.Context())} {
			if !errors.Is(err, weir.ErrClosed) {
				t.Errorf("a stream of a closed pool answers %v; expected ErrClosed", err)
			}
		}
		r.release(held)
	})
}

// TestFailedCleanupComesOutOfClose makes each kind of cleanup fail; all the rest
// is cleaned up all the same.
func TestFailedCleanupComesOutOfClose(t *testing.T) {
	for _, call := range []fault.Call{fault.StreamDestroy, fault.EventDestroy, fault.StreamSynchronize} {
		t.Run(string(call), func(t *testing.T) {
			r := newRig(t, 1, 3)
			for range 3 {
				s := r.stream(0)
				r.call(s, func() {})
				r.release(s)
			}
			r.plan.FailNth(call, 2, errCause)
			var e *weir.Error
			if err := r.pools[0].Close(); !errors.Is(err, errCause) || !errors.As(err, &e) || !strings.HasPrefix(e.Stream, "host:0/") {
				t.Errorf("Close answers %v; expected the failure, with its stream", err)
			}
			r.expectNothingLeft()
		})
	}
}

func TestACompletionOutlivesItsPool(t *testing.T) {
	r := newRig(t, 1, 1)
	s := r.stream(0)
	r.call(s, func() {})
	c := r.record(s)
	r.release(s)
	r.close()
	expectDone(t, "after Close", c, true)
	if err := c.Wait(context.Background()); err != nil || !c.Known() {
		t.Errorf("after Close, Wait answers %v and known is %v", err, c.Known())
	}
	woken := make(wakes, 1)
	if err := c.Notify(woken); err != nil || <-woken != nil {
		t.Errorf("after Close, Notify answers %v", err)
	}
}

// wakes is a waker that passes on what it is told.
type wakes chan error

func (w wakes) Wake(err error) { w <- err }

func TestAPoolTellsWhereItsStreamsWereAcquired(t *testing.T) {
	d, err := host.New(host.Options{}).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := stream.NewPool(d, stream.Options{Count: 1, Debug: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	held := p.Leased()
	if len(held) != 1 || !strings.Contains(held[0].Stack, "TestAPoolTellsWhereItsStreamsWereAcquired") {
		t.Errorf("leased are %+v; expected one, with this test in its stack", held)
	}
	if err := errors.Join(s.Release(), p.Close()); err != nil {
		t.Error(err)
	}
}
