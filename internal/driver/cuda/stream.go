//go:build cuda

package cuda

// #include "driver.h"
// #cgo noescape weir_stream_new
// #cgo nocallback weir_stream_query
// #cgo nocallback weir_record
// #cgo nocallback weir_wait
// #cgo nocallback weir_copy
// #cgo nocallback weir_zero
import "C"

import (
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// stream is a non-blocking CUstream.
type stream struct {
	device  *device
	context *context
	handle  C.uintptr_t
	serial  uint64 // never used again, as the handle may be
	guard   guard

	capturing *graph // that captures it; who captures uses it alone
}

var serials atomic.Uint64

func (d *device) NewStream(priority int) (driver.Stream, error) {
	const op = "Device.NewStream"
	if priority > d.caps.PriorityLeast || priority < d.caps.PriorityGreatest {
		return nil, d.argument(op, "priority %d; expected %d (greatest) to %d (least)",
			priority, d.caps.PriorityGreatest, d.caps.PriorityLeast)
	}
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	s := &stream{device: d, context: c, serial: serials.Add(1)}
	if err := d.check(op, C.weir_stream_new(c.handle, C.int(priority), &s.handle)); err != nil {
		d.release()
		return nil, err
	}
	return s, nil
}

// ours is st as a stream of d, or an argument error.
func (d *device) ours(op string, st driver.Stream) (*stream, error) {
	s, ok := st.(*stream)
	if !ok || s.device != d {
		return nil, d.argument(op, "a stream of another device; expected one of %s", d.name)
	}
	return s, nil
}

// enter counts a call in, or says why it cannot be made. leave follows.
func (s *stream) enter(op string) error {
	if err := s.device.alive(op); err != nil {
		return err
	}
	if !s.guard.enter() {
		return s.device.closed(op, "stream")
	}
	return nil
}

func (s *stream) leave() {
	if s.guard.leave() {
		_ = s.destroy("Stream.Destroy") // it was destroyed during a call; that one answers for it
	}
}

// usable is nil, or why call op cannot be made.
func (s *stream) usable(op string) error {
	if err := s.device.alive(op); err != nil {
		return err
	}
	if s.guard.closed() {
		return s.device.closed(op, "stream")
	}
	return nil
}

func (s *stream) Record(ev driver.Event) error {
	const op = "Stream.Record"
	e, ok := ev.(*event)
	if !ok || e.device != s.device {
		return s.device.argument(op, "an event of another device; expected one of %s", s.device.name)
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if err := e.enter(op); err != nil {
		return err
	}
	defer e.leave()
	moves := C.int(0)
	if was := e.source.Load(); was != s.serial && was != 0 {
		moves = 1
	}
	switch result := C.weir_record(s.context.handle, s.handle, e.handle, moves); result {
	case 0:
		if e.source.Load() != s.serial {
			e.source.Store(s.serial)
		}
		return nil
	case C.weir_unfinished:
		return s.device.argument(op, "the event's last record, on another stream, is unfinished; expected a finished one")
	default:
		return s.device.check(op, result)
	}
}

func (s *stream) Wait(ev driver.Event) error {
	const op = "Stream.Wait"
	e, ok := ev.(*event)
	if !ok {
		return s.device.unsupported(op, "an event of another family; the GPU waits for its own only")
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if err := e.enter(op); err != nil {
		return s.foreign(op, "event", e.device, err)
	}
	defer e.leave()
	result := C.weir_wait(s.context.handle, s.handle, e.handle)
	if result != 0 && e.device != s.device {
		// Which of the two devices is it?
		if err := e.device.check(op, C.weir_event_query(e.context.handle, e.handle)); err != nil && e.device.Err() != nil {
			return s.foreign(op, "event", e.device, err)
		}
	}
	return s.device.check(op, result)
}

// foreign is the error of a call on s whose cause lies with d, of which a thing is
// that the call is given.
func (s *stream) foreign(op, thing string, d *device, err error) error {
	if d == s.device {
		return err
	}
	return &weir.Error{Op: op, Device: s.device.name, Kind: weir.KindCUDA, Message: "the " + thing + " is of " + d.name, Err: err}
}

// Idle is false: a GPU has to be asked.
func (s *stream) Idle() bool { return false }

func (s *stream) Query() (bool, error) {
	const op = "Stream.Query"
	if err := s.enter(op); err != nil {
		return false, err
	}
	result := C.weir_stream_query(s.context.handle, s.handle)
	s.leave()
	return s.device.done(op, result)
}

func (s *stream) Synchronize() error { return s.synchronize("Stream.Synchronize") }

func (s *stream) synchronize(op string) error {
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	e, err := s.context.events.take(op, s.context)
	if err != nil {
		return err
	}
	result := C.weir_record(s.context.handle, s.handle, e, 0)
	if result == 0 {
		result = s.context.await(e)
	}
	if result == 0 {
		result = C.weir_stream_noticed(s.context.handle, s.handle)
	}
	err = s.device.check(op, result)
	s.context.events.give(e)
	return err
}

func (s *stream) Destroy() error {
	const op = "Stream.Destroy"
	if s.guard.close() {
		return s.destroy(op)
	}
	return s.device.alive(op)
}

func (s *stream) destroy(op string) error {
	defer s.device.release()
	if err := s.device.alive(op); err != nil {
		return err
	}
	return s.device.check(op, C.weir_stream_destroy(s.context.handle, s.handle))
}

func address(p driver.Ptr) bool { return p.Valid() }

func (s *stream) Copy(dst, src driver.Ptr, bytes int64) error {
	return s.copy("Stream.Copy", dst, src, bytes)
}

// copyable refuses what is no copy.
func (s *stream) copyable(op string, dst, src driver.Ptr, bytes int64) error {
	if bytes < 0 || bytes > 0 && !(address(dst) && address(src)) {
		return s.device.argument(op, "%d bytes from %#x to %#x; expected a size of 0 or more and addresses", bytes, src, dst)
	}
	return nil
}

func (s *stream) copy(op string, dst, src driver.Ptr, bytes int64) error {
	if err := s.copyable(op, dst, src, bytes); err != nil {
		return err
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if bytes == 0 {
		return nil
	}
	return s.device.check(op, C.weir_copy(s.context.handle, s.handle, C.uint64_t(dst), C.uint64_t(src), C.size_t(bytes)))
}

func (s *stream) Zero(dst driver.Ptr, bytes int64) error {
	const op = "Stream.Zero"
	if bytes < 0 || bytes > 0 && !address(dst) {
		return s.device.argument(op, "%d bytes at %#x; expected a size of 0 or more and an address", bytes, dst)
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if bytes == 0 {
		return nil
	}
	return s.device.check(op, C.weir_zero(s.context.handle, s.handle, C.uint64_t(dst), C.size_t(bytes)))
}

func (s *stream) Call(func()) error {
	const op = "Stream.Call"
	if err := s.usable(op); err != nil {
		return err
	}
	return s.device.unsupported(op, "a GPU runs no Go code")
}

func (s *stream) Native() uintptr { return uintptr(s.handle) }
