package async

import (
	"context"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// A window of records is launched level by level: what needs nothing of the others
// first, then what needs that, and so on. So what a level holds can be launched in
// any order, and together. Batches form of whatever was asked for while the window
// before was launched; nobody waits for more to come.
//
// Levels are a plan, and no more: when its turn comes, a record whose inputs are not
// known after all, or whose target is not quiet, steps aside like any other. The
// epochs alone decide what may be launched.
//
// Rejected: to have each record that needs another step aside until that is
// launched. It finds the same levels with no notion of them, and takes an object, an
// entry in a map and a turn in a list for each.

// mostTogether is how many records a window has: more are in the way of those who
// wait for the first.
const mostTogether = 1024

// window is what the holder of the baton works on, in memory that is used again.
type window[T any] struct {
	records  []record[T]
	levels   []level
	next     []int32 // the next record of the same level, or -1
	launches []Launch[T]
	over     []int32   // launches that are over, to be made known
	failed   []failure // records that are not to be launched, likewise
	in       []T
	spare    []T
	open     bool // a level is being launched
}

// failure is why a record is not launched.
type failure struct {
	record int32
	cause  error
}

// level is the first and the last record of one.
type level struct{ first, last int32 }

// Launch is an operation whose turn has come.
type Launch[T any] struct {
	Op Operation[T]
	In []T // nobody changes or keeps it

	log      *Log[T]
	index    int32 // in window.launches
	record   int32 // in window.records
	from, to int32 // in window.in
	state    state
	apart    bool // what it made shares no memory with its first input
	ctx      context.Context
	out      T
	err      error
}

// state is how far a launch is.
type state uint8

const (
	waiting state = iota
	begun
	over
)

// Context is ctx with the cancellation, the scope and the device of whoever asked
// for the operation; the error is that he wants it no more.
func (x *Launch[T]) Context(ctx context.Context) (context.Context, error) {
	if x.ctx != nil {
		ctx = scheduler.As(x.ctx, ctx)
	}
	if cause := context.Cause(ctx); cause != nil {
		return ctx, weir.Cancelled(cause)
	}
	return ctx, nil
}

// Made says what the operation made. It is known to others when the launcher returns,
// or launches an operation alone.
func (x *Launch[T]) Made(out T) { x.end(out, nil) }

// Fail says that it failed.
func (x *Launch[T]) Fail(err error) {
	var none T
	x.end(none, err)
}

func (x *Launch[T]) end(out T, err error) {
	x.out, x.err, x.state = out, err, over
	x.log.window.over = append(x.log.window.over, x.index)
}

// Done says whether Made, Fail or Alone was called.
func (x *Launch[T]) Done() bool { return x.state == over }

// Alone launches the operation by itself, under ctx as Context has it, and makes
// known what came of it. A panic is its failure.
func (x *Launch[T]) Alone(ctx context.Context) {
	x.log.tell() // of the others first: this one may wait
	x.alone(ctx)
	scheduler.Breathe(ctx)
	x.log.tell()
}

func (x *Launch[T]) alone(ctx context.Context) {
	x.state = begun
	under, err := x.Context(ctx)
	if err != nil {
		x.Fail(err)
		return
	}
	defer func() {
		if v := recover(); v != nil {
			cause, _ := v.(error)
			x.Fail(panicked(x.Op.Name(), fmt.Sprintf("panic: %v", v), cause))
		}
	}()
	if out, err := x.Op.Launch(under, x.In); err != nil {
		x.Fail(err)
	} else {
		x.Made(out)
	}
}

// oneByOne is the Launcher that launches nothing together.
type oneByOne[T any] struct{}

func (oneByOne[T]) LaunchAll(ctx context.Context, level []Launch[T]) {
	for i := range level {
		level[i].Alone(ctx)
	}
}

// run is the task that has the baton.
func (l *Log[T]) run(ctx context.Context) error {
	ctx = scheduler.As(l.base, ctx)
	defer func() {
		if l.window.open { // an operation ended this goroutine
			l.abandon()
		}
	}()
	order.Lock()
	for l.fill() {
		for i := range l.window.levels {
			l.launch(ctx, l.window.levels[i])
		}
	}
	l.baton = false
	order.Unlock()
	return nil
}

// fill takes a window of records and gives them levels; false if there are none.
func (l *Log[T]) fill() bool {
	w := &l.window
	clear(w.records)
	w.records, w.levels, w.next = w.records[:0], w.levels[:0], w.next[:0]
	l.floor = l.top + 1
	for len(w.records) < mostTogether {
		r, ok := l.take()
		if !ok {
			break
		}
		i := int32(len(w.records))
		w.records, w.next = append(w.records, r), append(w.next, -1)
		at := int(l.level(&w.records[i]) - l.floor)
		for len(w.levels) <= at {
			w.levels = append(w.levels, level{-1, -1})
		}
		if v := &w.levels[at]; v.first < 0 {
			v.first, v.last = i, i
		} else {
			w.next[v.last], v.last = i, i
		}
	}
	return len(w.records) > 0
}

// level is one above those of what the record needs in this window: of who writes
// what it reads, and of who reads or writes what it works on.
func (l *Log[T]) level(r *record[T]) uint64 {
	at := l.floor
	if r.kind == turns {
		at = l.top + 1
	}
	for k := range r.n {
		if e := r.at(k); e != nil {
			at = max(at, e.level+1)
		}
	}
	for _, e := range r.also {
		at = max(at, e.level+1)
	}
	for _, e := range [...]*epoch[T]{r.out, r.under} {
		if e != nil && e.prev != nil && r.inPlace() {
			at = max(at, e.prev.level+1, e.prev.read+1)
		}
	}
	for k := range r.n {
		if e := r.at(k); e != nil {
			e.read = max(e.read, at)
		}
	}
	for _, e := range r.also {
		e.read = max(e.read, at)
	}
	r.out.level = at
	if r.under != nil {
		r.under.level = at
	}
	l.top = max(l.top, at)
	return at
}

// launch launches the records of a level and makes known what they made. It is
// called under order, which it lets go of meanwhile.
func (l *Log[T]) launch(ctx context.Context, v level) {
	w := &l.window
	for i := v.first; i >= 0; i = w.next[i] {
		r := &w.records[i]
		if r.op == nil { // it failed before its turn
			continue
		}
		if r.cause == nil && l.step(*r) {
			*r = record[T]{}
			continue
		}
		x := Launch[T]{Op: r.op, log: l, index: int32(len(w.launches)), record: i, from: int32(len(w.in)), ctx: r.ctx}
		var cause error
		w.in, cause = r.inputs(w.in)
		x.to = int32(len(w.in))
		if cause != nil {
			w.failed = append(w.failed, failure{i, cause})
			continue
		}
		w.launches = append(w.launches, x)
	}
	w.open = true
	order.Unlock()
	for i := range w.launches {
		x := &w.launches[i]
		x.In = w.in[x.from:x.to:x.to]
	}
	l.tell()
	if len(w.launches) > 0 {
		l.launcher.LaunchAll(ctx, w.launches)
	}
	l.close()
	order.Lock()
	w.open = false
}

// tell makes known what is over.
func (l *Log[T]) tell() {
	w := &l.window
	if len(w.over)+len(w.failed) == 0 {
		return
	}
	for _, i := range w.over {
		l.finish(&w.launches[i])
	}
	for i := range w.failed {
		f := &w.failed[i]
		f.cause = w.records[f.record].poison(f.cause)
	}
	order.Lock()
	defer order.Unlock()
	failed := len(w.failed) > 0
	for _, f := range w.failed {
		var none T
		l.settle(&w.records[f.record], none, f.cause, false)
	}
	for _, i := range w.over {
		x := &w.launches[i]
		r := &w.records[x.record]
		failed = failed || x.err != nil
		l.settle(r, x.out, x.err, x.apart)
	}
	clear(w.failed)
	w.over, w.failed = w.over[:0], w.failed[:0]
	if failed {
		l.spread()
	}
}

// settle makes known what came of a record, which is over then. Apart says that what it
// made shares no memory with its first input. It is called under order.
func (l *Log[T]) settle(r *record[T], out T, cause error, apart bool) {
	if v := r.out.of; (apart || cause != nil && r.kind == makes) && !v.viewed { // else views of it are in its root's order
		v.root = nil
	}
	l.publish(r, out, cause)
	*r = record[T]{}
}

// spread has what is made of failures fail now: it is not to wait for those of the
// levels before that may have to wait. It is called under order.
func (l *Log[T]) spread() {
	w := &l.window
	for i := range w.records {
		r := &w.records[i]
		if r.op == nil || r.cause != nil || !r.ready() {
			continue
		}
		in, cause := r.inputs(w.spare[:0])
		if w.spare = in; cause != nil {
			var none T
			l.settle(r, none, r.poison(cause), false)
		}
		clear(in)
	}
}

// ready says whether all that the record needs is known, and what it works on quiet.
func (r *record[T]) ready() bool {
	for k := range r.n {
		if e := r.at(k); e != nil && !e.known() {
			return false
		}
	}
	for _, e := range r.also {
		if !e.known() {
			return false
		}
	}
	for _, e := range [...]*epoch[T]{r.out, r.under} {
		if e != nil && r.inPlace() && e.prev != nil && !e.prev.quiet {
			return false
		}
	}
	return true
}

// close ends a level: it makes known what is over, has what was begun or passed over
// fail, and forgets the launches.
func (l *Log[T]) close() {
	w := &l.window
	for i := range w.launches {
		switch x := &w.launches[i]; x.state {
		case waiting:
			x.Fail(&weir.Error{Op: x.Op.Name(), Kind: weir.KindLogic, Message: "the log's launcher passed it over; expected it to be launched"})
		case begun:
			x.Fail(panicked(x.Op.Name(), "it ended its goroutine (runtime.Goexit) instead of returning", nil))
		}
	}
	l.tell()
	clear(w.launches)
	clear(w.in)
	w.launches, w.in = w.launches[:0], w.in[:0]
}

// finish prepares what is to be made known of a launch: it asks operations and
// failures, which may be anybody's, and is not called under order.
func (l *Log[T]) finish(x *Launch[T]) {
	r := &l.window.records[x.record]
	if x.err != nil {
		x.err = r.poison(x.err)
		return
	}
	if r.kind == makes && r.out.of.root != nil {
		x.apart = !r.op.(Viewer[T]).Shares(x.out, x.In[0])
	}
}

// abandon leaves the window to another task: what was launched is made known, what
// had begun has failed, and the rest is launched by that one.
func (l *Log[T]) abandon() {
	w := &l.window
	kept := w.launches[:0]
	for i := range w.launches {
		if x := &w.launches[i]; x.state == begun || x.state == over && w.records[x.record].op != nil {
			kept = append(kept, *x)
		}
	}
	clear(w.launches[len(kept):])
	w.launches, w.over = kept, w.over[:0]
	for i := range w.launches {
		x := &w.launches[i]
		if x.index = int32(i); x.state == over {
			w.over = append(w.over, x.index)
		}
	}
	l.close()
	order.Lock()
	defer order.Unlock()
	w.open = false
	for i := range w.records {
		if r := &w.records[i]; r.op != nil {
			l.ready.push(*r)
			*r = record[T]{}
		}
	}
	l.baton = false
	if l.ready.len()+l.queue.len() > 0 {
		l.start()
	}
}
