package host

import (
	"sync"
	"sync/atomic"
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
	source   *stream // of the latest record
	parked   []parkedStream
	sleepers chan struct{} // closed when a record finishes; nil when nobody sleeps
}

type parkedStream struct {
	stream *stream
	gen    uint64
}

// begin numbers a new record on s.
func (e *event) begin(s *stream) (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.source != s && e.done.Load() != e.recorded.Load() {
		return 0, s.dev.argument("Stream.Record", "the event's last record, on another stream, is unfinished; expected a finished one")
	}
	e.source = s
	return e.recorded.Add(1), nil
}

// fire finishes record gen and starts whoever waited.
func (e *event) fire(gen uint64) {
	e.mu.Lock()
	e.done.Store(max(gen, e.done.Load()))
	var ready, later []parkedStream
	for _, p := range e.parked {
		if p.gen <= e.done.Load() {
			ready = append(ready, p)
		} else {
			later = append(later, p)
		}
	}
	sleepers := e.sleepers
	e.parked, e.sleepers = later, nil
	e.mu.Unlock()
	if sleepers != nil {
		close(sleepers)
	}
	for _, p := range ready {
		p.stream.resume(e)
	}
}

// park registers s to be resumed when record gen finishes; false if gen already
// has.
func (e *event) park(s *stream, gen uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done.Load() >= gen {
		return false
	}
	e.parked = append(e.parked, parkedStream{s, gen})
	return true
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

func (e *event) Synchronize() error {
	gen := e.recorded.Load()
	for {
		if err := e.dev.alive("Event.Synchronize"); err != nil {
			return err
		}
		wake := e.sleep(gen)
		if wake == nil {
			e.dev.trim()
			return nil
		}
		<-wake
	}
}

func (e *event) Destroy() error { return nil }
