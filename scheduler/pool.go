package scheduler

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/weirgo/weir"
)

// Options configures a Pool. The zero value is usable.
type Options struct {
	// Lanes is how many tasks of one arena run at once; 0 is GOMAXPROCS.
	Lanes int
	// Limit is how many tasks may live at once; 0 is DefaultLimit. A task beyond
	// it ends at once with ErrLimit.
	Limit int
	Level Level
	// Watchdog is how often to look for tasks that wait for one another in a
	// circle; 0 is never. Such a circle is ended: the waits of its tasks answer
	// the *Deadlock that names them, and OnDeadlock, if set, is called with it.
	Watchdog   time.Duration
	OnDeadlock func(*Deadlock)
	// Grace is how long Close waits for a task that runs and neither ends nor
	// waits for anything of Weir's; 0 is 30 s.
	Grace time.Duration
}

const defaultGrace = 30 * time.Second

// Pool is the scheduler for work: each arena has lanes, a task runs while it
// holds one and gives it back while it waits, so that waits, nested ones too,
// never starve it. A task gets its goroutine when it first gets a lane; which of
// its waiting tasks an arena lets run is first come, first served, those that
// have begun before those that have not. Lanes bound what runs; a parked task
// keeps its goroutine, so how many there are has no bound but Limit. A goroutine
// that has a lane runs one task after the other while any wait to begin.
//
// One mutex guards all of it. A lane's hand-over is under it; a task's function
// and its gates are not.
type Pool struct {
	table
	options Options
	arenas  map[string]*arena // under mu
	doomed  chan struct{}     // closed, and made anew, when waits are ended; under mu
	stop    chan struct{}     // ends the watchdog
	stopped chan struct{}
	workers sync.WaitGroup
	drained chan struct{} // closed once Close has done its work
}

// arena is the lanes of one device.
type arena struct {
	free        int // lanes
	resuming    Queue[struct{}]
	first, last *Task     // those that have not run
	idle        []*worker // at rest
}

// NewPool makes a pool without arenas: the first task of each makes it.
func NewPool(o Options) (*Pool, error) {
	if o.Lanes < 0 || o.Limit < 0 || o.Watchdog < 0 || o.Grace < 0 || o.Level < Basic || o.Level > Full {
		return nil, weir.Argf("scheduler.NewPool", "Lanes %d, Limit %d, Watchdog %v, Grace %v, Level %d; expected none below 0, and a Level that there is",
			o.Lanes, o.Limit, o.Watchdog, o.Grace, o.Level)
	}
	if o.Lanes == 0 {
		o.Lanes = goruntime.GOMAXPROCS(0)
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	p := &Pool{options: o, arenas: map[string]*arena{}, doomed: make(chan struct{}), stop: make(chan struct{}), stopped: make(chan struct{}), drained: make(chan struct{})}
	p.level, p.limit = o.Level, o.Limit
	if o.Watchdog > 0 {
		go p.watch()
	} else {
		close(p.stopped)
	}
	return p, nil
}

// Start starts a task; see Scheduler.
func (p *Pool) Start(t *Task) {
	if !p.admit(p, t) {
		return
	}
	defer p.mu.Unlock()
	a := p.arenas[t.where]
	if a == nil {
		a = &arena{free: p.options.Lanes}
		p.arenas[t.where] = a
	}
	t.arena = a
	if a.free == 0 {
		if a.last != nil {
			a.last.after = t
		} else {
			a.first = t
		}
		a.last = t
		return
	}
	a.free--
	p.move(t, Running)
	p.begin(t)
}

// worker is a goroutine that runs tasks.
type worker struct{ next chan *Task }

// begin gives a task that has a lane a goroutine: an idle one, else a new one. It
// is called under mu.
func (p *Pool) begin(t *Task) {
	a := t.arena
	if k := len(a.idle) - 1; k >= 0 {
		w := a.idle[k]
		a.idle[k], a.idle = nil, a.idle[:k]
		w.next <- t
		return
	}
	p.workers.Add(1)
	go p.work(&worker{make(chan *Task, 1)}, t)
}

// work runs a task, then those that wait to begin on the same lane, then rests.
func (p *Pool) work(w *worker, t *Task) {
	defer p.workers.Done()
	a := t.arena
	defer func() {
		if t != nil { // its function ended this goroutine
			t.end(gone(t))
			p.mu.Lock()
			p.pass(a)
			p.mu.Unlock()
		}
	}()
	for t != nil {
		err := t.execute()
		t.letGo(err)
		t = p.following(w, t, err)
	}
}

// following ends t, which failed with err or did not, and is what w runs next: a
// task that waited to begin, on w's lane; else it gives the lane back and rests
// until there is one. It is nil when w is to end: an arena keeps as many goroutines
// at rest as it has lanes.
func (p *Pool) following(w *worker, t *Task, err error) *Task {
	a := t.arena
	p.mu.Lock()
	t.finish(&p.table, err)
	if a.resuming.Len() == 0 && a.first != nil {
		defer p.mu.Unlock()
		return p.first(a)
	}
	p.pass(a)
	if p.closed || len(a.idle) >= p.options.Lanes {
		p.mu.Unlock()
		return nil
	}
	a.idle = append(a.idle, w)
	p.mu.Unlock()
	return <-w.next
}

// first takes the oldest task that waits to begin; the lane is the caller's.
func (p *Pool) first(a *arena) *Task {
	t := a.first
	if a.first, t.after = t.after, nil; a.first == nil {
		a.last = nil
	}
	p.move(t, Running)
	return t
}

// pass gives a lane to whoever's turn it is. It is called under mu.
func (p *Pool) pass(a *arena) {
	switch w := a.resuming.Pop(); {
	case w != nil:
		w.Deliver(struct{}{}, nil)
	case a.first != nil:
		p.begin(p.first(a))
	default:
		a.free++
	}
}

// yield gives t's lane back.
func (p *Pool) yield(t *Task, what Wait) { p.give(t, t, what) }

// give gives t's lane back; false if there is none to give, since t has ended, or
// another goroutine waits under it.
func (p *Pool) give(ctx context.Context, t *Task, what Wait) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.state != Running {
		return false
	}
	if !p.closing { // a circle's end ends one wait, that of the scheduler all
		t.doom = nil
	}
	p.move(t, Parked)
	t.what, t.waiting = what, ctx
	p.pass(t.arena)
	return true
}

