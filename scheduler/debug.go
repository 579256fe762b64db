package scheduler

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir"
)

// DebugOptions configures a Debug scheduler. The zero value is usable.
type DebugOptions struct {
	Seed  uint64
	Limit int // as in Options
	Level Level
	// Patience is how long a task may run before Step and Run answer that it is
	// blocked outside Weir, with its stack; 0 is 30 s.
	Patience time.Duration
	// Trace, if set, is called with each task that is given a turn.
	Trace func(t Info)
}

// Debug is the scheduler for tests: one task runs at a time, on the time of
// whoever calls Step or Run or waits for something under the scheduler's
// context, and which of those that can run is next follows from the seed alone.
// So a program whose tasks block only through Weir runs the same way each time.
//
// What a device ends is waited for with the task's turn kept, when nothing but
// the device has to act; a stream or handle that other tasks hold is waited for
// like a value, but looked at only when no task can run otherwise. So it shows
// nowhere in the order how fast a device is.
type Debug struct {
	table
	options DebugOptions

	// Owned by whoever drives.
	driving  sync.Mutex
	rng      *rand.Rand
	runnable []*Task
	parked   list.List // of *Task, in the order they parked
	watched  int       // how many of those have a context that can end

	// Of the driver and the task whose turn it is, one at a time.
	current *Task
	back    chan struct{} // the current task gives its turn back

	pausing, dooming bool // under mu

	wakes struct { // a leaf: Deliver takes it under its caller's mutexes
		sync.Mutex
		tasks  []*Task
		signal chan struct{}
	}
}

// NewDebug makes a debug scheduler.
func NewDebug(o DebugOptions) *Debug {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	d := &Debug{options: o, rng: rand.New(rand.NewPCG(o.Seed, 0x5eed)), back: make(chan struct{})}
	d.wakes.signal = make(chan struct{}, 1)
	d.level, d.limit = o.Level, o.Limit
	return d
}

// Start has a task run when its turn comes; see Scheduler.
func (d *Debug) Start(t *Task) {
	if t.turn = make(chan struct{}); d.admit(d, t) {
		d.wake(t)
	}
}

// wake enters a task among those that can run, or may be able to.
func (d *Debug) wake(t *Task) {
	d.wakes.Lock()
	d.wakes.tasks = append(d.wakes.tasks, t)
	d.wakes.Unlock()
	select {
	case d.wakes.signal <- struct{}{}:
	default:
	}
}

func (d *Debug) woken(t *Task) { d.wake(t) }

// gather takes what was woken among the runnable.
func (d *Debug) gather() {
	d.wakes.Lock()
	woken := d.wakes.tasks
	d.wakes.tasks = nil
	d.wakes.Unlock()
	for _, t := range woken {
		d.mu.Lock()
		state, what := t.state, t.what
		d.mu.Unlock()
		switch {
		case state == Queued:
			d.runnable = append(d.runnable, t)
		case state == Parked && what.Ends() == ByTask:
			d.unpark(t)
		}
	}
	d.mu.Lock()
	dooming := d.dooming
	d.mu.Unlock()
	if d.watched == 0 && !dooming {
		return
	}
	for e := d.parked.Front(); e != nil; {
		t := e.Value.(*Task)
		e = e.Next()
		if t.over() != nil {
			d.unpark(t)
		}
	}
}

// over is why t's wait is to end without what it waits for, if it is.
func (t *Task) over() error {
	b := t.home.list()
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.waiting != nil && t.waiting.Err() != nil {
		return context.Cause(t.waiting)
	}
	return t.doom
}

// sleep enters the running task among the parked.
func (d *Debug) sleep(ctx context.Context, t *Task, what Wait) {
	t.awake.Store(false)
	d.mu.Lock()
	d.move(t, Parked)
	t.what, t.waiting = what, ctx
	d.mu.Unlock()
	t.spot = d.parked.PushBack(t)
	if ctx.Done() != nil {
		d.watched++
	}
}

