package async

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/scheduler"
)

// Operation is a step of a Log: how one value is made of others.
type Operation[T any] interface {
	// Name is for messages and listings: "flow.MatMul".
	Name() string
	// Launch submits the operation on inputs that were launched, and answers what
	// it makes. It may wait for scarce things under ctx, which is that of the
	// log's task, with the cancellation of whoever asked for the operation.
	Launch(ctx context.Context, in []T) (T, error)
}

// Launcher launches operations that need nothing of each other, in any order and
// together where it can. It calls Made, Fail or Alone of each.
type Launcher[T any] interface {
	// Together says whether it launches operations together: if not, there are no
	// levels, and each is launched by itself in the order of the calls.
	Together() bool
	// Window says that levels of other operations follow.
	Window()
	LaunchAll(ctx context.Context, level []Launch[T])
	// Scarce says whether err, of an operation that was launched alone, is of
	// something that others give back, as memory is: then what is left of the window is
	// launched in the order of the calls, in which it may be enough.
	Scarce(err error) bool
}

// Log is the ordered list of the operations that were asked for and not launched
// yet. To ask is to append a record; that registers all that the operation reads
// and writes, at once. A task of the log's arena launches them in order, so that
// none of them is a goroutine; what waits for a task's Writer, or for a task's
// Reader to let go, steps aside until that happened, and those behind it that do
// not need it go on.
//
// Whoever launches has the baton: the right to take records, which one goroutine
// has at a time. He takes what there is, up to a window, gives each record a level
// above those of what it needs, and launches level by level (launch.go).
type Log[T any] struct {
	arena    string
	base     context.Context // of the tasks that launch
	launcher Launcher[T]

	// Under order.
	queue  fifo[record[T]]
	ready  fifo[record[T]]     // that stepped aside and can be launched now
	baton  bool                // a task launches, or is about to
	task   *scheduler.Task     // that one
	on     scheduler.Scheduler // where it was started last
	aside  map[*operation[T]]struct{}
	asked  uint64 // how many stepped aside ever
	back   uint64 // how many of those came back ever
	closed bool
	full   scheduler.Queue[struct{}] // who waits for room
	top    uint64                    // the highest level ever given
	floor  uint64                    // the lowest of this window
	shy    int                       // windows until the processor is offered again

	held    bool  // it was made to be launched as a whole, and is not yet
	refused error // the first wait for what it is to launch

	window window[T] // of who has the baton
}

// record is an operation that was asked for.
type record[T any] struct {
	op    Operation[T]
	ctx   context.Context // nil if it carries nothing that the operation needs
	site  callers.Site
	in    [few]*epoch[T] // nil is what it writes, which it has to itself
	more  []*epoch[T]    // the inputs past those
	n     int
	out   *epoch[T]
	also  []*epoch[T] // of the values whose memory inputs view: read, but not looked at
	under *epoch[T]   // of the value whose memory out views: written in place with it
	kind  kind
	cause error // why it is not to be launched
}

// few is how many inputs a record has room for.
const few = 3

// kind is what an operation does to the value that it writes.
type kind uint8

const (
	makes   kind = iota // a new value
	updates             // what is there, in place
	takes               // what is there, and leaves nothing
	turns               // nothing: it comes after all that was asked for before
)

// operation is a record that stepped aside.
type operation[T any] struct {
	log     *Log[T]
	number  uint64 // in the order in which they stepped aside
	record  record[T]
	missing int
	left    scheduler.Queue[struct{}] // who waits for it to leave
}

// MaxQueued is how many operations a log holds; who asks for more waits until
// half of them are launched.
const MaxQueued = 1 << 16

// NewLog makes the log of an arena. Its tasks run under base. Without a launcher
// operations are launched one by one.
func NewLog[T any](base context.Context, arena string, with Launcher[T]) *Log[T] {
	if with == nil {
		with = oneByOne[T]{}
	}
	return &Log[T]{arena: arena, base: base, launcher: with, aside: map[*operation[T]]struct{}{}}
}

// NewHeldLog makes a log whose operations are not launched until Launch has all of
// them launched, as one set, by its caller and under its context. Who waits before
// that for a value that they make would wait for ever: it is an ErrNotRecordable,
// and so is an operation that needs what is not written yet.
func NewHeldLog[T any](base context.Context, arena string, with Launcher[T]) *Log[T] {
	l := NewLog(base, arena, with)
	l.held, l.baton = true, true
	return l
}

