package stream

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// timeline numbers the recorded places of one stream and keeps an event for
// each that is not known to be done.
//
// Invariants:
//
//  1. A number exists only once its event was recorded, or what it stands for was
//     known to be done, and is never reused.
//  2. entries holds first, first+1, … without a gap; every number below first
//     is done.
//  3. An event is recorded again only after its number was found done and
//     nobody holds a pin on it, so a Completion always resolves to its own
//     record.
//  4. That entry n is done implies that all before it are, unless its record
//     overlapped another in time (raced): then the driver may have seen them
//     in the other order.
//  5. What a record waited for on other devices is looked at, once, when it is
//     found done, before anybody learns that it is.
//
// mu guards everything below it and is not held across a driver call; that a stream
// is idle is seen without one.
//
// Rejected: an event owned by each completion, destroyed with the last copy. It
// costs an allocation and a create/destroy pair for each operation; on an H200 the
// ring takes two thirds of the time (docs/results/h200.md, events).
type timeline struct {
	name   string // "host:0/3", for messages
	dev    driver.Device
	stream driver.Stream
	done   atomic.Uint64 // every number up to it is done
	newest atomic.Uint64 // the last number given out
	closed atomic.Bool   // the stream and its events are destroyed
	counts

	mu        sync.Mutex
	first     uint64
	entries   []entry
	spare     []driver.Event
	unasked   int // how many records are to be made before an entry is asked for again
	recording int
	overlaps  uint64
	foreign   []Completion // of other devices, the latest of each stream, that later records wait for
	abroad    atomic.Bool  // foreign may have something
	failed    map[uint64]error
	anyFailed atomic.Bool
	cleanup   error // the first failure of destroying an event
}

type entry struct {
	event driver.Event
	pins  int
	done  bool
	raced bool
	deps  []Completion // of other devices: their death is this one's; never changed
}

// fewEvents is how many events a timeline makes without asking whether it could do
// with less: one answer is then good for half as many records.
const fewEvents = 16

// maxSpare is how many finished events a timeline keeps: those of a long chain.
const maxSpare = 96

// record captures the stream's tail.
func (l *timeline) record() (Completion, error) {
	l.mu.Lock()
	if len(l.foreign) == 0 && l.stream.Idle() && l.allDone() {
		seq := l.first
		l.first++
		l.newest.Store(seq)
		l.done.Store(seq)
		l.mu.Unlock()
		return Completion{l, seq}, nil
	}
	event, err := l.event()
	if err != nil {
		l.mu.Unlock()
		return Completion{}, err
	}
	if l.recording > 0 {
		l.overlaps++
	}
	l.recording++
	before := l.overlaps
	alone := l.recording == 1
	l.mu.Unlock()
	err = l.stream.Record(event)
	l.records.Add(1)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.recording--
	if err != nil {
		l.spare = append(l.spare, event)
		return Completion{}, l.wrap("stream.Record", err)
	}
	e := entry{event: event, raced: !alone || l.overlaps != before}
	if len(l.foreign) > 0 {
		e.deps = slices.Clone(l.foreign)
	}
	l.entries = append(l.entries, e)
	seq := l.first + uint64(len(l.entries)) - 1
	l.newest.Store(seq)
	return Completion{l, seq}, nil
}

// allDone takes back all events of a stream that is idle; false if somebody still
// holds one.
func (l *timeline) allDone() bool {
	if len(l.entries) == 0 {
		return true
	}
	for i := range l.entries {
		if e := &l.entries[i]; !e.done {
			e.done = true
			l.look(l.first+uint64(i), e.deps)
		}
	}
	l.reclaim()
	return len(l.entries) == 0
}

// event answers one that may be recorded: a spare one, if need be of those that
// turn out to be done, else a new one. It is called under mu, which it lets go of
// while it asks or makes one.
func (l *timeline) event() (driver.Event, error) {
	switch {
	case len(l.spare) > 0 || len(l.entries) < fewEvents:
	case l.unasked > 0:
		l.unasked--
	default:
		l.askMiddle()
		// If it is not done, the next answers would be the same.
		if len(l.spare) == 0 {
			l.unasked = len(l.entries) / 2
		}
	}
	if n := len(l.spare); n > 0 {
		e := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return e, nil
	}
	l.mu.Unlock()
	e, err := l.dev.NewEvent()
	l.mu.Lock()
	if err != nil {
		return nil, l.wrap("stream.Record", err)
	}
	return e, nil
}

// askMiddle takes events back if the one in the middle is done, which those before
// it are then too. To ask costs up to a microsecond on a GPU that is at work, more
// than an event does; so it must be worth many. It is called under mu, and lets go
// of it while it asks. A failure is the failure of the record that follows.
func (l *timeline) askMiddle() {
	i := len(l.entries) / 2
	if l.entries[i].raced {
		i = 0
	}
	seq, e := l.first+uint64(i), &l.entries[i]
	if !e.done {
		e.pins++
		event := e.event
		l.mu.Unlock()
		done, err := event.Query()
		l.mu.Lock()
		l.let(seq, done && err == nil)
		return
	}
	l.reclaim()
}

// pin answers the event of seq, and what it waited for on other devices, and
// keeps the event from being recorded again; a nil event if seq is done.
func (l *timeline) pin(seq uint64) (driver.Event, []Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq < l.first {
		return nil, nil
	}
	e := &l.entries[seq-l.first]
	if e.done {
		return nil, nil
	}
	e.pins++
	return e.event, e.deps
}