// rise takes a parked task out, for another state.
func (d *Debug) rise(t *Task, to State) {
	d.parked.Remove(t.spot)
	t.spot = nil
	if t.waiting.Done() != nil {
		d.watched--
	}
	d.setState(t, to)
}

// unpark takes a parked task among the runnable.
func (d *Debug) unpark(t *Task) {
	if t.spot != nil {
		d.rise(t, Resuming)
		d.runnable = append(d.runnable, t)
	}
}

func (d *Debug) setState(t *Task, s State) {
	d.mu.Lock()
	d.move(t, s)
	d.mu.Unlock()
}

// next chooses who runs; nil if nobody can.
func (d *Debug) next() *Task {
	for {
		d.gather()
		if n := len(d.runnable); n > 0 {
			i := d.rng.IntN(n)
			t := d.runnable[i]
			d.runnable[i], d.runnable[n-1] = d.runnable[n-1], nil
			d.runnable = d.runnable[:n-1]
			return t
		}
		if !d.settle() {
			return nil
		}
	}
}

// settle waits for a device to give the longest parked of those that it is about
// to give something to what they wait for, or for a deadline; false if there are
// none.
func (d *Debug) settle() bool {
	for {
		var deadline time.Time
		moving := false
		for e := d.parked.Front(); e != nil && !moving; e = e.Next() {
			t := e.Value.(*Task)
			ends := t.what.Ends()
			if t.awake.Load() && ends != ByTask {
				d.unpark(t)
				return true
			}
			moving = ends == ByDevice
			if at, ok := t.waiting.Deadline(); ok && (deadline.IsZero() || at.Before(deadline)) {
				deadline = at
			}
		}
		var due <-chan time.Time
		switch {
		case moving:
		case !deadline.IsZero():
			timer := time.NewTimer(max(0, time.Until(deadline)))
			defer timer.Stop()
			due = timer.C
		default:
			return false
		}
		select {
		case <-d.wakes.signal:
			if !moving {
				return true
			}
		case <-due: // the context's own timer may come a moment later
			for e := d.parked.Front(); e != nil; e = e.Next() {
				t := e.Value.(*Task)
				if at, ok := t.waiting.Deadline(); ok && at.Equal(deadline) {
					<-t.waiting.Done()
				}
			}
			return true
		}
	}
}

// Step gives one task a turn: until it waits for something, or ends. ran is
// false, with a nil error, when no task lives, and with a *Deadlock when those
// that live cannot go on. Neither is final: a value may be set, or a task added,
// and Step called again. The error of a task that blocks outside Weir names it
// and shows where; it keeps its turn, and the next Step waits for it again.
func (d *Debug) Step() (ran bool, err error) {
	if !d.driving.TryLock() {
		return false, &weir.Error{Op: "scheduler.Step", Kind: weir.KindLogic, Err: weir.ErrBusy,
			Message: "the debug scheduler is already run, by another goroutine or by the task that calls this"}
	}
	defer d.driving.Unlock()
	return d.step()
}

func (d *Debug) step() (bool, error) {
	if d.current == nil {
		t := d.next()
		if t == nil {
			return false, d.stalled()
		}
		if d.options.Trace != nil {
			d.options.Trace(t.info())
		}
		d.current = t
		begun := d.begun(t)
		d.setState(t, Running)
		if begun {
			t.turn <- struct{}{}
		} else {
			go d.begin(t)
		}
	}
	patience := time.NewTimer(d.options.Patience)
	defer patience.Stop()
	select {
	case <-d.back:
		d.current = nil
		return true, nil
	case <-patience.C:
		return false, &weir.Error{Op: "scheduler.Step", Kind: weir.KindLogic, Stack: stackOf(d.current), Site: d.current.site.String(), Err: weir.ErrDeadlock,
			Message: fmt.Sprintf("%v has run for %v and neither ends nor waits through Weir; it is blocked outside, or computes", d.current, d.options.Patience)}
	}
}

func (d *Debug) begun(t *Task) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return t.state != Queued
}

