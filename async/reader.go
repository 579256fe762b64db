package async

import (
	"context"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// Reader is the right to read what one write of a value wrote. It has one owner:
// a task that it was given to, or whoever called Read or Clone. Released twice it
// does nothing; used after that, it answers ErrStale.
type Reader[T any] struct {
	e          *epoch[T]
	task       *scheduler.Task
	released   bool
	awaited    bool
	prev, next *Reader[T] // among e.held
}

// hold enters r among its epoch's readers, under order.
func (r *Reader[T]) hold() {
	e := r.e
	e.readers++
	if r.next = e.held; r.next != nil {
		r.next.prev = r
	}
	e.held = r
}

// drop takes r out, under order.
func (r *Reader[T]) drop() {
	if r.released {
		return
	}
	r.released = true
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		r.e.held = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
	r.e.letGo()
}

// Await waits until the value was written and answers it. The reader holds it
// until it is released. Errors: ErrUninitialized of a value that was never
// written; the *Poison of a write that failed; ErrCancelled with ctx's cause when
// ctx ends first, after which Await may be called again; ErrStale of a released
// reader, and of one that was awaited before: what it had to give it gave, and
// a second use is a Clone.
func (r *Reader[T]) Await(ctx context.Context) (x T, err error) {
	const op = "reader.Await"
	scheduler.Breathe(ctx)
	order.Lock()
	if err := r.usable(op); err != nil {
		order.Unlock()
		return x, err
	}
	r.awaited = true
	e := r.e
	if e.known() {
		defer order.Unlock()
		return e.shown(op)
	}
	e.readers++ // a Release meanwhile takes nothing from under the wait
	came := false
	x, err = e.await(ctx, op, func() { came = e.known() })
	if !came {
		order.Lock()
		r.awaited = false
		order.Unlock()
	}
	return x, err
}

// TryAwait is Await without waiting; ok is false if the value is not written yet.
func (r *Reader[T]) TryAwait() (x T, ok bool, err error) {
	order.Lock()
	defer order.Unlock()
	if err := r.usable("reader.TryAwait"); err != nil {
		return x, false, err
	}
	if !r.e.known() {
		return x, false, nil
	}
	r.awaited = true
	x, err = r.e.shown("reader.TryAwait")
	return x, true, err
}

func (r *Reader[T]) usable(op string) error {
	switch {
	case r.released:
		return stale(op, "the reader of %v (write %d) was released", r.e.of, r.e.number)
	case r.awaited:
		return stale(op, "the reader of %v (write %d) was awaited before; Clone it for a second use", r.e.of, r.e.number)
	}
	return nil
}

// Clone makes another reader of the same write, with an owner of its own. Of a
// released reader it is a released reader.
func (r *Reader[T]) Clone() *Reader[T] {
	order.Lock()
	defer order.Unlock()
	c := &Reader[T]{e: r.e, released: r.released}
	if !c.released {
		c.hold()
	}
	return c
}

// Release lets go: writers that wait for it may write.
func (r *Reader[T]) Release() {
	order.Lock()
	defer order.Unlock()
	r.drop()
}

// Bind gives the reader to a task; Go does it.
func (r *Reader[T]) Bind(t *scheduler.Task) error {
	order.Lock()
	defer order.Unlock()
	switch {
	case r.released:
		return stale("async.Go", "%v is given a reader of %v (write %d) that was released", t, r.e.of, r.e.number)
	case r.task != nil && r.task != t:
		return owned(t, r.task, "reader", r.e.of.String())
	}
	r.task = t
	return nil
}

// End releases the reader as its task ends.
func (r *Reader[T]) End(*scheduler.Task, error) { r.Release() }

// Describe is for listings.
func (r *Reader[T]) Describe() scheduler.GateInfo {
	order.Lock()
	defer order.Unlock()
	i := scheduler.GateInfo{Value: r.e.of.label(), Epoch: int(r.e.number), Role: scheduler.Reads}
	switch {
	case r.released:
		i.Phase = scheduler.Released
	case r.e.known():
		i.Phase = scheduler.Open
	}
	return i
}

func stale(op, format string, args ...any) error {
	err := weir.Argf(op, format, args...)
	err.Err = weir.ErrStale
	return err
}
