package scheduler

import "context"

// Queue holds waiters for a T in the order they came. The zero value is empty.
// All methods are called under the owner's mutex.
type Queue[T any] struct {
	first, last *Waiter[T]
	n           int
	spare       []*Waiter[T]
}

// Waiter is one caller in a queue.
type Waiter[T any] struct {
	queue      *Queue[T] // nil once it left
	prev, next *Waiter[T]
	ready      chan struct{} // holds one token once delivered
	value      T
	err        error
}

// Len is the number of waiters.
func (q *Queue[T]) Len() int { return q.n }

// Push adds a waiter at the end.
func (q *Queue[T]) Push() *Waiter[T] {
	var w *Waiter[T]
	if k := len(q.spare) - 1; k >= 0 {
		w, q.spare = q.spare[k], q.spare[:k]
	} else {
		w = &Waiter[T]{ready: make(chan struct{}, 1)}
	}
	w.queue, w.prev = q, q.last
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
	w.ready <- struct{}{}
}

// Wait parks until the delivery or the end of ctx. delivered is false when ctx
// ended first, with its cause in err; then the caller Removes the waiter under
// the owner's mutex and, if Remove says it already left, calls Result.
func (w *Waiter[T]) Wait(ctx context.Context) (value T, delivered bool, err error) {
	if err := Park(ctx, w.ready); err != nil {
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
	w.value, w.err = zero, nil
	if len(q.spare) < maxSpare {
		q.spare = append(q.spare, w)
	}
}