// Launch has a held log launch what was asked for. Afterwards it is like any other.
// The error is the first wait that was refused.
func (l *Log[T]) Launch(ctx context.Context) error {
	_ = l.run(ctx) // which never fails
	order.Lock()
	defer order.Unlock()
	l.held = false
	return l.refused
}

type heldKey struct{}

// Under is ctx for who is to ask of a held log: tasks cannot be started under it.
func (l *Log[T]) Under(ctx context.Context) context.Context {
	return context.WithValue(ctx, heldKey{}, func(t *scheduler.Task, name string) error {
		order.Lock()
		defer order.Unlock()
		return l.refuse(&weir.Error{Op: "async.Go", Kind: weir.KindLogic, Site: t.Site().String(), Err: weir.ErrNotRecordable,
			Message: fmt.Sprintf("task %q cannot be started by a program that is recorded", name)})
	})
}

// refuse answers why what is asked of a held log cannot be. It is called under order.
func (l *Log[T]) refuse(why error) error {
	if l.refused == nil {
		l.refused = why
	}
	return why
}

// holds is the refusal to wait for what a held log is to launch, or nil. It is
// called under order.
func (e *epoch[T]) holds(op string) error {
	for e != nil && e.phase == passed {
		e = e.prev
	}
	if e == nil || e.phase != pending || e.waits == nil || e.waits.held == nil || !e.waits.held.held {
		return nil
	}
	return e.waits.held.refuse(&weir.Error{Op: op, Kind: weir.KindLogic, Err: weir.ErrNotRecordable,
		Message: fmt.Sprintf("%v is recorded and not computed; a program that is recorded cannot wait for it", e.of)})
}

// Make asks for a new value of others and answers it. It does not wait, but for
// room in the log. ctx is kept if the operation needs it: if it can end, or if
// keep says so.
func (l *Log[T]) Make(ctx context.Context, s scheduler.Scheduler, at callers.Site, keep bool, op Operation[T], in ...*Value[T]) *Value[T] {
	v := &Value[T]{name: op.Name()}
	v.last = &v.first
	v.first.of = v
	l.ask(ctx, s, at, keep, op, makes, v, in)
	return v
}

// Turn asks for op, which needs nothing, to be launched after all that was asked for
// before was launched or stepped aside.
func (l *Log[T]) Turn(ctx context.Context, s scheduler.Scheduler, op Operation[T]) *Value[T] {
	v := &Value[T]{name: op.Name()}
	v.last = &v.first
	v.first.of = v
	l.ask(ctx, s, callers.Site{}, false, op, turns, v, nil)
	return v
}

// Viewer is an Operation whose result may be a view of its first input.
type Viewer[T any] interface {
	Operation[T]
	// Shares says whether it is: whether they have memory in common.
	Shares(result, first T) bool
}

// View is Make of an operation whose result may share its first input's memory.
// While it may, and when it does, operations that read or change the one in place
// are in order with those that read or change the other; so they stay if a view of
// the result was asked for before it was known. Readers and Writers are of the one
// value alone: a task that holds one of each would wait for itself.
func (l *Log[T]) View(ctx context.Context, s scheduler.Scheduler, at callers.Site, keep bool, op Viewer[T], in ...*Value[T]) *Value[T] {
	order.Lock()
	v := &Value[T]{name: op.Name(), root: in[0].family()}
	in[0].viewed = in[0].root != nil
	order.Unlock()
	v.last = &v.first
	v.first.of = v
	l.ask(ctx, s, at, keep, op, makes, v, in)
	return v
}

// Update asks for target to be changed in place: op's last input is what target
// is, and what op makes is what it will be.
func (l *Log[T]) Update(ctx context.Context, s scheduler.Scheduler, at callers.Site, keep bool, op Operation[T], target *Value[T], in ...*Value[T]) {
	l.ask(ctx, s, at, keep, op, updates, target, in)
}

// Take asks for op to be done with what target is, which is then nothing.
func (l *Log[T]) Take(ctx context.Context, s scheduler.Scheduler, at callers.Site, op Operation[T], target *Value[T]) {
	l.ask(ctx, s, at, false, op, takes, target, nil)
}

// PoisonAt is the poison of an operation that failed before it was asked for.
func PoisonAt(op string, at callers.Site, cause error) *Poison {
	return &Poison{Op: op, Cause: cause, Cancelled: cancelled(cause), site: at}
}

// Poisoned makes a value that carries a failure of an operation that could not
// be asked for.
func Poisoned[T any](name string, at callers.Site, cause error) *Value[T] {
	v := New[T](name)
	v.first.phase, v.first.err = poisoned, PoisonAt(name, at, cause)
	return v
}

