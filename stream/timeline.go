package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/scheduler"
)

// timeline numbers the recorded places of one stream and keeps an event for
// each that is not known to be done.
//
// Invariants:
//
//  1. A number exists only once its event was recorded, and is never reused.
//  2. entries holds first, first+1, … without a gap; every number below first
//     is done.
//  3. An event is recorded again only after its number was found done and
//     nobody holds a pin on it, so a Completion always resolves to its own
//     record.
//  4. That entry n is done implies that all before it are, unless its record
//     overlapped another in time (raced): then the driver may have seen them
//     in the other order.
//
// mu guards everything below it and is not held across a driver call.
//
// Rejected: an event owned by each completion, destroyed with the last copy.
// It costs an allocation and a create/destroy pair (0.29 us on CUDA) for each
// operation, where asking a used event costs 0.16 us and the ring nothing.
type timeline struct {
	name   string // "host:0/3", for messages
	dev    driver.Device
	stream driver.Stream
	done   atomic.Uint64 // every number up to it is done

	mu        sync.Mutex
	first     uint64
	entries   []entry
	spare     []driver.Event
	recording int
	overlaps  uint64
	foreign   []Completion // of other devices, that this lease waits for
	failed    map[uint64]error
	anyFailed atomic.Bool
}

type entry struct {
	event driver.Event
	pins  int
	done  bool
	raced bool
	deps  []Completion // of other devices: their death is this one's
}

// maxSpare is how many finished events a timeline keeps.
const maxSpare = 32

// Completion names one recorded place of a stream: all that was submitted to
// it before. The zero Completion is done.
type Completion struct {
	line *timeline
	seq  uint64
}

// wholeStream stands for a record that could not be made: all work that the
// stream was given, however much that has become when it is asked.
const wholeStream = 1 << 62

// record captures the stream's tail.
func (l *timeline) record() (Completion, error) {
	event, err := l.event()
	if err != nil {
		return Completion{}, err
	}
	l.mu.Lock()
	if l.recording > 0 {
		l.overlaps++
	}
	l.recording++
	before := l.overlaps
	alone := l.recording == 1
	l.mu.Unlock()

	err = l.stream.Record(event)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.recording--
	if err != nil {
		l.spare = append(l.spare, event)
		return Completion{}, l.wrap("stream.Record", err)
	}
	e := entry{event: event, raced: !alone || l.overlaps != before}
	if len(l.foreign) > 0 {
		e.deps = append(e.deps, l.foreign...)
	}
	l.entries = append(l.entries, e)
	return Completion{l, l.first + uint64(len(l.entries)) - 1}, nil
}

// event answers one that may be recorded: a spare one, the oldest if it is
// done, else a new one.
func (l *timeline) event() (driver.Event, error) {
	l.mu.Lock()
	if len(l.spare) == 0 && len(l.entries) > 0 {
		oldest := Completion{l, l.first}
		l.mu.Unlock()
		_, _ = oldest.Done() // a failure is the failure of the record that follows
		l.mu.Lock()
	}
	if n := len(l.spare); n > 0 {
		e := l.spare[n-1]
		l.spare = l.spare[:n-1]
		l.mu.Unlock()
		return e, nil
	}
	l.mu.Unlock()
	e, err := l.dev.NewEvent()
	if err != nil {
		return nil, l.wrap("stream.Record", err)
	}
	return e, nil
}

// pin answers the event of c and keeps it from being recorded again; nil if c
// is done.
func (l *timeline) pin(seq uint64) driver.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq < l.first {
		return nil
	}
	e := &l.entries[seq-l.first]
	if e.done {
		return nil
	}
	e.pins++
	return e.event
}

// unpin undoes pin; done says that the event was found done.
func (l *timeline) unpin(seq uint64, done bool) {
	l.mu.Lock()
	if seq < l.first { // destroyed meanwhile
		l.mu.Unlock()
		return
	}
	l.entries[seq-l.first].pins--
	if done {
		l.finish(seq)
	}
	var excess []driver.Event
	if n := len(l.spare); n > maxSpare && l.recording == 0 {
		excess = append(excess, l.spare[maxSpare:]...)
		l.spare = l.spare[:maxSpare]
	}
	l.mu.Unlock()
	for _, e := range excess {
		_ = e.Destroy() // an event that will not be used again
	}
}

// finish marks seq and what it implies, and reclaims events from the front.
func (l *timeline) finish(seq uint64) {
	i := int(seq - l.first)
	e := &l.entries[i]
	e.done = true
	if !e.raced {
		for j := range i {
			l.entries[j].done = true
		}
	}
	n := 0
	for n < len(l.entries) && l.entries[n].done && l.entries[n].pins == 0 {
		l.check(l.first+uint64(n), &l.entries[n])
		l.spare = append(l.spare, l.entries[n].event)
		n++
	}
	rest := copy(l.entries, l.entries[n:])
	clear(l.entries[rest:])
	l.entries = l.entries[:rest]
	l.first += uint64(n)
	l.done.Store(l.first - 1)
}

