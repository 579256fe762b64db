package scheduler

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
)

// Scheduler runs tasks: *Pool on many goroutines at once, *Debug one at a time
// in an order that a seed decides.
type Scheduler interface {
	// Start starts a task that was made and not started, and never waits. One that
	// cannot be started has ended with the reason when Start returns.
	Start(t *Task)
	// Tasks lists the tasks that live, oldest first, as far as the scheduler's
	// Level keeps them.
	Tasks() []Info
	// Counts says how many tasks there were and are.
	Counts() Counts
	// Close takes no more tasks, but from tasks, and answers when all have ended.
	// What waits for nothing that could come has its wait ended by ErrClosed, and
	// is named in the error.
	Close() error
}

// home is what a task needs of its scheduler.
type home interface {
	Scheduler
	park(ctx context.Context, t *Task, ready <-chan struct{}, what Wait) error
	yield(t *Task, what Wait)
	resume(t *Task)
	breathe(t *Task)
	woken(t *Task)
	list() *table
}

// Gate is what a task holds until it ends, such as the right to read or to
// write a value.
type Gate interface {
	// Bind says that t holds the gate. The error is that of a gate that another
	// task holds, or that was let go of already.
	Bind(t *Task) error
	// End lets go of the gate as its task ends; err is the task's failure or nil.
	End(t *Task, err error)
	// Describe is for listings.
	Describe() GateInfo
}

// Spec is a task to be.
type Spec struct {
	Name  string
	Arena string // whose lanes it runs on: the name of a device, or ""
	Run   func(ctx context.Context) error
	Site  callers.Site // where the user asked for it
	// Late says that the task does what tasks left to be done: while the scheduler
	// closes it is taken as theirs are, until the last task has ended.
	Late bool
	// Failure, if set, makes of a failure what the gates are told of it, once for
	// all of them.
	Failure func(t *Task, err error) error
}

// State is what a task does.
type State int32

const (
	Queued   State = iota // it has not run yet
	Running               // it holds a lane
	Parked                // it waits for something and holds no lane
	Resuming              // what it waited for is there; it waits for a lane
	Ended
)

// String is the state in a word.
func (s State) String() string {
	return [...]string{"queued", "running", "parked", "resuming", "ended"}[s]
}

// Task is a goroutine that holds a lane of its scheduler while it runs. It is
// the context of its function: the caller's, and what says who runs. So it is for
// the task's goroutine; of others that wait under it, one at a time gives the lane
// back, and none after the task's end.
type Task struct {
	context.Context
	home  home
	name  string
	where string // the name of its arena
	arena *arena
	run   func(context.Context) error
	gates []Gate
	few   [3]Gate // where gates lie, if there are no more
	site  callers.Site
	late  bool
	told  func(*Task, error) error // Spec.Failure
	stack string                   // of its creation; Full

	id    atomic.Uint64 // 0 until it is started, which may be after its gates have shown it around
	awake atomic.Bool   // what it waits for in a queue is there, or is about to be

	// Under the table's mutex.
	state      State
	what       Wait            // what a parked one waits for
	waiting    context.Context // whose end ends the wait
	doom       error           // ends its wait
	waits      uint64          // how many there were
	err        error
	ran        bool
	joiners    Queue[struct{}]
	prev, next *Task // in the table
	after      *Task // in its arena's line of those that have not run

	turn chan struct{} // Debug: it may run
	spot *list.Element // Debug: among the parked
}

// Value answers what its context carries: the lane and the scheduler are its own.
func (t *Task) Value(key any) any {
	switch key.(type) {
	case laneKey:
		return t
	case schedulerKey:
		return t.home
	}
	return t.Context.Value(key)
}

// Name is what it was called.
func (t *Task) Name() string { return t.name }

// String is its name and number, as in messages.
func (t *Task) String() string { return fmt.Sprintf("task %q (#%d)", t.name, t.id.Load()) }

// Site is where it was made.
func (t *Task) Site() callers.Site { return t.site }

// Yield gives the lane back. It does not wait.
func (t *Task) Yield(what Wait) { t.home.yield(t, what) }

// Resume waits until a lane is free again.
func (t *Task) Resume() { t.home.resume(t) }

// table is that of its scheduler; of a task that was not started, nowhere's.
func (t *Task) table() *table {
	if t.id.Load() == 0 {
		return &nowhere.table
	}
	return t.home.list()
}

