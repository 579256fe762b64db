package async

import (
	"context"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// Writer is the right to write a value once. It has one owner: a task that it was
// given to, or whoever called Write. Set, Fail and Release end it; Released again
// it does nothing, and Set or Fail answer ErrStale.
type Writer[T any] struct {
	e    *epoch[T]
	task *scheduler.Task
	made bool // somebody asked for it
	open bool
	set  bool
}

// Set writes x and lets go: readers after it go on. It never waits: readers
// before it keep what they read. It is a full overwrite, so it clears poison.
func (w *Writer[T]) Set(x T) error {
	order.Lock()
	defer order.Unlock()
	if err := w.usable("writer.Set"); err != nil {
		return err
	}
	w.open, w.set = false, true
	w.e.decide(written, x, nil)
	return nil
}

// Await waits until everything before the write is done: the write before is
// known, and every reader before let go. It answers what the value then is, to be
// changed in place and Set again, or accumulated to; ErrUninitialized says that
// there is nothing yet, to be initialised instead. The other errors are those of
// Reader.Await.
func (w *Writer[T]) Await(ctx context.Context) (x T, err error) {
	const op = "writer.Await"
	scheduler.Breathe(ctx)
	order.Lock()
	defer order.Unlock()
	if err := w.usable(op); err != nil {
		return x, err
	}
	e := w.e
	if e.prev == nil {
		return x, uninitialized(op, e.of)
	}
	if !e.prev.quiet {
		if e.waits != nil && e.turn != nil {
			return x, &weir.Error{Op: op, Kind: weir.KindLogic, Err: weir.ErrBusy,
				Message: fmt.Sprintf("the writer of %v (write %d) is awaited by another goroutine; a writer has one owner", e.of, e.number)}
		}
		if err := w.waitsForItself(ctx, op); err != nil {
			return x, err
		}
		if err := e.prev.holds(op); err != nil {
			return x, err
		}
		turn := e.push(ctx)
		e.turn = turn
		order.Unlock()
		_, delivered, err := turn.Wait(ctx, writing[T]{e})
		order.Lock()
		if !delivered && !e.waiters.Remove(turn) {
			turn.Result()
			delivered = true
		}
		e.waiters.Recycle(turn)
		if !delivered {
			e.turn = nil
			return x, gaveUp(ctx, op, writing[T]{e}.String(), err)
		}
		if err := w.usable(op); err != nil { // let go of meanwhile
			return x, err
		}
	}
	return e.prev.shown(op)
}

// waitsForItself is the error of a task that holds what w would wait for. What
// comes before a writer that is waited for is that one's to wait for: a circle
// through another task is the scheduler's to find, and a line of many such writers
// is not walked by each of them.
func (w *Writer[T]) waitsForItself(ctx context.Context, op string) error {
	t := scheduler.TaskOf(ctx)
	if t == nil {
		return nil
	}
	for e := w.e.prev; e != nil; e = e.prev {
		for r := e.held; r != nil; r = r.next {
			if r.task == t {
				return w.e.itself(op, t, "a reader, which an earlier write waits for")
			}
		}
		if e.writer.open && e.writer.task == t {
			return w.e.itself(op, t, "an earlier writer")
		}
		if e.waits != nil && e.turn != nil {
			break
		}
	}
	return nil
}

// Fail lets go and poisons the value with err, as the failure of the writer's
// task does; err is not nil.
func (w *Writer[T]) Fail(err error) error {
	if err == nil {
		return weir.Argf("writer.Fail", "the failure of %v is nil; expected an error", w.e.of)
	}
	order.Lock()
	t := w.task
	order.Unlock()
	p := poisonOf(t, w.e.of.String(), err) // which asks err what it is: not under order
	order.Lock()
	defer order.Unlock()
	if err := w.usable("writer.Fail"); err != nil {
		return err
	}
	w.poison(p)
	return nil
}

func (w *Writer[T]) poison(p *Poison) {
	var zero T
	w.open = false
	w.e.decide(poisoned, zero, p)
}

// Release lets go. If nothing was set, the value stays what it was, never written
// or poisoned included.
func (w *Writer[T]) Release() {
	order.Lock()
	defer order.Unlock()
	w.release()
}

func (w *Writer[T]) release() {
	if !w.open {
		return
	}
	w.open = false
	e := w.e
	switch p := e.prev; {
	case p == nil:
		e.decide(unwritten, e.result, nil)
	case p.known():
		e.decide(p.phase, p.result, p.err)
	default:
		e.phase = passed
	}
}

func (w *Writer[T]) usable(op string) error {
	switch {
	case w.set:
		return stale(op, "%v (write %d) was set already; a writer writes once", w.e.of, w.e.number)
	case !w.open:
		return stale(op, "the writer of %v (write %d) was released", w.e.of, w.e.number)
	}
	return nil
}

// Bind gives the writer to a task; Go does it.
func (w *Writer[T]) Bind(t *scheduler.Task) error {
	order.Lock()
	defer order.Unlock()
	switch {
	case !w.open:
		return stale("async.Go", "%v is given a writer of %v (write %d) that was released", t, w.e.of, w.e.number)
	case w.task != nil && w.task != t:
		return owned(t, w.task, "writer", w.e.of.String())
	}
	w.task = t
	return nil
}

// End lets go as its task ends: of a task that failed, with poison.
func (w *Writer[T]) End(t *scheduler.Task, err error) {
	var p *Poison
	if err != nil {
		p = poisonOf(t, w.e.of.String(), err) // which asks err what it is: not under order
	}
	order.Lock()
	defer order.Unlock()
	if !w.open || err == nil {
		w.release()
		return
	}
	w.poison(p)
}

// Describe is for listings.
func (w *Writer[T]) Describe() scheduler.GateInfo {
	order.Lock()
	defer order.Unlock()
	i := scheduler.GateInfo{Value: w.e.of.label(), Epoch: int(w.e.number), Role: scheduler.Writes}
	switch {
	case !w.open:
		i.Phase = scheduler.Released
	case w.e.prev == nil || w.e.prev.quiet:
		i.Phase = scheduler.Open
	}
	return i
}

// writing is the wait of a writer that writes in place.
type writing[T any] struct{ e *epoch[T] }

func (w writing[T]) String() string {
	return fmt.Sprintf("%v, to be written in place (write %d) once what came before lets go", w.e.of, w.e.number)
}
func (writing[T]) Ends() scheduler.Ending { return scheduler.ByTask }

// Holders are the tasks of earlier readers and writers that did not let go.
func (w writing[T]) Holders() (all []*scheduler.Task) {
	order.Lock()
	defer order.Unlock()
	for e := w.e.prev; e != nil; e = e.prev {
		for r := e.held; r != nil; r = r.next {
			if r.task != nil {
				all = append(all, r.task)
			}
		}
		if e.writer.open && e.writer.task != nil {
			all = append(all, e.writer.task)
		}
		if e.waits != nil && e.turn != nil { // what comes before, it waits for
			break
		}
	}
	return all
}