// check carries the death of another device over: work that waited for it ran
// without what it waited for.
func (l *timeline) check(seq uint64, e *entry) {
	for _, d := range e.deps {
		if d.line.dev.Err() == nil || d.seq <= d.line.done.Load() {
			continue
		}
		if l.failed == nil {
			l.failed = map[uint64]error{}
		}
		l.failed[seq] = l.wrap("stream.Wait", d.line.dev.Err())
		l.anyFailed.Store(true)
	}
}

func (l *timeline) failure(seq uint64) error {
	if !l.anyFailed.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed[seq]
}

// forget ends a lease: what it waited for on other devices is over.
func (l *timeline) forget() {
	l.mu.Lock()
	l.foreign = nil
	l.mu.Unlock()
}

// last is the newest recorded place; done if there is none.
func (l *timeline) last() Completion {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Completion{l, l.first + uint64(len(l.entries)) - 1}
}

// destroy gives all events up.
func (l *timeline) destroy() (err error) {
	l.mu.Lock()
	events := l.spare
	for _, e := range l.entries {
		events = append(events, e.event)
	}
	l.first += uint64(len(l.entries))
	l.entries, l.spare = nil, nil
	l.done.Store(l.first - 1)
	l.mu.Unlock()
	for _, e := range events {
		if derr := e.Destroy(); derr != nil && err == nil {
			err = derr
		}
	}
	return err
}

func (l *timeline) wrap(op string, err error) error {
	e := &weir.Error{Op: op, Device: l.dev.Name(), Stream: l.name, Kind: weir.KindCUDA, Err: err}
	if cause, ok := err.(*weir.Error); ok {
		e.Code, e.Name, e.Kind = cause.Code, cause.Name, cause.Kind
	}
	return e
}

// Done says whether the work is done. An error says that it never will be, or
// that it ran without what it waited for: the device, or one that it waited
// for, died.
func (c Completion) Done() (bool, error) {
	if c.line == nil {
		return true, nil
	}
	if c.seq <= c.line.done.Load() {
		return true, c.line.failure(c.seq)
	}
	if c.seq == wholeStream {
		return c.line.stream.Query()
	}
	event := c.line.pin(c.seq)
	if event == nil {
		return true, c.line.failure(c.seq)
	}
	done, err := event.Query()
	c.line.unpin(c.seq, done && err == nil)
	if err != nil {
		return false, c.line.wrap("completion.Done", err)
	}
	if done {
		return true, c.line.failure(c.seq)
	}
	return false, nil
}

// Notify has w woken, on a goroutine of the driver, when the stream's work
// submitted so far is done; that includes c's.
func (c Completion) Notify(w driver.Waker) error {
	if c.line == nil {
		w.Wake(nil)
		return nil
	}
	if err := c.line.stream.Notify(w); err != nil {
		return c.line.wrap("completion.Notify", err)
	}
	return nil
}

// Wait parks until the work is done or ctx ends; the work itself goes on.
func (c Completion) Wait(ctx context.Context) error {
	if done, err := c.Done(); done || err != nil {
		return err
	}
	if c.seq == wholeStream {
		return c.line.stream.Synchronize()
	}
	if ctx.Done() == nil {
		if event := c.line.pin(c.seq); event != nil {
			err := event.Synchronize()
			c.line.unpin(c.seq, err == nil)
			if err != nil {
				return c.line.wrap("completion.Wait", err)
			}
		}
		return c.line.failure(c.seq)
	}
	w := &waiter{ready: make(chan struct{})}
	for {
		if err := c.Notify(w); err != nil {
			return err
		}
		if err := scheduler.Park(ctx, w.ready); err != nil {
			return &weir.Error{Op: "completion.Wait", Device: c.line.dev.Name(), Stream: c.line.name, Message: "gave up waiting", Err: err}
		}
		if done, err := c.Done(); done || err != nil {
			return err
		}
		w = &waiter{ready: make(chan struct{})}
	}
}

type waiter struct{ ready chan struct{} }

func (w *waiter) Wake(error) { close(w.ready) }

// Known says whether the work is known to be done, without asking the device.
func (c Completion) Known() bool { return c.line == nil || c.seq <= c.line.done.Load() }

// Merge answers the later of two completions of one stream, which implies the
// other; ok is false when they are of two.
func (c Completion) Merge(d Completion) (later Completion, ok bool) {
	if c.line != d.line {
		return c, false
	}
	return Completion{c.line, max(c.seq, d.seq)}, true
}

// IsZero says whether c names nothing, and so is done.
func (c Completion) IsZero() bool { return c.line == nil }
