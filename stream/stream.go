package stream

import (
	"context"
	"sync/atomic"

	"golang.org/x/sys/cpu"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/lease"
)

// line is what a slot holds: a driver's stream and its timeline. Every
// submission writes to it, so it shares no cache line with the next slot's.
type line struct {
	timeline
	dirty  atomic.Bool // given out for submission since the last record
	shared atomic.Bool // several handles hold it, or did in this lease
	_      cpu.CacheLinePad
}

// Stream is a handle of a leased slot. It is a value: a copy is the same
// handle, and Retain makes another. The zero Stream is stale.
type Stream struct {
	h lease.Handle[*line, Completion]
}

// Valid says whether the handle still holds its stream.
func (s Stream) Valid() bool { return s.h.Valid() }

// String names the stream: device, slash, slot.
func (s Stream) String() string {
	if l, err := s.h.Value(); err == nil {
		return l.name
	}
	return "stale stream"
}

// Device is the device that the stream belongs to; nil of a stale handle.
func (s Stream) Device() driver.Device {
	if l, err := s.h.Value(); err == nil {
		return l.dev
	}
	return nil
}

// usable answers the line of a handle that holds it in an open pool.
func (s Stream) usable() (*line, error) {
	l, err := s.h.Value()
	if err == nil && l.closed.Load() {
		return nil, &weir.Error{Op: "stream.Submit", Device: l.dev.Name(), Stream: l.name, Kind: weir.KindLogic,
			Message: "used after its pool was closed", Err: weir.ErrClosed}
	}
	return l, err
}

// Submit answers the driver's stream for one submission; each submission asks
// again, because the answer marks the stream as having unrecorded work.
func (s Stream) Submit() (driver.Stream, error) {
	l, err := s.usable()
	if err != nil {
		return nil, err
	}
	l.dirty.Store(true)
	l.submissions.Add(1)
	return l.stream, nil
}

// Native is the device family's own handle (a CUstream) for one submission of
// foreign work; 0 on the host device.
func (s Stream) Native() (uintptr, error) {
	d, err := s.Submit()
	if err != nil {
		return 0, err
	}
	return d.Native(), nil
}

// Call runs fn in stream order on a device that runs Go code, which the host
// device does; elsewhere it answers ErrNotSupported. fn must not wait for
// device work. If it panics the device is lost, as a GPU is whose kernel faults;
// every later call answers where it panicked.
func (s Stream) Call(fn func()) error {
	if fn == nil { // it would panic on the device, which would be lost
		return weir.Argf("stream.Call", "the function is nil; expected one to run")
	}
	d, err := s.Submit()
	if err != nil {
		return err
	}
	return d.Call(fn)
}

// Record captures the tail of the stream: a completion of all work that was
// submitted before.
func (s Stream) Record() (Completion, error) {
	l, err := s.usable()
	if err != nil {
		return Completion{}, err
	}
	l.clean()
	c, err := l.record()
	if err != nil {
		l.dirty.Store(true)
	}
	return c, err
}

// Tail is a completion of all that was submitted to the stream, recorded only
// if something was submitted since the last record. When it cannot be recorded
// the stream is waited for, and the failure is answered.
func (s Stream) Tail() (Completion, error) {
	l, err := s.usable()
	if err != nil {
		return Completion{}, err
	}
	return l.tail()
}

// Everything stands for all work that the stream was given, however much that has
// become when it is asked. It outlives the handle.
func (s Stream) Everything() Completion {
	l, err := s.h.Value()
	if err != nil {
		return Completion{}
	}
	return Completion{&l.timeline, wholeStream}
}

// Implies says whether c is of the stream's own work, which later work of the
// stream follows anyway.
func (s Stream) Implies(c Completion) bool {
	l, err := s.h.Value()
	return err == nil && c.line == &l.timeline
}

// Wait lets later work of the stream start only when c is done. A wait for work
// that is known to be finished, or for the stream's own, is no driver call; it is
// not asked whether other work is finished, which costs more than the wait. Of
// work that failed it answers the failure.
func (s Stream) Wait(c Completion) error {
	l, err := s.usable()
	if err != nil {
		return err
	}
	if c.line == nil {
		return nil
	}
	if c.line == &l.timeline {
		l.elided.Add(1)
		return l.failure(c.seq)
	}
	if c.Known() {
		l.elided.Add(1)
		return c.line.failure(c.seq)
	}
	if c.seq == wholeStream || c.line.dev != l.dev { // of another device's death one learns by asking
		if done, err := c.Done(); done || err != nil {
			return err
		}
	}
	if c.seq == wholeStream {
		return c.synchronize()
	}
	event, deps := c.line.pin(c.seq)
	if event == nil {
		return c.line.failure(c.seq)
	}
	l.dirty.Store(true)
	l.waits.Add(1)
	err = l.stream.Wait(event)
	c.line.unpin(c.seq, false)
	if err != nil {
		return l.wrap("stream.Wait", err)
	}
	if c.line.dev != l.dev {
		l.depend(c)
	}
	if len(deps) > 0 {
		l.depend(deps...)
	}
	return nil
}

// Synchronize waits on the host for all work submitted so far, or until ctx
// ends.
func (s Stream) Synchronize(ctx context.Context) error {
	c, err := s.Record()
	if err != nil {
		return err
	}
	return c.Wait(ctx)
}

// Retain answers a further handle of the same stream, which returns to the
// pool after the last one's release. A goroutine that submits while another one
// may record or release retains a handle of its own.
func (s Stream) Retain() (Stream, error) {
	h, err := s.h.Retain()
	if err != nil {
		return Stream{}, err
	}
	if l, err := h.Value(); err == nil {
		l.shared.Store(true)
	}
	return Stream{h}, nil
}

// Lend answers the same handle for somebody to use who does not own it: it is
// good until s is released, and its own Release does nothing. Its Retain makes a
// handle of its own.
func (s Stream) Lend() Stream { return Stream{s.h.Lend()} }

// Release gives the handle up. After the last one the slot returns to the pool
// once its work is done. Through a stale or lent handle it does nothing. The
// error is that of recording work that was not recorded yet; the stream has then
// been waited for, and the slot is back all the same.
func (s Stream) Release() error {
	l, err := s.h.Value()
	if err != nil {
		return nil
	}
	// With nobody who could record, and nothing to forget, one step will do.
	if !l.shared.Load() && !l.dirty.Load() && !l.abroad.Load() && !l.closed.Load() {
		s.h.Release(l.last())
		return nil
	}
	if !s.h.Leave() {
		return nil
	}
	l.shared.Store(false)
	var tail Completion
	var failure error
	if !l.closed.Load() {
		tail, failure = l.tail()
	}
	l.forget()
	s.h.Return(tail)
	return failure
}

// clean says that the record that follows covers all that was submitted. It
// can't say so while others hold the stream: one may have been given it before
// and submit after.
func (l *line) clean() {
	if !l.shared.Load() {
		l.dirty.Store(false)
	}
}

// tail records what is unrecorded. When that fails the stream is waited for,
// so that its work is done and no completion is needed; when that fails too,
// the completion stands for the whole stream.
func (l *line) tail() (Completion, error) {
	if !l.dirty.Load() {
		return l.last(), nil
	}
	l.clean()
	c, err := l.record()
	if err == nil {
		return c, nil
	}
	if serr := l.stream.Synchronize(); serr != nil {
		l.dirty.Store(true)
		return Completion{line: &l.timeline, seq: wholeStream}, err
	}
	return Completion{}, err
}
