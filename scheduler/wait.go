package scheduler

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/weirgo/weir"
)

// Wait says what a parked goroutine waits for: to people, in listings and in
// deadlocks, and to the debug scheduler and Close, which must know whether to
// expect its end. Its methods are called under no lock of this package and may
// take the owner's mutex.
type Wait interface {
	// String names it: "a stream of host:0", "value theta (write 2)".
	String() string
	// Ends says who ends it, as things stand.
	Ends() Ending
	// Holders are the tasks that can end it, as far as is known. A wait ByHolder is
	// ended by any one of them, so a nil stands for each holder that is no task; one
	// ByTask by all of them together.
	Holders() []*Task
}

// Ending is who ends a wait.
type Ending int

const (
	// ByTask: a task or the program, which writes a value or lets it go.
	ByTask Ending = iota
	// ByHolder: whoever holds what is waited for, or a device after that.
	ByHolder
	// ByQueue: a device is to give something to the first in the queue. That need
	// not be who waits, who then needs the help of those before.
	ByQueue
	// ByDevice: a device, without anybody's help.
	ByDevice
)

// Lane is the right of a task to run. While the task waits for something
// scarce, another one may have it.
type Lane interface {
	// Yield gives the lane back while its task waits for what. It does not wait.
	Yield(what Wait)
	// Resume waits, first come first served, until a lane is free again.
	Resume()
}

type (
	laneKey      struct{}
	schedulerKey struct{}
)

// WithLane says in the context that its goroutine holds lane. Tasks need it not:
// their context says so.
func WithLane(ctx context.Context, lane Lane) context.Context {
	return context.WithValue(ctx, laneKey{}, lane)
}

// LaneOf answers the lane that ctx's goroutine holds, for waits that Park cannot
// do; outside a task it is a lane that does nothing.
func LaneOf(ctx context.Context) Lane {
	if lane, ok := ctx.Value(laneKey{}).(Lane); ok {
		return lane
	}
	return noLane{}
}

type noLane struct{}

func (noLane) Yield(Wait) {}
func (noLane) Resume()    {}

// TaskOf is the task whose context ctx is or comes from; nil outside tasks.
func TaskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(laneKey{}).(*Task)
	return t
}

// As answers ctx for work that whoever by is the context of does: with ctx's
// values and end, and by's lane and scheduler, or none if by has none.
func As(ctx, by context.Context) context.Context { return as{ctx, by} }

type as struct {
	context.Context
	by context.Context
}

func (a as) Value(key any) any {
	switch key.(type) {
	case laneKey, schedulerKey:
		return a.by.Value(key)
	}
	return a.Context.Value(key)
}

// With answers a context under which tasks are started on s.
func With(ctx context.Context, s Scheduler) context.Context {
	return context.WithValue(ctx, schedulerKey{}, s)
}

// Of is the scheduler of ctx: that of its task, or what With said last, or else the
// installed one; nil if there is none.
func Of(ctx context.Context) Scheduler {
	if s, ok := ctx.Value(schedulerKey{}).(Scheduler); ok {
		return s
	}
	if s := installed.Load(); s != nil {
		return *s
	}
	return nil
}

// installed is the scheduler of the process's runtime.
var installed atomic.Pointer[Scheduler]

// Install makes s the scheduler where a context names none, and nil none. Package
// runtime does it.
func Install(s Scheduler) {
	if s == nil {
		installed.Store(nil)
	} else {
		installed.Store(&s)
	}
}

// Park waits until ready is closed or sends, or until ctx ends, whose cause it
// then answers. When both hold, ready wins. The lane of a task is given back
// while it waits, and its scheduler may end the wait: with a *Deadlock, or with
// ErrClosed. What tasks or holders end comes by a Queue, since only its waiters
// are known to be woken. Outside a task, under the context of a debug scheduler,
// tasks run meanwhile on the calling goroutine's time.
func Park(ctx context.Context, ready <-chan struct{}, what Wait) error {
	select {
	case <-ready:
		return nil
	default:
	}
	lane := LaneOf(ctx)
	if t, ok := lane.(*Task); ok {
		return t.home.park(ctx, t, ready, what)
	}
	if d, ok := Of(ctx).(*Debug); ok && what.Ends() != ByDevice {
		return d.runUntil(ctx, ready, what)
	}
	lane.Yield(what)
	defer lane.Resume()
	return await(ctx, ready)
}

// GaveUp is err, of a wait under ctx that ended without what it was for: if it is that
// ctx ended, it is ErrCancelled too.
func GaveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return weir.Cancelled(err)
	}
	return err
}

// await waits for ready or the end of ctx; ready wins.
func await(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return readyOr(ready, context.Cause(ctx))
	}
}

// readyOr is nil if ready is, else err.
func readyOr(ready <-chan struct{}, err error) error {
	select {
	case <-ready:
		return nil
	default:
		return err
	}
}