// Breathe gives other tasks a turn, where the debug scheduler decides whose it
// is; elsewhere it does nothing.
func Breathe(ctx context.Context) {
	if !debugging.Load() { // asked for at every await
		return
	}
	if t := TaskOf(ctx); t != nil {
		t.home.breathe(t)
	}
}

// Wait parks until t, which was started or refused, has ended, and answers its
// failure. If ctx ends first, its cause is in the error, and t goes on.
func (t *Task) Wait(ctx context.Context) error {
	b := t.table()
	b.mu.Lock()
	if t.state == Ended {
		defer b.mu.Unlock()
		return t.err
	}
	w := t.joiners.Push(ctx)
	b.mu.Unlock()
	_, ended, err := w.Wait(ctx, joining{t})
	b.mu.Lock()
	defer b.mu.Unlock()
	if ended || !t.joiners.Remove(w) {
		return t.err
	}
	return &weir.Error{Op: "task.Wait", Message: "gave up waiting for " + t.String(), Err: GaveUp(ctx, err)}
}

// joining is the wait for a task's end.
type joining struct{ of *Task }

func (j joining) String() string   { return "the end of " + j.of.String() }
func (j joining) Ends() Ending     { return ByTask }
func (j joining) Holders() []*Task { return []*Task{j.of} }

// execute runs the task's function and answers how it failed: what it
// returned, its panic with the stack, or that it ended its goroutine.
func (t *Task) execute() (err error) {
	if err := context.Cause(t.Context); err != nil { // before it began
		return err
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			cause, _ := v.(error)
			err = &weir.Error{Op: t.String(), Kind: weir.KindGeneric, Message: fmt.Sprintf("panic: %v", v), Stack: string(debug.Stack()), Err: errors.Join(weir.ErrPanic, cause)}
		}
	}()
	err = t.run(t)
	returned = true
	return err
}

// end finishes the task: its gates open, then whoever waits for it goes on.
func (t *Task) end(err error) {
	t.letGo(err)
	b := t.table()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.finish(b, err)
}

// letGo opens the task's gates.
func (t *Task) letGo(err error) {
	if err != nil && t.told != nil {
		err = t.told(t, err)
	}
	for _, g := range t.gates {
		g.End(t, err)
	}
}

// finish is what follows, under the mutex of its table.
func (t *Task) finish(b *table, err error) {
	t.err = err
	if t.id.Load() != 0 {
		b.remove(t)
	}
	t.state = Ended
	t.run, t.gates, t.few = nil, nil, [3]Gate{}
	for w := t.joiners.Pop(); w != nil; w = t.joiners.Pop() {
		w.Deliver(struct{}{}, nil)
	}
}

// Refused is why the task was never started, if it was not.
func (t *Task) Refused() error {
	b := t.table()
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.ran {
		return nil
	}
	return t.err
}

// nowhere is the scheduler of tasks that were not started.
var nowhere = &Debug{}

// debugging says that the process has had a debug scheduler.
var debugging atomic.Bool

// New makes a task that holds gates, to be started by a Scheduler. If one of them
// cannot be had, the task has ended with the reason, and the others are let go of;
// starting it does nothing.
func New(ctx context.Context, s Spec, gates ...Gate) *Task {
	t := &Task{Context: ctx, home: nowhere, name: s.Name, where: s.Arena, run: s.Run, site: s.Site, late: s.Late, told: s.Failure}
	t.gates = t.few[:0]
	var refused error
	if s.Run == nil {
		refused = weir.Argf("scheduler.New", "task %q has no function to run", s.Name)
	}
	for _, g := range gates {
		if err := g.Bind(t); err == nil {
			t.gates = append(t.gates, g)
		} else if refused == nil {
			refused = err
		}
	}
	if refused != nil {
		t.Refuse(refused)
	}
	return t
}

// Refuse ends a task that was not started, as one that failed with err.
func (t *Task) Refuse(err error) { t.end(err) }

// Level is how much a scheduler remembers of its tasks.
type Level int

const (
	Basic Level = iota // the default: names, states, what they hold and wait for
	Off                // how many there are, and nothing else
	Full               // the stacks of their creation too
)

// Counts says how many tasks there were and are.
type Counts struct {
	Started, Ended, Failed uint64
	Live, Queued, Running  int
}

