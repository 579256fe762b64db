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
	driving  chan struct{} // holds a token meanwhile
	rng      *rand.Rand
	runnable []*Task
	parked   list.List               // of *Task, in the order they parked
	watched  map[<-chan struct{}]int // how many of those are parked until it is closed, too: their contexts

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
	debugging.Store(true)
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	d := &Debug{options: o, rng: rand.New(rand.NewPCG(o.Seed, 0x5eed)), back: make(chan struct{}), driving: make(chan struct{}, 1), watched: map[<-chan struct{}]int{}}
	d.wakes.signal = make(chan struct{}, 1)
	d.level, d.limit = o.Level, o.Limit
	return d
}

// Start has a task run when its turn comes; see Scheduler.
func (d *Debug) Start(t *Task) {
	if d.admit(d, t) {
		t.turn = make(chan struct{})
		d.mu.Unlock()
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
		case state == Parked && t.awake.Load() && what.Ends() == ByTask: // and not woken from an earlier wait, in place
			d.unpark(t)
		}
	}
	d.mu.Lock()
	over := d.dooming
	d.mu.Unlock()
	for done := range d.watched {
		select {
		case <-done:
			over = true
		default:
		}
	}
	if !over {
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
	b := t.table()
	b.mu.Lock()
	ctx, doom := t.waiting, t.doom
	b.mu.Unlock()
	if ctx != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return doom
}

// sleep enters the running task among the parked.
func (d *Debug) sleep(ctx context.Context, t *Task, what Wait) {
	d.mu.Lock()
	d.move(t, Parked)
	t.what, t.waiting = what, ctx
	d.mu.Unlock()
	t.spot = d.parked.PushBack(t)
	if done := ctx.Done(); done != nil {
		d.watched[done]++
	}
}

