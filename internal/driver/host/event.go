package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/driver"
)

// event marks a place in a stream. Records are numbered; since all records
// that are unfinished at one time are of one stream, they finish in order and
// two numbers hold the whole state.
//
// mu guards parked, sleepers and source, and is held for a few instructions.
type event struct {
	dev      *device
	recorded atomic.Uint64 // the latest record
	done     atomic.Uint64 // the latest finished one

	mu       sync.Mutex
	source   *stream       // of the latest record
	parked   *stream       // a list, through stream.nextParked
	sleepers chan struct{} // closed when a record finishes; nil when nobody sleeps
	clock    *time.Time    // of a mark: where the time goes when a record finishes
}

// begin numbers a new record on s, finished if done.
func (e *event) begin(op string, s *stream, done bool) (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.source != s && e.done.Load() != e.recorded.Load() {
		return 0, s.dev.argument(op, "the event's last record, on another stream, is unfinished; expected a finished one")
	}
	e.source = s
	gen := e.recorded.Add(1)
	if done {
		e.tick()
		e.done.Store(gen) // of one stream, and idle: no earlier record is unfinished
	}
	return gen, nil
}

// fire finishes record gen and answers the streams that waited for it, as a
// list through nextParked. The caller resumes each.
func (e *event) fire(gen uint64) (ready *stream) {
	e.mu.Lock()
	e.tick()
	e.done.Store(max(gen, e.done.Load()))
	parked, sleepers := e.parked, e.sleepers
	e.parked, e.sleepers = nil, nil
	for parked != nil {
		s := parked
		parked = s.nextParked
		list := &ready
		if s.parkedFor > e.done.Load() {
			list = &e.parked
		}
		s.nextParked = *list
		*list = s
	}
	e.mu.Unlock()
	if sleepers != nil {
		close(sleepers)
	}
	return ready
}

// tick notes the time for a mark; under mu.
func (e *event) tick() {
	if e.clock != nil {
		*e.clock = time.Now()
	}
}

// park registers s to be resumed when record gen finishes; false if it already
// has. A stream is parked on one event at a time.
func (e *event) park(s *stream, gen uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done.Load() >= gen {
		return false
	}
	s.parkedFor = gen
	s.nextParked = e.parked
	e.parked = s
	return true
}

// unpark takes s out of the list; false if it was not in it.
func (e *event) unpark(s *stream) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at := &e.parked; *at != nil; at = &(*at).nextParked {
		if *at == s {
			*at = s.nextParked
			s.nextParked = nil
			return true
		}
	}
	return false
}

// sleep answers a channel that is closed when a record finishes; nil if gen
// already has.
func (e *event) sleep(gen uint64) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done.Load() >= gen {
		return nil
	}
	if e.sleepers == nil {
		e.sleepers = make(chan struct{})
	}
	return e.sleepers
}

func (e *event) Query() (bool, error) {
	if err := e.dev.alive("Event.Query"); err != nil {
		return false, err
	}
	return e.done.Load() >= e.recorded.Load(), nil
}

func (e *event) Synchronize() error { return e.synchronize("Event.Synchronize") }

func (e *event) synchronize(op string) error {
	gen := e.recorded.Load()
	for {
		if err := e.dev.alive(op); err != nil {
			return err
		}
		wake := e.sleep(gen)
		if wake == nil {
			e.dev.trim()
			return nil
		}
		select {
		case <-wake:
		case <-e.dev.death:
		}
	}
}

func (e *event) Destroy() error { return nil }

func (d *device) NewEvent() (driver.Event, error) {
	if err := d.alive("Device.NewEvent"); err != nil {
		return nil, err
	}
	return &event{dev: d}, nil
}