// table is the tasks of a scheduler.
type table struct {
	mu          sync.Mutex // guards what follows, and the tasks; no call leaves the package under it
	level       Level
	limit       int
	first, last *Task
	counts      Counts
	changes     uint64 // of any task's state
	nextID      uint64
	closing     bool
	closed      bool
	idle        Queue[struct{}] // who waits for the last task's end
	spare       Spare[struct{}] // not under mu; see SpareOf
}

// SpareOf is where package async keeps waiters, under a lock of its own: with ctx's
// scheduler; nil if there is none.
func SpareOf(ctx context.Context) *Spare[struct{}] {
	if s, ok := Of(ctx).(home); ok {
		return &s.list().spare
	}
	return nil
}

// DefaultLimit is how many tasks a scheduler takes at once unless told.
const DefaultLimit = 1 << 20

// enter takes a task in, which is queued, and keeps mu; the error is why it is not
// to run.
func (b *table) enter(h home, t *Task, stack string) error {
	b.mu.Lock()
	if t.id.Load() != 0 {
		b.mu.Unlock()
		panic(fmt.Sprintf("scheduler: %v is started twice", t))
	}
	b.counts.Started++
	if err := b.refusal(t); err != nil {
		b.counts.Ended++
		b.counts.Failed++
		b.mu.Unlock()
		return err
	}
	b.nextID++
	t.home, t.stack = h, stack
	t.id.Store(b.nextID)
	b.counts.Live++
	b.counts.Queued++
	b.changes++
	if t.prev = b.last; t.prev != nil {
		t.prev.next = t
	} else {
		b.first = t
	}
	b.last = t
	return nil
}

// refusal is why t cannot be taken in, if it cannot: once the scheduler closes,
// only tasks of its own that live start others. It is called under mu.
func (b *table) refusal(t *Task) error {
	by := TaskOf(t.Context)
	inside := by != nil && by.table() == b && by.state != Ended || t.late && b.counts.Live > 0
	switch {
	case b.closed, b.closing && !inside:
		return &weir.Error{Op: "scheduler.Start", Kind: weir.KindLogic, Message: fmt.Sprintf("task %q: the scheduler is closed", t.name), Err: weir.ErrClosed}
	case b.counts.Live >= b.limit:
		return &weir.Error{Op: "scheduler.Start", Kind: weir.KindLogic, Err: weir.ErrLimit,
			Message: fmt.Sprintf("task %q: %d tasks live; expected fewer than %d (Options.Limit)", t.name, b.counts.Live, b.limit)}
	}
	return nil
}

// remove takes out a task that ends. It is called under mu.
func (b *table) remove(t *Task) {
	b.move(t, Ended)
	b.counts.Ended++
	b.counts.Live--
	if t.err != nil {
		b.counts.Failed++
	}
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		b.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		b.last = t.prev
	}
	t.prev, t.next = nil, nil
	if b.counts.Live == 0 {
		for w := b.idle.Pop(); w != nil; w = b.idle.Pop() {
			w.Deliver(struct{}{}, nil)
		}
	}
}

// move changes a task's state. It is called under mu.
func (b *table) move(t *Task, to State) {
	b.changes++
	switch t.state {
	case Queued:
		b.counts.Queued--
	case Running:
		b.counts.Running--
	}
	if to == Running {
		b.counts.Running++
		t.ran = true
	}
	t.state = to
	if to != Parked {
		t.what, t.waiting = nil, nil
	} else {
		t.waits++
	}
}

// Counts says how many tasks there were and are.
func (b *table) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

func (b *table) list() *table { return b }

// live lists the tasks, oldest first.
func (b *table) live() []*Task {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*Task, 0, b.counts.Live)
	for t := b.first; t != nil; t = t.next {
		all = append(all, t)
	}
	return all
}

// admit is enter for a task that was just made; false, without mu, if it has ended,
// now or before.
func (b *table) admit(h home, t *Task) bool {
	if t.id.Load() == 0 && t.state == Ended { // its caller's alone until it is started
		return false
	}
	stack := ""
	if b.level == Full {
		stack = callers.Stack()
	}
	err := b.enter(h, t, stack)
	if err != nil {
		t.end(err)
	}
	return err == nil
}

// gone is the failure of a task that ended its goroutine, as t.FailNow does.
func gone(t *Task) error {
	return &weir.Error{Op: t.String(), Kind: weir.KindLogic, Message: "the task ended its goroutine (runtime.Goexit) instead of returning", Err: weir.ErrPanic}
}
