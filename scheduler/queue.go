package scheduler

import "context"

// Queue holds waiters for a T in the order they came. The zero value is empty.
// All methods are called under the owner's mutex.
type Queue[T any] struct {
	first, last *Waiter[T]
	n           int
	spare       *Spare[T]
}

// Spare is waiters that are kept for reuse, by one queue or by several with one
// owner. The zero value is empty.
type Spare[T any] struct{ all []*Waiter[T] }

// Share has q keep its waiters for reuse in s, with others of the same owner, if it
// keeps them nowhere yet.
func (q *Queue[T]) Share(s *Spare[T]) {
	if q.spare == nil {
		q.spare = s
	}
}

// Waiter is one caller in a queue.
type Waiter[T any] struct {
	queue      *Queue[T] // nil once it left
	prev, next *Waiter[T]
	ready      chan struct{} // holds one token once delivered
	task       *Task         // who waits; nil outside tasks
	value      T
	err        error
}

// Len is the number of waiters.
func (q *Queue[T]) Len() int { return q.n }

// Push adds a waiter at the end: the goroutine of ctx, which is to Wait with it.
func (q *Queue[T]) Push(ctx context.Context) *Waiter[T] {
	if q.spare == nil {
		q.spare = &Spare[T]{}
	}
	var w *Waiter[T]
	if k := len(q.spare.all) - 1; k >= 0 {
		w, q.spare.all[k], q.spare.all = q.spare.all[k], nil, q.spare.all[:k]
	} else {
		w = &Waiter[T]{ready: make(chan struct{}, 1)}
	}
	w.queue, w.prev, w.task = q, q.last, TaskOf(ctx)
	if w.task != nil {
		w.task.awake.Store(false)
	}
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	q.n++
	return w
}

// Pop takes the oldest waiter out; nil when there is none. The caller must
// Deliver to it.
func (q *Queue[T]) Pop() *Waiter[T] {
	w := q.first
	if w != nil {
		q.unlink(w)
	}
	return w
}

// Remove takes w out; false if it already left, in which case a delivery to it
// has happened or is about to.
func (q *Queue[T]) Remove(w *Waiter[T]) bool {
	if w.queue != q {
		return false
	}
	q.unlink(w)
	return true
}

func (q *Queue[T]) unlink(w *Waiter[T]) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.queue, w.prev, w.next = nil, nil, nil
	q.n--
}

// Deliver answers a waiter that Pop took out, with a value or an error. It may
// be called under the owner's mutex.
func (w *Waiter[T]) Deliver(value T, err error) {
	w.value, w.err = value, err
	t := w.task // whoever takes the token may recycle w
	if t != nil {
		t.awake.Store(true)
	}
	w.ready <- struct{}{}
	if t != nil {
		t.home.woken(t)
	}
}

// Wait parks until the delivery or the end of ctx; what says what for.
// delivered is false when the wait ended without one, for the reason in err;
// then the caller Removes the waiter under the owner's mutex and, if Remove says
// it already left, calls Result.
func (w *Waiter[T]) Wait(ctx context.Context, what Wait) (value T, delivered bool, err error) {
	if err := Park(ctx, w.ready, what); err != nil {
		var zero T
		return zero, false, err
	}
	return w.value, true, w.err
}

// Result waits for a delivery that is under way.
func (w *Waiter[T]) Result() (T, error) {
	<-w.ready
	return w.value, w.err
}

// maxSpare is how many waiters a queue keeps for reuse.
const maxSpare = 64

// Recycle keeps w for a later Push. Its caller has taken the result, or removed
// it, and does not use it again.
func (q *Queue[T]) Recycle(w *Waiter[T]) {
	var zero T
	w.value, w.err, w.task = zero, nil, nil
	if q.spare != nil && len(q.spare.all) < maxSpare {
		q.spare.all = append(q.spare.all, w)
	}
}
