package devicetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

var errCause = errors.New("the cause that the test gave")

// queue is goroutines that wait for one stream after the other, and note in
// which order they were served.
type queue struct {
	w     *world
	b     *buffer.Buffer // that each of them uses
	tasks []*task

	mu    sync.Mutex // guards order
	order []int
}

// enter has one more goroutine wait for a stream, behind the others.
func (q *queue) enter(ctx context.Context, name int) {
	q.w.t.Helper()
	before := len(q.tasks)
	q.tasks = append(q.tasks, q.w.start("a waiter", func() error {
		s, err := q.w.r.Streams().Acquire(ctx)
		if err != nil {
			return err
		}
		q.mu.Lock()
		q.order = append(q.order, name)
		q.mu.Unlock()
		return errors.Join(fill(s, q.b, int64(name)), s.Release())
	}))
	q.w.untilWaiting(q.w.r.Streams(), before+1)
}

// pendingPool leases the only stream of a world, stalls it and gives it back.
func (w *world) pendingPool(b *buffer.Buffer) (release func()) {
	w.t.Helper()
	s := w.lease(w.r)
	release = w.stall(s)
	w.fill(s, b, -1)
	w.ok(s.Release())
	return release
}

// laneLog is a lane that notes what happens to it. Yielded is closed by the
// first yield.
type laneLog struct {
	yielded chan struct{}

	mu     sync.Mutex // guards events
	events []string
}

func newLaneLog() *laneLog { return &laneLog{yielded: make(chan struct{})} }

func (l *laneLog) Yield(scheduler.Wait) {
	if l.note("yield") == 1 {
		close(l.yielded)
	}
}

func (l *laneLog) Resume() { l.note("resume") }

func (l *laneLog) note(event string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
	return len(l.events)
}

func (l *laneLog) expect(f *fixture, when string, events ...string) {
	f.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.events, events) {
		f.t.Errorf("%s the lane had %v; expected %v", when, l.events, events)
	}
}

