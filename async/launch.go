package async

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// A window of records is launched level by level: what needs nothing of the others
// first, then what needs that, and so on. So what a level holds can be launched in
// any order, and together. Batches form of whatever was asked for while the window
// before was launched. Nobody lingers for more to come, but while there is less than a
// window those who are just asking are let go on.
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
	scarce   bool // something was: what is left is launched in the order of the calls
	inOrder  bool // as is being done
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
// calls Tell, or launches an operation alone.
func (x *Launch[T]) Made(out T) { x.end(out, nil) }

// Fail says that it failed.
func (x *Launch[T]) Fail(err error) {
	var none T
	x.end(none, err)
}

// Tell makes known what is over. A launcher calls it before it waits, as Alone does.
func (x *Launch[T]) Tell() { x.log.tell() }

func (x *Launch[T]) end(out T, err error) {
	x.out, x.err, x.state = out, err, over
	x.log.window.over = append(x.log.window.over, x.index)
}

// Later has this operation, and all others of the window that are not over, be launched
// in the order of the calls: what is launched ahead of that takes too much of what is
// scarce. The launcher then returns. It is false if that is how they are launched.
func (x *Launch[T]) Later() bool {
	w := &x.log.window
	w.scarce = w.scarce || !w.inOrder
	return w.scarce
}

// Done says whether Made, Fail or Alone was called.
func (x *Launch[T]) Done() bool { return x.state == over }

// Failed says whether it is done and failed.
func (x *Launch[T]) Failed() bool { return x.err != nil }

// Alone launches the operation by itself, under ctx as Context has it, and makes
// known what came of it. A panic is its failure.
func (x *Launch[T]) Alone(ctx context.Context) {
	x.log.tell() // of the others first: this one may wait
	if x.log.window.scarce {
		return // its turn comes in the order of the calls
	}
	x.alone(ctx)
	scheduler.Breathe(ctx)
}

func (x *Launch[T]) alone(ctx context.Context) {
	x.state = begun
	defer func() {
		if v := recover(); v != nil {
			cause, _ := v.(error)
			x.Fail(panicked(x.Op.Name(), fmt.Sprintf("panic: %v", v), cause))
		}
	}()
	under, err := x.Context(ctx) // which may be anybody's
	if err != nil {
		x.Fail(err)
		return
	}
	out, err := x.Op.Launch(under, x.In)
	w := &x.log.window
	switch {
	case err == nil:
		x.Made(out)
	case !w.inOrder && x.log.launcher.Scarce(err):
		x.state, w.scarce = waiting, true
	default:
		x.Fail(err)
	}
}

// oneByOne is the Launcher that launches nothing together.
type oneByOne[T any] struct{}

func (oneByOne[T]) LaunchAll(ctx context.Context, level []Launch[T]) {
	for i := range level {
		level[i].Alone(ctx)
	}
}

func (oneByOne[T]) Together() bool    { return false }
func (oneByOne[T]) Window()           {}
func (oneByOne[T]) Scarce(error) bool { return false }

// run is the task that has the baton.
func (l *Log[T]) run(ctx context.Context) error {
	ctx = scheduler.As(l.base, ctx)
	ended := false
	defer func() {
		if !ended && l.window.open { // an operation ended this goroutine
			l.abandon()
		}
	}()
	order.Lock()
	for l.gather() {
		l.fill()
		if !l.launcher.Together() {
			l.launchInOrder(ctx)
			continue
		}
		l.launcher.Window()
		for i := range l.window.levels {
			if l.launch(ctx, l.window.levels[i]); l.window.scarce {
				l.launchInOrder(ctx)
			}
		}
	}
	l.baton, ended = false, true // the window is another task's from here on
	order.Unlock()
	return nil
}

// pause is how many turns to wait for another operation to be asked for: a
// microsecond or two, some ten times what it takes to ask for one. (A clock stands
// still in a bubble of testing/synctest.)
const pause = 4000

// shy is in how many windows nobody is offered the processor after that was of no use.
const shy = 7

// gather lets whoever is asking for operations go on, and answers whether there are
// any. The first of many would be launched alone otherwise, which on a GPU costs as
// much as to ask for 60. It is called under order, which it lets go of meanwhile.
//
// To offer the processor, which whoever asks may need, is to be moved to an idle one if
// there is any, whose caches know nothing of the driver: the first launch there takes
// some 80 us longer.
func (l *Log[T]) gather() bool {
	offer, useful := l.shy == 0, false
	for n := l.queue.len(); n > 0 && n < mostTogether; {
		order.Unlock()
		if offer {
			goruntime.Gosched()
		}
		for range pause {
		}
		order.Lock()
		before := n
		if n = l.queue.len(); n > before {
			useful = true
			continue
		}
		switch {
		case !offer:
			l.shy--
		case !useful:
			l.shy = shy
		}
		break
	}
	return l.ready.len()+l.queue.len() > 0
}

