//go:build cuda

package cuda

// #include "driver.h"
// #cgo noescape weir_context_open
import "C"

import "sync"

// context is one life of the device's primary context. references counts the
// objects that need it, under the device's mutex.
type context struct {
	device *device
	handle C.uintptr_t
	probe  C.uintptr_t // a stream that is always idle

	references int

	kernels functions
	events  eventCache
	staging staging
}

// retain answers the device's context, made if need be, and counts one more
// object in.
func (d *device) retain(op string) (*context, error) {
	if err := d.alive(op); err != nil {
		return nil, err
	}
	for {
		d.mu.Lock()
		if c := d.context; c != nil {
			c.references++
			d.mu.Unlock()
			return c, nil
		}
		if wait := d.changing; wait != nil {
			d.mu.Unlock()
			<-wait
			continue
		}
		changed := make(chan struct{})
		d.changing = changed
		d.mu.Unlock()

		c := &context{device: d, references: 1}
		err := c.open(op)
		if err == nil {
			notices.opened()
		}
		d.mu.Lock()
		if err == nil {
			d.context = c
		}
		d.changing = nil
		d.mu.Unlock()
		close(changed)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// open makes the primary context, with its kernels.
func (c *context) open(op string) error {
	d := c.device
	c.staging.context = c
	if err := d.check(op, C.weir_context_open(C.int(d.handle), &c.handle, &c.probe)); err != nil {
		return err
	}
	if err := c.kernels.load(op, c); err != nil {
		C.weir_context_close(C.int(d.handle), c.handle, c.probe)
		return err
	}
	return nil
}

// again counts one more object in, where one is counted already.
func (d *device) again() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.context.references++
}

// borrow is retain of a context that is there; nil if there is none.
func (d *device) borrow() *context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context != nil {
		d.context.references++
	}
	return d.context
}

// release counts an object out. With the last one the context goes.
func (d *device) release() {
	d.mu.Lock()
	c := d.context
	c.references--
	if c.references > 0 {
		d.mu.Unlock()
		return
	}
	changed := make(chan struct{})
	d.context, d.changing = nil, changed
	d.mu.Unlock()

	if d.dead.Load() == nil { // else all of it is gone with the context
		c.staging.close()
		c.events.close(c)
		c.kernels.unload(c)
	}
	_ = d.check("Device.release", C.weir_context_close(C.int(d.handle), c.handle, c.probe)) // nobody is left to be told
	notices.closed()

	d.mu.Lock()
	d.changing = nil
	d.mu.Unlock()
	close(changed)
}

// eventCache keeps events of a context for its own use. mu guards idle.
type eventCache struct {
	mu   sync.Mutex
	idle []C.uintptr_t
}

// take answers an event that nobody waits for.
func (e *eventCache) take(op string, c *context) (C.uintptr_t, error) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		event := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return event, nil
	}
	e.mu.Unlock()
	var event C.uintptr_t
	err := c.device.check(op, C.weir_event_new(c.handle, &event))
	return event, err
}

// give takes an event back whose record is done or no longer of interest.
func (e *eventCache) give(event C.uintptr_t) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, event)
}

func (e *eventCache) close(c *context) {
	for _, event := range e.idle {
		C.weir_event_destroy(c.handle, event)
	}
}