func (l *Log[T]) ask(ctx context.Context, s scheduler.Scheduler, at callers.Site, keep bool, op Operation[T], k kind, v *Value[T], in []*Value[T]) {
	var needs context.Context
	var cause error
	if keep || ctx.Done() != nil {
		needs = ctx
		if why := context.Cause(ctx); why != nil {
			cause = weir.Cancelled(why)
		}
	}
	order.Lock()
	for l.queue.len() >= MaxQueued && cause == nil && !l.held && !l.launches(ctx) {
		cause = l.room(ctx)
	}
	if l.closed && cause == nil {
		cause = closedErr(op.Name())
	}
	out, under := &v.first, (*epoch[T])(nil)
	if k == updates || k == takes { // which may have others launched
		out = v.write()
		if v.root != nil {
			under = v.root.write()
		}
	}
	if l.held { // nobody waits for them
		out.awaited().held = l
		if under != nil {
			under.awaited().held = l
		}
	}
	r := l.queue.add()
	r.op, r.ctx, r.site, r.kind, r.n, r.out, r.under, r.cause = op, needs, at, k, len(in), out, under, cause
	for i, x := range in {
		var e *epoch[T]
		switch {
		case k == updates && x == v:
		case k == updates && x == v.root:
			e = r.under.prev
		default:
			e = x.last
			e.readers++
			if x.root != nil && (k != updates || x.root != v.family()) {
				x.root.last.readers++
				r.also = append(r.also, x.root.last)
			}
		}
		if i < few {
			r.in[i] = e
		} else {
			r.more = append(r.more, e)
		}
	}
	l.on = s
	l.start()
	order.Unlock()
}

// start has a task launch what was asked for, unless one does. It is called under
// order.
func (l *Log[T]) start() {
	if l.baton {
		return
	}
	l.baton = true
	t := scheduler.New(context.WithoutCancel(l.base), scheduler.Spec{Name: "launch " + l.arena, Arena: l.arena, Run: l.run, Late: true})
	l.task = t
	l.on.Start(t)
	why := t.Refused()
	if why == nil {
		return
	}
	for r := (record[T]{}); l.take(&r); {
		var none T
		_, cause := r.inputs(nil)
		l.publish(&r, none, cmp.Or(cause, why))
	}
	l.baton = false
}

// room waits under order, which it lets go of, until half of the log is launched.
func (l *Log[T]) room(ctx context.Context) error {
	w := l.full.Push(ctx)
	order.Unlock()
	_, delivered, err := w.Wait(ctx, fullness[T]{l})
	order.Lock()
	if !delivered && l.full.Remove(w) {
		return gaveUp(ctx, "async.Log", fullness[T]{l}.String(), err)
	}
	return nil
}

// launches says whether ctx is that of an operation that the log launches: to wait
// for room, it would wait for itself.
func (l *Log[T]) launches(ctx context.Context) bool {
	return l.baton && scheduler.TaskOf(ctx) == l.task
}

// fullness is the wait for room in a log.
type fullness[T any] struct{ log *Log[T] }

func (f fullness[T]) String() string           { return "room among the operations of " + f.log.arena }
func (fullness[T]) Ends() scheduler.Ending     { return scheduler.ByTask }
func (fullness[T]) Holders() []*scheduler.Task { return nil }

// inPlace says whether the record works on what it writes.
func (r *record[T]) inPlace() bool { return r.kind == updates || r.kind == takes }

// at is the k-th input.
func (r *record[T]) at(k int) *epoch[T] {
	if k < few {
		return r.in[k]
	}
	return r.more[k-few]
}

// inputs appends what the record is launched on to in; the error is why it is not
// to be launched: its own cause, or the first in the order of its inputs.
func (r *record[T]) inputs(in []T) ([]T, error) {
	cause := r.cause
	old := func() (x T, err error) { // what it writes
		if p := r.out.prev; p != nil {
			return p.shown(r.op.Name())
		}
		return x, uninitialized(r.op.Name(), r.out.of)
	}
	for k := range r.n {
		show := old
		if e := r.at(k); e != nil {
			show = func() (T, error) { return e.shown(r.op.Name()) }
		}
		x, err := show()
		if cause == nil {
			cause = err
		}
		in = append(in, x)
	}
	if r.inPlace() && cause == nil {
		var x T
		x, cause = old()
		in = append(in, x)
	}
	return in, cause
}

// take takes the next record.
func (l *Log[T]) take(r *record[T]) (ok bool) {
	if l.ready.pop(r) {
		return true
	}
	ok = l.queue.pop(r)
	if l.full.Len() > 0 && l.queue.len() <= MaxQueued/2 {
		for w := l.full.Pop(); w != nil; w = l.full.Pop() {
			w.Deliver(struct{}{}, nil)
		}
	}
	return ok
}