// resume waits for a lane, if t gave its own back.
func (p *Pool) resume(t *Task) {
	p.mu.Lock()
	if t.state != Parked {
		p.mu.Unlock()
		return
	}
	t.awake.Store(false)
	a := t.arena
	if a.free > 0 {
		a.free--
		p.move(t, Running)
		p.mu.Unlock()
		return
	}
	p.move(t, Resuming)
	w := a.resuming.Push(context.Background())
	p.mu.Unlock()
	<-w.ready
	p.mu.Lock()
	p.move(t, Running)
	a.resuming.Recycle(w)
	p.mu.Unlock()
}

func (p *Pool) park(ctx context.Context, t *Task, ready <-chan struct{}, what Wait) error {
	gave := p.give(ctx, t, what)
	err := p.await(ctx, t, ready)
	if gave {
		p.resume(t)
	}
	return err
}

// await waits for ready, the end of ctx, or the doom of t.
func (p *Pool) await(ctx context.Context, t *Task, ready <-chan struct{}) error {
	for {
		p.mu.Lock()
		doomed, doom := p.doomed, t.doom
		p.mu.Unlock()
		if doom != nil {
			return readyOr(ready, doom)
		}
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			return readyOr(ready, context.Cause(ctx))
		case <-doomed: // somebody is
		}
	}
}

func (p *Pool) woken(*Task)   {}
func (p *Pool) breathe(*Task) {}

// doom ends the waits of tasks, if what was seen of them is so still, which same
// says under mu.
func (p *Pool) doom(why error, all []*Task, same func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !same() {
		return false
	}
	for _, t := range all {
		t.doom = why
	}
	close(p.doomed)
	p.doomed = make(chan struct{})
	return true
}

// settle is how often Close looks whether what still lives moves.
const settle = 5 * time.Millisecond