var waitingTests = []test{
	{"hundreds who wait for a stalled stream are served in order", func(f *fixture) {
		const waiters = 300
		w := f.memory(pool(1))
		q := &queue{w: w, b: w.new(words)}
		release := w.pendingPool(q.b)
		for i := range waiters {
			q.enter(context.Background(), i)
		}
		if yield(); len(q.order) > 0 || w.try() {
			w.t.Error("somebody was served before the stream's work was done, or before those who wait")
		}
		release()
		w.all(q.tasks)
		for i, x := range q.order {
			if i != x {
				w.t.Fatalf("waiter %d was served in place %d", x, i)
			}
		}
		w.expect("the last operation", w.lease(w.r), q.b, waiters-1)
	}},
	{"a waiter who gives up leaves the queue and loses nothing", func(f *fixture) {
		w := f.memory(pool(1))
		q := &queue{w: w, b: w.new(words)}
		release := w.pendingPool(q.b)
		ctx, cancel := context.WithCancelCause(context.Background())
		for i := range 3 {
			if i == 1 {
				q.enter(ctx, i)
			} else {
				q.enter(context.Background(), i)
			}
		}
		cancel(errCause)
		w.refused(q.tasks[1].join(), errCause, "stream.Acquire on %s: gave up waiting: %v", w.name, errCause)
		w.untilWaiting(w.r.Streams(), 2)
		release()
		w.all([]*task{q.tasks[0], q.tasks[2]})
		if !slices.Equal(q.order, []int{0, 2}) {
			w.t.Errorf("served were %v; expected 0, 2", q.order)
		}
		w.expect("the last operation", w.lease(w.r), q.b, 2)
	}},
	{"a waiter who gives up as it is served loses no stream", func(f *fixture) {
		const rounds = 1000
		w := f.world(pool(1))
		served := 0
		for range rounds {
			s := w.lease(w.r)
			ctx, cancel := context.WithCancelCause(context.Background())
			waiter := w.start("a waiter", func() error {
				s, err := w.r.Streams().Acquire(ctx)
				if err == nil {
					err = s.Release()
					served++
				}
				return err
			})
			w.untilWaiting(w.r.Streams(), 1)
			cancel(errCause) // it may be on its way out when the stream comes
			w.ok(s.Release())
			if err := waiter.join(); err != nil && !errors.Is(err, errCause) {
				w.t.Fatal(err)
			}
		}
		w.t.Logf("%d of %d were served", served, rounds)
		w.lease(w.r) // it is there
	}},
	{"the submitted work of a cancelled caller goes on", func(f *fixture) {
		w := f.memory(pool(2))
		s, other := w.lease(w.r), w.lease(w.r)
		b := w.new(words)
		release := w.stall(s)
		w.fill(s, b, 7)
		c := w.tail(s)
		ctx, cancel := context.WithCancelCause(context.Background())
		wait := w.startWaiting("a cancelled wait", func() error { return c.Wait(ctx) })
		cancel(errCause)
		w.refused(wait.join(), errCause, "completion.Wait on stream %s: gave up waiting: %v", s, errCause)
		w.pending("the work", c)
		release()
		w.expect("the work", other, b, 7)
	}},
	{"notifications are armed for waiters only", func(f *fixture) {
		w := f.memory(countedPool(1))
		b := w.new(words)
		if n := w.count(fault.StreamNotify, func() {
			for i := range int64(200) {
				s := w.lease(w.r)
				w.fill(s, b, i)
				w.finish("an operation", w.tail(s))
				w.ok(s.Release())
			}
			release := w.pendingPool(b)
			for range 5 {
				if w.try() { // an attempt waits for nothing either
					w.t.Error("a stalled stream was leased")
				}
			}
			release()
			w.until("an idle stream", w.try)
		}); n != 0 {
			w.t.Errorf("%d notifications were armed for nobody", n)
		}
		q := &queue{w: w, b: b}
		if n := w.count(fault.StreamNotify, func() {
			release := w.pendingPool(b)
			q.enter(context.Background(), 1)
			w.until("a notification", func() bool { return w.plan.Counts()[fault.StreamNotify] > 0 })
			release()
			w.all(q.tasks)
		}); n != 1 {
			w.t.Errorf("%d notifications were armed for one waiter", n)
		}
	}},
	{"a waiter is served though its notification never comes", func(f *fixture) {
		w := f.memory(countedPool(1))
		q := &queue{w: w, b: w.new(words)}
		release := w.pendingPool(q.b)
		w.plan.DropNotify(1)
		q.enter(context.Background(), 1)
		w.until("a notification", func() bool { return w.plan.Counts()[fault.StreamNotify] > 0 })
		release()
		w.all(q.tasks)
		if n := w.plan.Counts()[fault.StreamNotify]; n != 1 {
			w.t.Errorf("%d notifications were asked for; expected the lost one", n)
		}
	}},
	{"a task gives its lane back while it waits for a stream or a completion", func(f *fixture) {
		w := f.memory(pool(1))
		b := w.new(words)
		release := w.pendingPool(b)
		lane := newLaneLog()
		ctx := scheduler.WithLane(context.Background(), lane)
		var s stream.Stream
		acquire := w.start("a task", func() (err error) {
			s, err = w.r.Streams().Acquire(ctx)
			return err
		})
		receive(w.fixture, "the lane", lane.yielded)
		lane.expect(f, "while parked", "yield")
		release()
		w.ok(acquire.join())
		w.afterwards("releasing a stream", s.Release)
		lane.expect(f, "with a stream", "yield", "resume")

		for _, wait := range []func(context.Context, stream.Completion) error{
			func(ctx context.Context, c stream.Completion) error { return c.Wait(ctx) },
			func(ctx context.Context, c stream.Completion) error {
				ctx, cancel := context.WithCancel(ctx) // parked, not in the driver
				defer cancel()
				return c.Wait(ctx)
			},
		} {
			lane := newLaneLog()
			ctx := scheduler.WithLane(context.Background(), lane)
			release := w.stall(s)
			w.fill(s, b, 1)
			c := w.tail(s)
			waiting := w.start("a task", func() error { return wait(ctx, c) })
			receive(w.fixture, "the lane", lane.yielded)
			lane.expect(f, "while waiting", "yield")
			release()
			w.ok(waiting.join())
			w.ok(wait(ctx, c)) // is done
			lane.expect(f, "afterwards", "yield", "resume")
		}
	}},
}