// fifo is a line of E, in chunks: a line that grows is never copied, and a long one
// gives back what it took.
type fifo[E any] struct {
	n           int
	first, last *chunk[E]
	from, to    int // in first and last: where the next is taken, and put
	spare       *chunk[E]
	spares      int
}

type chunk[E any] struct {
	items [chunkLen]E
	next  *chunk[E]
}

const (
	chunkLen  = 128
	maxSpares = 8 // chunks that are kept: as many operations as a burst has
)

func (f *fifo[E]) len() int { return f.n }

func (f *fifo[E]) push(x E) { *f.add() = x }

// add is a place at the end, which is zero.
func (f *fifo[E]) add() *E {
	if f.last == nil || f.to == chunkLen {
		c := f.spare
		if c != nil {
			f.spare, c.next = c.next, nil
			f.spares--
		} else {
			c = &chunk[E]{}
		}
		if f.last != nil {
			f.last.next = c
		} else {
			f.first, f.from = c, 0
		}
		f.last, f.to = c, 0
	}
	f.n++
	f.to++
	return &f.last.items[f.to-1]
}

func (f *fifo[E]) pop(x *E) bool {
	if f.n == 0 {
		return false
	}
	var none E
	c := f.first
	*x, c.items[f.from] = c.items[f.from], none // what it held may be garbage
	f.n--
	if f.from++; f.from == chunkLen || f.n == 0 { // done with c
		f.first, f.from = c.next, 0
		if f.first == nil {
			f.last, f.to = nil, 0
		}
		if c.next = nil; f.spares < maxSpares {
			c.next, f.spare = f.spare, c
			f.spares++
		}
	}
	return true
}

// step has a record step aside if something that it needs is not known, or not
// quiet.
func (l *Log[T]) step(r record[T]) bool {
	var o *operation[T]
	wait := func() *operation[T] {
		if o == nil {
			l.asked++
			o = &operation[T]{log: l, number: l.asked, record: r}
			l.aside[o] = struct{}{}
		}
		o.missing++
		return o
	}
	for k := range r.n {
		if e := r.at(k); e != nil && !e.known() {
			e.expect(wait())
		}
	}
	for _, e := range r.also {
		if !e.known() {
			e.expect(wait())
		}
	}
	for _, e := range [...]*epoch[T]{r.out, r.under} {
		if e != nil && r.inPlace() && e.prev != nil && !e.prev.quiet {
			e.awaited().inPlace = wait()
		}
	}
	if o == nil {
		return false
	}
	r.out.awaited().by = o
	if ctx := r.ctx; ctx != nil && ctx.Done() != nil {
		o.watch(ctx)
	}
	return true
}

// watch has a task wait for what o waits for, so that the end of ctx ends that. It
// is a task, for the debug scheduler to know of it; an operation that cannot have
// one fails, since it would outlive its context.
func (o *operation[T]) watch(ctx context.Context) {
	l := o.log
	t := scheduler.New(context.WithoutCancel(ctx), scheduler.Spec{Name: o.record.op.Name(), Arena: l.arena, Site: o.record.site, Late: true,
		Run: func(task context.Context) error {
			ctx := scheduler.As(ctx, task)
			order.Lock()
			defer order.Unlock()
			if _, waits := l.aside[o]; !waits {
				return nil
			}
			w := o.left.Push(ctx)
			order.Unlock()
			_, left, err := w.Wait(ctx, aside[T]{o})
			order.Lock()
			if !left && o.left.Remove(w) {
				o.leave(gaveUp(ctx, o.record.op.Name(), aside[T]{o}.text(), err))
			}
			return nil
		}})
	l.on.Start(t)
	if err := t.Refused(); err != nil {
		o.leave(err)
	}
}

// aside is the wait of an operation that stepped aside.
type aside[T any] struct{ o *operation[T] }

func (a aside[T]) String() string {
	order.Lock()
	defer order.Unlock()
	return a.text()
}

// text is String under order.
func (a aside[T]) text() string {
	r := &a.o.record
	if e := a.unknown(); e != nil {
		return reading[T]{e}.String()
	}
	return writing[T]{r.loud()}.String()
}

func (aside[T]) Ends() scheduler.Ending { return scheduler.ByTask }

// Holders are those of what String names.
func (a aside[T]) Holders() []*scheduler.Task {
	order.Lock()
	e, out := a.unknown(), a.o.record.loud()
	order.Unlock()
	if e != nil {
		return reading[T]{e}.Holders()
	}
	return writing[T]{out}.Holders()
}