// Close takes no more tasks from outside and waits for those that live, children
// that they still start included, and for devices. When all that is left waits for
// nothing that a task or a device is about to give, those waits, and any later
// ones of the same tasks, are ended with ErrClosed. When a task runs on for longer
// than Grace, in code that is not Weir's, the waits of the others are ended so too,
// and after another Grace what still lives is given up. Each is named in the error,
// an ErrLeak. A second Close waits too, and answers nil.
func (p *Pool) Close() error {
	p.mu.Lock()
	again := p.closing
	p.closing = true
	p.mu.Unlock()
	var errs []error
	if !again {
		errs = p.drain()
		close(p.stop)
		<-p.stopped
		p.mu.Lock()
		p.closed = true
		for _, a := range p.arenas {
			for _, w := range a.idle {
				close(w.next)
			}
			a.idle = nil
		}
		all := p.counts.Live == 0
		p.mu.Unlock()
		if all {
			p.workers.Wait()
		}
		close(p.drained)
	}
	<-p.drained
	return errors.Join(errs...)
}

// drain waits until all tasks have ended, and answers which could not.
func (p *Pool) drain() (errs []error) {
	p.mu.Lock()
	ended := p.idle.Push(context.Background())
	if p.counts.Live == 0 {
		p.idle.Pop().Deliver(struct{}{}, nil)
	}
	p.mu.Unlock()
	tick := time.NewTicker(settle)
	defer tick.Stop()
	closed := &weir.Error{Op: "scheduler.Close", Kind: weir.KindLogic, Message: "the wait was ended: the scheduler is closed", Err: weir.ErrClosed}
	named := map[*Task]bool{}
	var changes uint64
	moved := time.Now()
	for {
		select {
		case <-ended.ready:
			return errs
		case <-tick.C:
		}
		s := p.survey()
		if s.changes != changes {
			changes, moved = s.changes, time.Now()
			continue
		}
		long := time.Since(moved) >= p.options.Grace
		if s.device || (s.awake || len(s.others) > 0) && !long {
			continue
		}
		var found []error
		for _, t := range s.parked {
			if what, _ := t.parkedOn(); what != nil && !named[t] {
				found = append(found, leaked(t, "still waits for "+what.String()))
			}
		}
		if len(found) > 0 {
			if p.doom(closed, s.parked, func() bool { return p.changes == changes }) {
				errs = append(errs, found...)
				for _, t := range s.parked {
					named[t] = true
				}
			}
			moved = time.Now()
			continue
		}
		if len(s.others) == 0 {
			continue
		}
		for _, t := range s.others {
			if !named[t] {
				errs = append(errs, leaked(t, t.holdup()))
			}
		}
		p.mu.Lock()
		p.idle.Remove(ended)
		p.mu.Unlock()
		return errs
	}
}

// survey is what the tasks that live do.
type survey struct {
	changes uint64  // if as many as before, all of it was so at once
	parked  []*Task // for what no device is about to give
	others  []*Task // that do not wait
	device  bool    // one waits for a device
	awake   bool    // a parked one is about to go on
}

func (p *Pool) survey() (s survey) {
	for _, t := range p.live() {
		what, _ := t.parkedOn()
		switch {
		case what == nil:
			s.others = append(s.others, t)
		case what.Ends() >= ByQueue:
			s.device = true
		default:
			s.parked = append(s.parked, t)
			s.awake = s.awake || t.awake.Load() || t.over() != nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.changes = p.changes
	return s
}

// holdup is why a task that does not wait has not ended.
func (t *Task) holdup() string {
	b := t.table()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch t.state {
	case Queued, Resuming:
		return "never got a lane"
	}
	return "still runs, in code that is not Weir's"
}

func leaked(t *Task, how string) error {
	return &weir.Error{Op: "scheduler.Close", Kind: weir.KindLogic, Message: t.String() + " " + how, Site: t.site.String(), Stack: t.stack, Err: weir.ErrLeak}
}

// watch looks for circles of waits until the pool is closed.
func (p *Pool) watch() {
	defer close(p.stopped)
	tick := time.NewTicker(p.options.Watchdog)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		all := p.live()
		in := jammed(all, nil)
		if len(in) == 0 {
			continue
		}
		in = jammed(all, in)
		circle := circleOf(all, func(t *Task) (next []*Task) {
			if in[t] != nil {
				for _, h := range in[t].holders {
					if in[h] != nil {
						next = append(next, h)
					}
				}
			}
			return next
		})
		if circle == nil {
			continue
		}
		d := deadlock(circle, circle)
		same := func() bool {
			for _, t := range circle {
				if t.state != Parked || t.waits != in[t].wait || t.awake.Load() {
					return false
				}
			}
			return true
		}
		if p.doom(d, circle, same) && p.options.OnDeadlock != nil {
			p.options.OnDeadlock(d)
		}
	}
}
