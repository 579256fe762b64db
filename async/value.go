package async

import (
	"context"
	"fmt"
	goruntime "runtime"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// Value is a place for values of type T that are written in the future. It holds
// none until it is first written. Reads and writes of it are in the order in
// which Read and Write were called, whenever their tasks run: a reader sees what
// the write before it wrote. All methods may be called by several goroutines at
// once. What was read stays readable when the Value itself is garbage.
type Value[T any] struct {
	name   string
	root   *Value[T] // whose memory it views, or nil; under order
	viewed bool      // a view of it was asked for while it had a root; under order
	last   *epoch[T] // under order
	first  epoch[T]
}

// family is the value that has the memory. It is called under order.
func (v *Value[T]) family() *Value[T] {
	if v.root != nil {
		return v.root
	}
	return v
}

// New makes a value that was never written. The name is for messages and
// listings; it need not be unique.
func New[T any](name string) *Value[T] {
	v := &Value[T]{name: name}
	v.last = &v.first
	v.first.of, v.first.phase = v, unwritten
	return v
}

// Of makes a value that can be read at once.
func Of[T any](x T) *Value[T] { return Named("", x) }

// Named is Of with a name for messages and listings.
func Named[T any](name string, x T) *Value[T] {
	v := New[T](name)
	v.first.phase, v.first.result = written, x
	return v
}

// Name is what New was given.
func (v *Value[T]) Name() string { return v.name }

// String names the value in messages.
func (v *Value[T]) String() string {
	if v.name == "" {
		return fmt.Sprintf("value %p", v)
	}
	return fmt.Sprintf("value %q", v.name)
}

// Read asks to read what the last write asked for so far will have written. The
// Reader is to be released, by a task that it is given to or by Release: writers
// after it that write in place wait for that.
func (v *Value[T]) Read() *Reader[T] {
	order.Lock()
	defer order.Unlock()
	r := &Reader[T]{e: v.last}
	r.hold()
	return r
}

// ReadMemory is Read for a task that does what an operation of a log does: it asks,
// at once, to read the value that v is a view of, too (Log.View). So writes in place
// of that wait for it, and it is to wait for those before it, whatever they answer.
// under is nil if v is no view.
func (v *Value[T]) ReadMemory() (r, under *Reader[T]) {
	order.Lock()
	defer order.Unlock()
	r = &Reader[T]{e: v.last}
	r.hold()
	if v.root != nil {
		under = &Reader[T]{e: v.root.last}
		under.hold()
	}
	return r, under
}

// Write asks to write after all that was asked for so far. The Writer is to be
// released, by a task that it is given to, by Set or by Release: readers after
// it wait for that.
func (v *Value[T]) Write() *Writer[T] {
	order.Lock()
	defer order.Unlock()
	return &v.write().writer
}

// Set writes x after all that was asked for so far.
func (v *Value[T]) Set(x T) error { return v.Write().Set(x) }

// Get reads the value and answers what it is, waiting for its writer. The errors
// are those of Reader.Await.
func (v *Value[T]) Get(ctx context.Context) (T, error) {
	scheduler.Breathe(ctx)
	order.Lock()
	e := v.last
	if e.known() {
		defer order.Unlock()
		return e.shown("async.Get")
	}
	e.readers++
	if scheduler.TaskOf(ctx) == nil { // a turn for others: what is missing is often about to come, and to park costs twice that
		order.Unlock()
		goruntime.Gosched()
		order.Lock()
		if e.known() {
			defer order.Unlock()
			defer e.letGo()
			return e.shown("async.Get")
		}
	}
	return e.await(ctx, "async.Get", func() {})
}

// Wait waits for the last writer asked for so far. The errors are those of Get.
func (v *Value[T]) Wait(ctx context.Context) error {
	_, err := v.Get(ctx)
	return err
}

// Take moves the value out, after all that was asked for so far; those who read
// after it find a value that was never written. It waits for earlier readers to
// let go. On an error the value stays.
func (v *Value[T]) Take(ctx context.Context) (T, error) {
	w := v.Write()
	x, err := w.Await(ctx)
	if err != nil {
		w.Release()
		return x, err
	}
	order.Lock()
	defer order.Unlock()
	w.open = false
	var zero T
	w.e.decide(unwritten, zero, nil)
	return x, nil
}

// await waits, as one of e's readers, until e is known, and lets go. It is called
// under order, and returns without it; after is called under it.
func (e *epoch[T]) await(ctx context.Context, op string, after func()) (x T, err error) {
	if t := scheduler.TaskOf(ctx); t != nil && e.decider() == t {
		e.letGo()
		after()
		order.Unlock()
		return x, e.itself(op, t, "the writer that is to write what it waits for")
	}
	if err := e.holds(op); err != nil {
		e.letGo()
		after()
		order.Unlock()
		return x, err
	}
	w := e.push(ctx)
	order.Unlock()
	_, delivered, err := w.Wait(ctx, reading[T]{e})
	order.Lock()
	defer order.Unlock()
	defer after()
	defer e.letGo()
	if !delivered && !e.waiters.Remove(w) {
		w.Result()
		delivered = true
	}
	e.waiters.Recycle(w)
	if delivered {
		return e.shown(op)
	}
	return x, gaveUp(ctx, op, reading[T]{e}.String(), err)
}

// itself is the error of a task that would wait for itself.
func (e *epoch[T]) itself(op string, t *scheduler.Task, what string) error {
	return &weir.Error{Op: op, Kind: weir.KindLogic, Site: t.Site().String(), Err: weir.ErrDeadlock,
		Message: fmt.Sprintf("%v would wait for itself: of %v it holds %s; release that first", t, e.of, what)}
}

// reading is the wait for an epoch's write.
type reading[T any] struct{ e *epoch[T] }

func (r reading[T]) String() string {
	return fmt.Sprintf("%v, to be written (write %d)", r.e.of, r.e.number)
}
func (reading[T]) Ends() scheduler.Ending { return scheduler.ByTask }

// Holders is the task of the writer.
func (r reading[T]) Holders() []*scheduler.Task {
	order.Lock()
	defer order.Unlock()
	if t := r.e.decider(); t != nil {
		return []*scheduler.Task{t}
	}
	return nil
}

// decider is the task whose writer is to make the phase known, if one has it: e's
// own; of one that passed, that of the one before it; of what an operation that
// stepped aside is to make, that of what it waits for. It is called under order.
func (e *epoch[T]) decider() *scheduler.Task {
	for e != nil {
		switch {
		case e.phase != pending:
			e = e.prev
		case e.waits != nil && e.by != nil:
			e = aside[T]{e.by}.unknown()
		default:
			return e.writer.task
		}
	}
	return nil
}
