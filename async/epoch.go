package async

import (
	"context"
	"sync"

	"github.com/weirgo/weir/scheduler"
)

// order guards every epoch, and the logs. One lock for all has each operation,
// however many values it reads and writes, enter all of them at once: the order
// of values is one order, which no two operations can enter crosswise, and an
// operation pays for one lock. With a lock in each value an operation of three
// took three times 15 ns, and two that shared values had to take them in an
// agreed order. Nothing is called under it but Deliver, and nothing waits.
var order sync.Mutex

// push makes a waiter for e. Those that are not in use are kept by scheduler: a
// channel that was made in a bubble of testing/synctest stays there.
func (e *epoch[T]) push(ctx context.Context) *scheduler.Waiter[struct{}] {
	q := &e.awaited().waiters
	if s := scheduler.SpareOf(ctx); s != nil {
		q.Share(s)
	}
	return q.Push(ctx)
}

// phase is what is known of an epoch's write.
type phase uint8

const (
	pending   phase = iota // the writer may still write
	passed                 // it let go without writing; the epoch shows what the one before it shows, once that is known
	unwritten              // known: nothing was ever written
	written                // known
	poisoned               // known
)

// epoch is one write of a value and the reads of what it wrote. Its fields are
// guarded by order.
//
// Invariants:
//
//  1. result and err do not change once the phase is known, until the epoch is
//     retired: when the next one is known too and nobody reads this one.
//  2. Reads join the last epoch only, so once there is a next one, readers only
//     falls, but for clones, which a reader makes. Who keeps a Reader or a Writer
//     that let go keeps its epoch, but none beside it: what is done is unlinked.
//  3. An epoch is quiet when there is a next one, its phase is known, nobody reads
//     it, and the one before is quiet. A writer that writes in place waits for
//     that; one that sets a new value does not: earlier readers keep the epoch
//     that they read.
type epoch[T any] struct {
	of     *Value[T]
	number int32
	phase  phase
	quiet  bool
	// readers is how many Readers and operations are to let go.
	readers int32
	level   uint64 // of the record that writes it, and the highest of those that read it,
	read    uint64 // while they are in the window of their log
	result  T
	err     error

	prev, next *epoch[T] // prev until it is not needed any more
	writer     Writer[T]
	held       *Reader[T] // those readers that are Readers

	*waits[T] // who waits, if anybody does or did: most epochs have nobody
}

// waits is who waits for an epoch.
type waits[T any] struct {
	waiters scheduler.Queue[struct{}]   // for the phase; and turn
	turn    *scheduler.Waiter[struct{}] // the writer, who waits for prev to be quiet
	ops     []*operation[T]             // that wait for the phase
	inPlace *operation[T]               // that waits for prev to be quiet
	by      *operation[T]               // that stepped aside and is to write
	held    *Log[T]                     // that is to write, and was held when it was asked to
}

// awaited has a place for those who wait.
func (e *epoch[T]) awaited() *waits[T] {
	if e.waits == nil {
		e.waits = &waits[T]{}
	}
	return e.waits
}

func (e *epoch[T]) known() bool { return e.phase >= unwritten }

// decide makes the phase known, and with it that of epochs after it that show the
// same.
func (e *epoch[T]) decide(p phase, result T, err error) {
	first := e
	var ops []*operation[T]
	for {
		e.phase, e.result, e.err = p, result, err
		if e.waits != nil {
			for w := e.waiters.Pop(); w != nil; w = e.waiters.Pop() {
				if w == e.turn { // who writes e does not wait for itself
					e.turn = nil
				}
				w.Deliver(struct{}{}, nil)
			}
			ops = append(ops, e.ops...)
			e.ops = nil
		}
		if e.prev != nil {
			e.prev.retire()
		}
		n := e.next
		if n == nil || n.phase != passed {
			break
		}
		e = n
	}
	first.settle()
	for _, o := range ops { // last: a log that cannot start a task decides epochs here
		o.arrived()
	}
}

// settle finds what became quiet from e on, wakes writers whose turn it is, and
// gives back what nobody can read any more.
func (e *epoch[T]) settle() {
	for e != nil {
		e.retire()
		if e.quiet || e.next == nil || !e.known() || e.readers > 0 || e.prev != nil && !e.prev.quiet {
			return
		}
		e.quiet = true
		n := e.next
		if w := n.waits; w != nil {
			if t := w.turn; t != nil {
				w.waiters.Remove(t)
				t.Deliver(struct{}{}, nil)
				w.turn = nil
			}
			if o := w.inPlace; o != nil {
				w.inPlace = nil
				o.arrived()
			}
		}
		n.retire()
		e.retire()
		e = n
	}
}

// retire lets go of what is not needed: of the epoch before, and, when nobody can
// read e any more, of its result and its place between the others.
func (e *epoch[T]) retire() {
	if e.prev != nil && e.prev.quiet && e.known() {
		e.prev = nil
	}
	n := e.next
	if !e.known() || e.readers > 0 || n == nil || !n.known() {
		return
	}
	var zero T
	e.result, e.err = zero, nil
	switch {
	case e.quiet:
		e.next = nil
	case e.prev != nil: // which is not quiet; what is to be quiet after it is n
		e.prev.next, n.prev = n, e.prev
		e.prev, e.next = nil, nil
	}
}

// letGo takes a reader out.
func (e *epoch[T]) letGo() {
	e.readers--
	if e.readers == 0 {
		e.settle()
	}
}

// shown is what e's readers see, which is known.
func (e *epoch[T]) shown(op string) (T, error) {
	var zero T
	switch e.phase {
	case poisoned:
		return zero, e.err
	case unwritten:
		return zero, uninitialized(op, e.of)
	}
	return e.result, nil
}

// write begins the next epoch.
func (v *Value[T]) write() *epoch[T] {
	e := v.last
	if e == &v.first && e.phase == unwritten && e.readers == 0 && !e.writer.made { // nothing precedes it
		e.phase = pending
	} else {
		n := &epoch[T]{of: v, number: e.number + 1, prev: e}
		e.next, v.last = n, n
		e.settle()
		e = n
	}
	e.writer = Writer[T]{e: e, made: true, open: true}
	return e
}