// loud is what the operation writes in place and has to wait for; under order.
func (r *record[T]) loud() *epoch[T] {
	if e := r.under; e != nil && e.prev != nil && !e.prev.quiet {
		return e
	}
	return r.out
}

// unknown is the first of what the operation needs that is not known; under order.
func (a aside[T]) unknown() *epoch[T] {
	r := &a.o.record
	for k := range r.n {
		if e := r.at(k); e != nil && !e.known() {
			return e
		}
	}
	for _, e := range r.also {
		if !e.known() {
			return e
		}
	}
	return nil
}

// expect enters an operation among those that wait for e's phase. Those that gave
// up leave when there is no room.
func (e *epoch[T]) expect(o *operation[T]) {
	w := e.awaited()
	if n := len(w.ops); n == cap(w.ops) && n > 0 {
		w.ops = slices.DeleteFunc(w.ops, func(o *operation[T]) bool {
			_, waits := o.log.aside[o]
			return !waits
		})
		if len(w.ops) > n/2 { // so that not every operation looks at all
			w.ops = slices.Grow(w.ops, n)
		}
	}
	w.ops = append(w.ops, o)
}

// arrived is called, under order, with each thing that was missing.
func (o *operation[T]) arrived() {
	if o.missing--; o.missing == 0 {
		o.leave(nil)
	}
}

// leave has the operation launched, or failed for cause.
func (o *operation[T]) leave(cause error) {
	l := o.log
	if _, waits := l.aside[o]; !waits {
		return
	}
	delete(l.aside, o)
	o.record.out.by = nil
	l.back++
	for w := o.left.Pop(); w != nil; w = o.left.Pop() {
		w.Deliver(struct{}{}, nil)
	}
	o.record.cause = cause
	l.ready.push(o.record)
	l.start()
}

// Returned is how many operations that had stepped aside are launched, or are about
// to be.
func (l *Log[T]) Returned() uint64 {
	order.Lock()
	defer order.Unlock()
	return l.back
}

// Close fails, with ErrClosed, the operations that stepped aside, and names them
// in its error; none can be asked for afterwards. Its tasks have ended before.
func (l *Log[T]) Close() error {
	order.Lock()
	defer order.Unlock()
	l.closed = true
	all := slices.SortedFunc(maps.Keys(l.aside), func(a, b *operation[T]) int { return cmp.Compare(a.number, b.number) })
	errs := make([]error, len(all))
	for i, o := range all {
		errs[i] = &weir.Error{Op: o.record.op.Name(), Kind: weir.KindLogic, Site: o.record.site.String(), Err: weir.ErrLeak,
			Message: "the operation was never launched: it waits for " + aside[T]{o}.text()}
	}
	for _, o := range all {
		o.leave(closedErr(o.record.op.Name()))
	}
	return errors.Join(errs...)
}

func closedErr(op string) error {
	return &weir.Error{Op: op, Kind: weir.KindLogic, Message: "the runtime is closed", Err: weir.ErrClosed}
}

func panicked(op, how string, cause error) error {
	return &weir.Error{Op: op, Kind: weir.KindGeneric, Message: how, Stack: string(debug.Stack()), Err: errors.Join(weir.ErrPanic, cause)}
}

// poison is what a failure of the operation poisons with: the first cause, or a new
// one. It asks the failure, which may be anybody's, and is not called under order
// but with Weir's own.
func (r *record[T]) poison(cause error) *Poison {
	var first *Poison
	if errors.As(cause, &first) {
		return first
	}
	ended := r.ctx != nil && r.ctx.Err() != nil && errors.Is(cause, context.Cause(r.ctx))
	return &Poison{Op: r.op.Name(), Cause: cause, Cancelled: ended || cancelled(cause), site: r.site}
}

// publish makes known what an operation made, and lets go of what it read.
func (l *Log[T]) publish(r *record[T], out T, cause error) {
	for k := range r.n {
		if e := r.at(k); e != nil && (r.under == nil || e != r.under.prev) {
			e.letGo()
		}
	}
	for _, e := range r.also {
		e.letGo()
	}
	if r.under != nil {
		r.under.writer.release()
	}
	var zero T
	switch e := r.out; {
	case cause != nil:
		p, ok := cause.(*Poison)
		if !ok {
			p = r.poison(cause)
		}
		e.decide(poisoned, zero, p)
	case r.kind == takes:
		e.decide(unwritten, zero, nil)
	default:
		e.decide(written, out, nil)
	}
}
