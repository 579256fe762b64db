//go:build cuda

package cuda

// #include "driver.h"
// #include "mark.h"
// #cgo noescape weir_mark_new
// #cgo noescape weir_mark_elapsed
import "C"

import (
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/driver"
)

// timeMark is a CUevent with timing. Its host waits spin, as Since is to be called
// when the work is done.
type timeMark struct {
	device  *device
	context *context
	handle  C.uintptr_t
	put     atomic.Bool // on a stream, once or more
	guard   guard
}

func (d *device) NewMark() (driver.Mark, error) {
	const op = "Device.NewMark"
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	m := &timeMark{device: d, context: c}
	if err := d.check(op, C.weir_mark_new(c.handle, &m.handle)); err != nil {
		d.release()
		return nil, err
	}
	return m, nil
}

// mark answers dm as a mark of d with a call counted in, or why it cannot be
// made. leave follows.
func (d *device) mark(op string, dm driver.Mark) (*timeMark, error) {
	m, ok := dm.(*timeMark)
	if !ok || m.device != d {
		return nil, d.argument(op, "a mark of another device; expected one of %s", d.name)
	}
	if err := d.alive(op); err != nil {
		return nil, err
	}
	if !m.guard.enter() {
		return nil, d.closed(op, "mark")
	}
	return m, nil
}

func (m *timeMark) leave() {
	if m.guard.leave() {
		_ = m.destroy("Mark.Destroy") // it was destroyed during a call; that one answers for it
	}
}

func (s *stream) Mark(dm driver.Mark) error {
	const op = "Stream.Mark"
	m, err := s.device.mark(op, dm)
	if err != nil {
		return err
	}
	defer m.leave()
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if err := s.device.check(op, C.weir_record(s.context.handle, s.handle, m.handle, 0)); err != nil {
		return err
	}
	m.put.Store(true)
	return nil
}

func (m *timeMark) Since(earlier driver.Mark) (time.Duration, error) {
	const op = "Mark.Since"
	from, err := m.device.mark(op, earlier)
	if err != nil {
		return 0, err
	}
	defer from.leave()
	if _, err := m.device.mark(op, m); err != nil {
		return 0, err
	}
	defer m.leave()
	if !from.put.Load() || !m.put.Load() {
		return 0, m.device.argument(op, "a mark that was never put on a stream; expected two that were")
	}
	var milliseconds C.float
	if err := m.device.check(op, C.weir_mark_elapsed(m.context.handle, from.handle, m.handle, &milliseconds)); err != nil {
		return 0, err
	}
	return time.Duration(float64(milliseconds) * float64(time.Millisecond)), nil
}

func (m *timeMark) Destroy() error {
	const op = "Mark.Destroy"
	if m.guard.close() {
		return m.destroy(op)
	}
	return m.device.alive(op)
}

func (m *timeMark) destroy(op string) error {
	defer m.device.release()
	if err := m.device.alive(op); err != nil {
		return err
	}
	return m.device.check(op, C.weir_event_destroy(m.context.handle, m.handle))
}