// fill takes a window of records and gives them levels.
func (l *Log[T]) fill() {
	w := &l.window
	w.records, w.levels, w.next = w.records[:0], w.levels[:0], w.next[:0]
	w.scarce, w.inOrder = false, false
	l.floor = l.top + 1
	for len(w.records) < mostTogether {
		i := int32(len(w.records))
		w.records = append(w.records, record[T]{})
		if !l.take(&w.records[i]) {
			w.records = w.records[:i]
			break
		}
		w.next = append(w.next, -1)
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
}

// level is one above those of what the record needs in this window: of who writes
// what it reads, and of who reads or writes what it works on.
func (l *Log[T]) level(r *record[T]) uint64 {
	at := l.floor
	if r.kind == turns {
		at = l.top + 1
	}
	above := func(level uint64) {
		if level <= l.top { // else another log gave it, which says nothing here
			at = max(at, level+1)
		}
	}
	for k := range r.n {
		if e := r.at(k); e != nil {
			above(e.level)
		}
	}
	for _, e := range r.also {
		above(e.level)
	}
	for _, e := range [...]*epoch[T]{r.out, r.under} {
		if e != nil && e.prev != nil && r.inPlace() {
			above(e.prev.level)
			above(e.prev.read)
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

// launchInOrder launches what is left of the window one by one, in the order of the
// calls. Levels take more memory than that: what is freed is freed levels after it was
// made. It is called under order, which it lets go of meanwhile.
func (l *Log[T]) launchInOrder(ctx context.Context) {
	w := &l.window
	w.scarce, w.inOrder = false, true
	for i := range w.records {
		w.next[i] = -1
		l.launch(ctx, level{int32(i), int32(i)})
	}
	w.inOrder = false
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
		if l.held && r.cause == nil && !r.ready() {
			r.cause = l.early(r)
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
	w.open = false
}

// early is why a held log cannot launch a record now.
func (l *Log[T]) early(r *record[T]) error {
	return l.refuse(&weir.Error{Op: r.op.Name(), Kind: weir.KindLogic, Site: r.site.String(), Err: weir.ErrNotRecordable,
		Message: "it waits for " + aside[T]{&operation[T]{record: *r}}.text()})
}

// tell makes known what is over.
func (l *Log[T]) tell() {
	w := &l.window
	if len(w.over)+len(w.failed) == 0 {
		return
	}
	l.prepare()
	order.Lock()
	defer order.Unlock()
	l.publishOver()
}

// prepare finishes what is over; see finish.
func (l *Log[T]) prepare() {
	w := &l.window
	for _, i := range w.over {
		l.finish(&w.launches[i])
	}
	for i := range w.failed {
		f := &w.failed[i]
		f.cause = w.records[f.record].poisonOf(f.cause)
	}
}

// poisonOf is poison of a failure that may be anybody's: if asking it panics, that is
// the failure.
func (r *record[T]) poisonOf(cause error) (p *Poison) {
	defer func() {
		if v := recover(); v != nil {
			p = &Poison{Op: r.op.Name(), Cause: panicked(r.op.Name(), fmt.Sprintf("its error panicked: %v", v), nil), site: r.site}
		}
	}()
	return r.poison(cause)
}

// publishOver makes known what was prepared. It is called under order.
func (l *Log[T]) publishOver() {
	w := &l.window
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

// close ends a level: it has what was begun or passed over fail, makes known what is
// over, and forgets the launches. It returns under order, so that whoever learns of the
// last one finds the log at its next level, or without a task.
func (l *Log[T]) close() {
	w := &l.window
	for i := range w.launches {
		switch x := &w.launches[i]; x.state {
		case waiting:
			if w.scarce {
				continue
			}
			x.Fail(&weir.Error{Op: x.Op.Name(), Kind: weir.KindLogic, Message: "the log's launcher passed it over; expected it to be launched"})
		case begun:
			x.Fail(panicked(x.Op.Name(), "it ended its goroutine (runtime.Goexit) instead of returning", nil))
		}
	}
	l.prepare()
	order.Lock()
	l.publishOver()
	clear(w.launches)
	clear(w.in)
	w.launches, w.in = w.launches[:0], w.in[:0]
}

// finish prepares what is to be made known of a launch: it asks operations and
// failures, which may be anybody's, and is not called under order.
func (l *Log[T]) finish(x *Launch[T]) {
	r := &l.window.records[x.record]
	if x.err != nil {
		x.err = r.poisonOf(x.err)
		return
	}
	if r.kind == makes && r.out.of.root != nil {
		x.apart = !r.op.(Viewer[T]).Shares(x.out, x.In[0])
	}
}

// abandon leaves the window to another task: what was launched is made known, what
// had begun has failed, and the rest is launched by that one. If nothing had begun it
// is the launcher that ended, and would again: all that it was given has failed.
func (l *Log[T]) abandon() {
	w := &l.window
	all := !slices.ContainsFunc(w.launches, func(x Launch[T]) bool { return x.state == begun })
	kept := w.launches[:0]
	for i := range w.launches {
		if x := &w.launches[i]; x.state == begun || x.state == waiting && all || x.state == over && w.records[x.record].op != nil {
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