// rise takes a parked task out, for another state.
func (d *Debug) rise(t *Task, to State) {
	d.parked.Remove(t.spot)
	t.spot = nil
	if done := t.waiting.Done(); done != nil {
		if d.watched[done]--; d.watched[done] == 0 {
			delete(d.watched, done)
		}
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

// next chooses who runs; nil if nobody can, or c need not wait any more.
func (d *Debug) next(c *caller) *Task {
	for {
		d.gather()
		if n := len(d.runnable); n > 0 {
			i := d.rng.IntN(n)
			t := d.runnable[i]
			d.runnable[i], d.runnable[n-1] = d.runnable[n-1], nil
			d.runnable = d.runnable[:n-1]
			return t
		}
		if !d.settle(c) {
			return nil
		}
	}
}

// settle waits for a device to give the longest parked of those that it is about
// to give something to what they wait for, or for a deadline; false if there are
// none.
func (d *Debug) settle(c *caller) bool {
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
			moving = ends >= ByQueue
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
		case <-c.ready:
			c.got = true
			return false
		case <-c.done:
			return false
		case <-d.wakes.signal:
			return true
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
	select {
	case d.driving <- struct{}{}:
	default:
		return false, &weir.Error{Op: "scheduler.Step", Kind: weir.KindLogic, Err: weir.ErrBusy,
			Message: "the debug scheduler is already run, by another goroutine or by the task that calls this"}
	}
	defer func() { <-d.driving }()
	return d.step(&caller{})
}

// errNotYet is for readyOr where it is no error.
var errNotYet = errors.New("not yet")

// caller is a goroutine, no task, that waits and has tasks run meanwhile.
type caller struct {
	ready, done <-chan struct{} // what it waits for, and the end of its context
	got         bool            // ready sent
}

func (d *Debug) step(c *caller) (bool, error) {
	if d.current == nil {
		t := d.next(c)
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
	d.mu.Lock()
	waits, device := d.current.waits, false // its waits for devices are not its fault
	d.mu.Unlock()
	patience := time.NewTimer(d.options.Patience)
	defer patience.Stop()
	for {
		select {
		case <-d.back:
			d.current = nil
			return true, nil
		case <-c.ready:
			c.got = true
			d.finish()
			return true, nil
		case <-c.done:
			return true, nil
		case <-patience.C:
			patience.Reset(d.options.Patience)
		}
		d.mu.Lock()
		before, now := device, d.current.state == Parked
		device = now
		since := waits != d.current.waits
		waits = d.current.waits
		d.mu.Unlock()
		if before || now || since {
			continue
		}
		return false, &weir.Error{Op: "scheduler.Step", Kind: weir.KindLogic, Stack: stackOf(d.current), Site: d.current.site.String(), Err: weir.ErrDeadlock,
			Message: fmt.Sprintf("%v has run for %v and neither ends nor waits through Weir; it is blocked outside, or computes", d.current, d.options.Patience)}
	}
}

// finish has a caller whose wait is over wait for the end of the turn in which
// that came: if it went on at once, it would run beside the task, and what either
// does next would follow from their speeds. A turn that does not end, of a task
// that is blocked outside, holds it up no longer than theRest.
func (d *Debug) finish() {
	rest := time.NewTimer(theRest)
	defer rest.Stop()
	select {
	case <-d.back:
		d.current = nil
	case <-rest.C:
	}
}

// theRest is what a turn may take after it gave its caller what that waits for: it
// is long beside any turn that only computes a little, on a busy machine.
const theRest = time.Second

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
	return deadlock(all, circleOf(all, func(t *Task) []*Task {
		if what, _ := t.parkedOn(); what != nil {
			return what.Holders()
		}
		return nil
	}))
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
	c := &caller{ready: ready, done: ctx.Done()}
	for {
		if err := context.Cause(ctx); err != nil {
			return readyOr(ready, err)
		}
		select {
		case <-ready:
			return nil
		case <-c.done:
			continue
		case d.driving <- struct{}{}:
		}
		if readyOr(ready, errNotYet) == nil { // whoever drove before saw to it
			<-d.driving
			return nil
		}
		ran, err := d.step(c)
		<-d.driving
		var stuck *Deadlock
		switch {
		case c.got:
			return nil
		case ran || ctx.Err() != nil:
		case err != nil && !errors.As(err, &stuck):
			return readyOr(ready, err)
		case what.Ends() >= ByQueue:
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
	d.mu.Lock()
	over := t.state == Ended
	d.mu.Unlock()
	switch {
	case what.Ends() == ByDevice:
		d.yield(t, what)
		defer d.resume(t)
		return await(ctx, ready)
	case over: // a goroutine that t left behind
		return d.runUntil(ctx, ready, what)
	}
	defer t.awake.Store(false)
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
	d.mu.Lock()
	over := t.state == Ended
	d.mu.Unlock()
	if over { // a goroutine that t left behind
		return
	}
	d.setState(t, Resuming)
	d.runnable = append(d.runnable, t)
	d.handBack(t)
}

// yield says that t waits for a device, with its turn kept.
func (d *Debug) yield(t *Task, what Wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.state == Running {
		d.move(t, Parked)
		t.what, t.waiting = what, t
	}
}

func (d *Debug) resume(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.state == Parked {
		d.move(t, Running)
	}
}

// Close runs what can run, ends by ErrClosed the waits of what cannot, and
// answers when no task lives. Those that could not go on are named in the error,
// an ErrLeak each. It is a caller of Run: the error is ErrBusy, and Close is to be
// called again, if another goroutine runs the scheduler or a task calls it; of a
// task that is blocked outside Weir it is Step's, and those that live are given up.
func (d *Debug) Close() error {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	closed := &weir.Error{Op: "scheduler.Close", Kind: weir.KindLogic, Message: "the wait was ended: the scheduler is closed", Err: weir.ErrClosed}
	var errs []error
	for {
		err := d.Run()
		if err == nil { // or a task called Pause
			if d.Counts().Live == 0 {
				break
			}
			continue
		}
		var stuck *Deadlock
		if !errors.As(err, &stuck) {
			errs = append(errs, err)
			if errors.Is(err, weir.ErrBusy) {
				return errors.Join(errs...)
			}
			break
		}
		for _, t := range d.live() {
			what, _ := t.parkedOn()
			if what == nil {
				continue
			}
			d.mu.Lock()
			named := t.doom != nil
			t.doom, d.dooming = closed, true
			d.mu.Unlock()
			if !named {
				errs = append(errs, leaked(t, "still waits for "+what.String()))
			}
		}
	}
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	return errors.Join(errs...)
}
