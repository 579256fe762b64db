package stream

import (
	"context"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/scheduler"
)

// Completion names one recorded place of a stream: all that was submitted to
// it before. The zero Completion is done.
type Completion struct {
	line *timeline
	seq  uint64
}

// wholeStream stands for a record that could not be made: all work that the
// stream was given, however much that has become when it is asked.
const wholeStream = 1 << 62

// IsZero says whether c names nothing, and so is done.
func (c Completion) IsZero() bool { return c.line == nil }

// Known says whether the work is known to be done, without asking the device.
func (c Completion) Known() bool { return c.line == nil || c.seq <= c.line.done.Load() }

// Merge answers the later of two completions of one stream, which implies the
// other; ok is false when they are of two.
func (c Completion) Merge(d Completion) (later Completion, ok bool) {
	if c.line != d.line {
		return c, false
	}
	return Completion{c.line, max(c.seq, d.seq)}, true
}

// Done says whether the work is done. An error says that it never will be, or,
// of work that is done, that it ran without what it waited for: the device, or
// one that it waited for, died.
func (c Completion) Done() (bool, error) {
	l := c.line
	if l == nil {
		return true, nil
	}
	if c.seq <= l.done.Load() {
		return true, l.failure(c.seq)
	}
	if c.seq == wholeStream {
		return l.idle()
	}
	event, _ := l.pin(c.seq)
	if event == nil {
		return true, l.failure(c.seq)
	}
	done, err := event.Query()
	l.unpin(c.seq, done && err == nil)
	if err != nil {
		return false, l.wrap("completion.Done", err)
	}
	if done {
		return true, l.failure(c.seq)
	}
	return false, nil
}

// idle says whether all work of the stream is done.
func (l *timeline) idle() (bool, error) {
	if l.closed.Load() {
		err := l.dev.Err()
		return err == nil, err
	}
	done, err := l.stream.Query()
	if err != nil {
		return false, l.wrap("completion.Done", err)
	}
	return done, nil
}

// Notify has w woken when the stream's work submitted so far is done, which
// includes c's: on a goroutine of the driver, or at once if c is known to be
// done.
func (c Completion) Notify(w driver.Waker) error {
	if c.Known() || c.line.closed.Load() {
		w.Wake(nil)
		return nil
	}
	if err := c.line.stream.Notify(w); err != nil {
		return c.line.wrap("completion.Notify", err)
	}
	return nil
}

// Wait parks until the work is done or ctx ends; the work itself goes on. A
// task's lane is given back meanwhile.
func (c Completion) Wait(ctx context.Context) error {
	if done, err := c.Done(); done || err != nil {
		return err
	}
	if ctx.Done() == nil {
		lane := scheduler.LaneOf(ctx)
		lane.Yield(working{c.line})
		defer lane.Resume()
		return c.synchronize()
	}
	w := &waiter{of: c, ready: make(chan struct{}, 1)}
	if err := c.Notify(w); err != nil {
		return err
	}
	w.watch()
	defer w.end()
	for {
		if err := scheduler.Park(ctx, w.ready, working{c.line}); err != nil {
			return &weir.Error{Op: "completion.Wait", Device: c.line.dev.Name(), Stream: c.line.name, Message: "gave up waiting", Err: scheduler.GaveUp(ctx, err)}
		}
		if done, err := c.Done(); done || err != nil {
			return err
		}
		w.watch()
	}
}

// working is the wait for work of a stream.
type working struct{ line *timeline }

func (w working) String() string           { return "work of stream " + w.line.name }
func (working) Ends() scheduler.Ending     { return scheduler.ByDevice }
func (working) Holders() []*scheduler.Task { return nil }

// synchronize waits on the host in the driver.
func (c Completion) synchronize() error {
	l := c.line
	if c.seq == wholeStream {
		if err := l.stream.Synchronize(); err != nil {
			return l.wrap("completion.Wait", err)
		}
		return nil
	}
	if event, _ := l.pin(c.seq); event != nil {
		err := event.Synchronize()
		l.unpin(c.seq, err == nil)
		if err != nil {
			return l.wrap("completion.Wait", err)
		}
	}
	return l.failure(c.seq)
}

// waiter is woken by the driver, or by a timer that finds the work done, or lost,
// though the driver's notification never came.
type waiter struct {
	of    Completion
	ready chan struct{} // holds one token

	mu    sync.Mutex // guards timer and ended; nothing else is done under it
	timer *time.Timer
	ended bool
}

func (w *waiter) Wake(error) {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// watch has look called after the interval.
func (w *waiter) watch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(lease.WatchInterval, w.look)
	} else if !w.ended {
		w.timer.Reset(lease.WatchInterval)
	}
}

// end stops watching.
func (w *waiter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// look asks in the waiter's place, so that a task needs no lane to find that it
// has to wait on.
func (w *waiter) look() {
	if done, err := w.of.Done(); done || err != nil {
		w.Wake(err)
		return
	}
	w.watch()
}
