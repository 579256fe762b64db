//go:build cuda

package cuda

// #include "driver.h"
// #cgo noescape weir_event_new
// #cgo nocallback weir_event_query
import "C"

import (
	"sync/atomic"

	"github.com/weirgo/weir/internal/driver"
)

// event is a CUevent without timing.
type event struct {
	device  *device
	context *context
	handle  C.uintptr_t
	source  atomic.Uint64 // serial of the stream of the last record, 0 before the first
	guard   guard
}

func (d *device) NewEvent() (driver.Event, error) {
	const op = "Device.NewEvent"
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	e := &event{device: d, context: c}
	if err := d.check(op, C.weir_event_new(c.handle, &e.handle)); err != nil {
		d.release()
		return nil, err
	}
	return e, nil
}

// enter counts a call in, or says why it cannot be made.
func (e *event) enter(op string) error {
	if err := e.device.alive(op); err != nil {
		return err
	}
	if !e.guard.enter() {
		return e.device.closed(op, "event")
	}
	return nil
}

func (e *event) leave() {
	if e.guard.leave() {
		_ = e.destroy("Event.Destroy") // it was destroyed during a call; that one answers for it
	}
}

func (e *event) Query() (bool, error) {
	const op = "Event.Query"
	if err := e.enter(op); err != nil {
		return false, err
	}
	result := C.weir_event_query(e.context.handle, e.handle)
	e.leave()
	return e.device.done(op, result)
}

// done reads what a query answered.
func (d *device) done(op string, result C.int) (bool, error) {
	switch result {
	case 0:
		return true, nil
	case codeNotReady:
		return false, nil
	}
	return false, d.failed(op, int(result))
}

func (e *event) Synchronize() error {
	const op = "Event.Synchronize"
	if err := e.enter(op); err != nil {
		return err
	}
	result := e.context.await(e.handle)
	e.leave()
	return e.device.check(op, result)
}

func (e *event) Destroy() error {
	const op = "Event.Destroy"
	if e.guard.close() {
		return e.destroy(op)
	}
	return e.device.alive(op)
}

func (e *event) destroy(op string) error {
	defer e.device.release()
	if err := e.device.alive(op); err != nil {
		return err
	}
	return e.device.check(op, C.weir_event_destroy(e.context.handle, e.handle))
}