// stackOf is the stack of the goroutine that runs t, found by the argument of
// begin.
func stackOf(t *Task) string {
	buf := make([]byte, 1<<20)
	buf = buf[:goruntime.Stack(buf, true)]
	for _, stack := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(stack, "(*Debug).begin(") && strings.Contains(stack, fmt.Sprintf("%p", t)) {
			return stack
		}
	}
	return ""
}

// stalled is why nobody can run; nil when no task lives.
func (d *Debug) stalled() error {
	all := d.live()
	if len(all) == 0 {
		return nil
	}
	return deadlock(all, circleOf(all))
}

// begin is a task's goroutine.
func (d *Debug) begin(t *Task) {
	returned := false
	defer func() {
		if !returned {
			t.end(gone(t))
		}
		d.back <- struct{}{}
	}()
	err := t.execute()
	returned = true
	t.end(err)
}

// Run gives turns until no task lives, Pause was called, or none can go on, which
// is a *Deadlock. See Step.
func (d *Debug) Run() error {
	d.mu.Lock()
	d.pausing = false
	d.mu.Unlock()
	for {
		if ran, err := d.Step(); !ran || d.paused() {
			return err
		}
	}
}

// Pause has Run return before its next turn. Tasks may call it.
func (d *Debug) Pause() {
	d.mu.Lock()
	d.pausing = true
	d.mu.Unlock()
}

func (d *Debug) paused() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pausing
}

// runUntil gives turns until ready is, for a goroutine that is no task.
func (d *Debug) runUntil(ctx context.Context, ready <-chan struct{}, what Wait) error {
	for {
		select {
		case <-ready:
			return nil
		default:
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		d.driving.Lock()
		ran, err := d.step()
		d.driving.Unlock()
		var stuck *Deadlock
		switch {
		case ran:
		case err != nil && !errors.As(err, &stuck):
			return readyOr(ready, err)
		case what.Ends() == ByDevice:
			return await(ctx, ready)
		case stuck == nil:
			return readyOr(ready, &Deadlock{Caller: what.String()})
		default:
			stuck.Caller = what.String()
			return readyOr(ready, stuck)
		}
	}
}

// park gives the turn away until the task is woken.
func (d *Debug) park(ctx context.Context, t *Task, ready <-chan struct{}, what Wait) error {
	if what.Ends() == ByDevice {
		return await(ctx, ready)
	}
	for {
		d.sleep(ctx, t, what)
		select {
		case <-ready: // it came from outside in between
			d.rise(t, Running)
			return nil
		default:
		}
		d.handBack(t)
		select {
		case <-ready:
			return nil
		default:
		}
		d.mu.Lock()
		doom := t.doom
		d.mu.Unlock()
		if err := cmp.Or(context.Cause(ctx), doom); err != nil {
			return err
		}
	}
}

// handBack gives the turn back and waits for the next.
func (d *Debug) handBack(t *Task) {
	d.back <- struct{}{}
	<-t.turn
}

// breathe lets the seed decide who goes on.
func (d *Debug) breathe(t *Task) {
	d.setState(t, Resuming)
	d.runnable = append(d.runnable, t)
	d.handBack(t)
}

func (d *Debug) yield(*Task, Wait) {} // only for waits that a device ends
func (d *Debug) resume(*Task)      {}

// Close runs what can run, ends by ErrClosed the waits of what cannot, and
// answers when no task lives. Those that could not go on are named in the error,
// an ErrLeak each.
func (d *Debug) Close() error {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	var errs []error
	for {
		err := d.Run()
		if err == nil && d.Counts().Live == 0 {
			break
		}
		var stuck *Deadlock
		if !errors.As(err, &stuck) && err != nil {
			errs = append(errs, err)
			break
		}
		d.mu.Lock()
		d.dooming = true
		for t := d.first; t != nil; t = t.next {
			if t.state == Parked && t.doom == nil {
				t.doom = &weir.Error{Op: "scheduler.Close", Kind: weir.KindLogic, Message: "the wait was ended: the scheduler is closed", Err: weir.ErrClosed}
				errs = append(errs, leaked(t, "still waits for "+t.what.String()))
			}
		}
		d.mu.Unlock()
	}
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	return errors.Join(errs...)
}