// unpin undoes pin; done says that the event was found done.
func (l *timeline) unpin(seq uint64, done bool) {
	l.mu.Lock()
	l.let(seq, done)
	var excess []driver.Event
	if n := len(l.spare); n > maxSpare && l.recording == 0 {
		excess = append(excess, l.spare[maxSpare:]...)
		l.spare = l.spare[:maxSpare]
	}
	l.mu.Unlock()
	l.give(excess)
}

// let is unpin under mu.
func (l *timeline) let(seq uint64, done bool) {
	if seq < l.first { // destroyed meanwhile
		return
	}
	l.entries[seq-l.first].pins--
	if done {
		l.finish(seq)
	}
	l.reclaim()
}

// finish marks seq and what it implies as done.
func (l *timeline) finish(seq uint64) {
	last := int(seq - l.first)
	begin := 0
	if l.entries[last].raced {
		begin = last
	}
	for i := begin; i <= last; i++ {
		if e := &l.entries[i]; !e.done {
			e.done = true
			l.look(l.first+uint64(i), e.deps)
		}
	}
}

// look carries the death of other devices over to seq, which waited for deps
// and ran without them. What comes later and needs seq will wait for it, and
// meet its failure, so the lease need not carry deps on.
func (l *timeline) look(seq uint64, deps []Completion) {
	for _, d := range deps {
		if err := d.line.dev.Err(); err != nil && d.seq > d.line.done.Load() {
			l.fail(seq, l.wrap("stream.Wait", err))
		}
		l.foreign = slices.DeleteFunc(l.foreign, func(f Completion) bool { return f.line == d.line && f.seq <= d.seq })
	}
}

func (l *timeline) fail(seq uint64, err error) {
	if l.failed == nil {
		l.failed = map[uint64]error{}
	}
	l.failed[seq] = err
	l.anyFailed.Store(true)
}

// reclaim takes the events of finished numbers back, from the front.
func (l *timeline) reclaim() {
	n := 0
	for n < len(l.entries) && l.entries[n].done && l.entries[n].pins == 0 {
		l.spare = append(l.spare, l.entries[n].event)
		n++
	}
	if n == 0 {
		return
	}
	rest := copy(l.entries, l.entries[n:])
	clear(l.entries[rest:])
	l.entries = l.entries[:rest]
	if rest == 0 && cap(l.entries) > 2*maxSpare { // a burst does not keep its memory
		l.entries = nil
	}
	l.first += uint64(n)
	l.done.Store(l.first - 1)
}

// failure is why a finished number is worthless, nil if it is not.
func (l *timeline) failure(seq uint64) error {
	if !l.anyFailed.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed[seq]
}

// mostBehind is how much unfinished work a stream has at most if more is to follow
// it: the pool is to go on being a throttle.
const mostBehind = 64

// takesMore says whether work may follow seq, the last, at once: not if seq waited
// for other devices, nor behind too much.
func (l *timeline) takesMore(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) >= mostBehind {
		l.askMiddle()
	}
	if seq < l.first || seq >= l.first+uint64(len(l.entries)) {
		return true
	}
	return len(l.entries) < mostBehind && len(l.entries[seq-l.first].deps) == 0
}

// depend says that later records wait for other devices' completions.
func (l *timeline) depend(on ...Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for _, c := range on {
		for i, f := range l.foreign {
			if later, ok := f.Merge(c); ok {
				l.foreign[i] = later
				continue next
			}
		}
		l.foreign = append(l.foreign, c)
	}
	l.abroad.Store(true)
}

// forget ends a lease: what it waited for on other devices is over.
func (l *timeline) forget() {
	if !l.abroad.Load() {
		return
	}
	l.mu.Lock()
	clear(l.foreign)
	l.foreign = l.foreign[:0]
	l.abroad.Store(false)
	l.mu.Unlock()
}

// last is the newest recorded place; done if there is none.
func (l *timeline) last() Completion { return Completion{l, l.newest.Load()} }

// give destroys events that will not be used again.
func (l *timeline) give(events []driver.Event) {
	for _, e := range events {
		if err := e.Destroy(); err != nil {
			l.mu.Lock()
			if l.cleanup == nil {
				l.cleanup = l.wrap("stream.Close", err)
			}
			l.mu.Unlock()
		}
	}
}

// destroy gives all events up, after the stream was drained. On a dead device
// what is not known to be done never will be.
func (l *timeline) destroy() error {
	dead := l.dev.Err()
	l.mu.Lock()
	events := l.spare
	for i, e := range l.entries {
		events = append(events, e.event)
		switch seq := l.first + uint64(i); {
		case e.done:
		case dead != nil:
			l.fail(seq, l.wrap("completion.Done", dead))
		default:
			l.look(seq, e.deps)
		}
	}
	l.first += uint64(len(l.entries))
	l.entries, l.spare = nil, nil
	if dead == nil {
		l.done.Store(l.first - 1)
	}
	l.mu.Unlock()
	l.give(events)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cleanup
}

func (l *timeline) wrap(op string, err error) error {
	e := &weir.Error{Op: op, Device: l.dev.Name(), Stream: l.name, Kind: weir.KindCUDA, Err: err}
	if cause, ok := err.(*weir.Error); ok {
		e.Code, e.Name, e.Kind = cause.Code, cause.Name, cause.Kind
	}
	return e
}
