package fault

import (
	"errors"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// device wraps a device; the calls of all that it made go through it.
type device struct {
	inner driver.Device
	plan  *Plan

	mu      sync.Mutex // guards dropped; no call is made under it
	dropped []*droppedWaker
}

// do makes one call as the plan says.
func (d *device) do(call Call, inner func() error) error {
	return d.carry(call, d.plan.enter(call), inner)
}

// answer makes one call as the plan says, of a method that answers a value.
func answer[T any](d *device, call Call, inner func() (T, error)) (value T, err error) {
	var none T
	err = d.do(call, func() (err error) {
		value, err = inner()
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// carry makes one call as the verdict says.
func (d *device) carry(call Call, v verdict, inner func() error) error {
	switch v.act {
	case failOnce, failOn:
		if call.GivesUp() {
			_ = inner()
		}
		return injected(call, d.Name(), v.n, v.cause)
	case kill:
		if err := d.die(call, v); err != nil {
			return err
		}
	}
	err := inner()
	if errors.Is(err, weir.ErrDeviceLost) {
		_ = d.Err() // it may be this device that is dead
	}
	return err
}

func (d *device) Name() string                       { return d.inner.Name() }
func (d *device) Ordinal() int                       { return d.inner.Ordinal() }
func (d *device) Capabilities() *driver.Capabilities { return d.inner.Capabilities() }
func (d *device) Unwrap() driver.Device              { return d.inner }

func (d *device) Err() error {
	err := d.inner.Err()
	if err != nil {
		d.lost(err)
	}
	return err
}

func (d *device) Select() (func(), error) { return answer(d, DeviceSelect, d.inner.Select) }

func (d *device) Memory() (free, total int64, err error) {
	err = d.do(DeviceMemory, func() (err error) {
		free, total, err = d.inner.Memory()
		return err
	})
	return free, total, err
}

func (d *device) NewStream(priority int) (driver.Stream, error) {
	return answer(d, DeviceNewStream, func() (driver.Stream, error) {
		s, err := d.inner.NewStream(priority)
		return &stream{d, s}, err
	})
}

func (d *device) NewEvent() (driver.Event, error) {
	return answer(d, DeviceNewEvent, func() (driver.Event, error) {
		e, err := d.inner.NewEvent()
		return &event{d, e}, err
	})
}

func (d *device) NewPool(c driver.PoolConfig) (driver.Pool, error) {
	return answer(d, DeviceNewPool, func() (driver.Pool, error) {
		p, err := d.inner.NewPool(c)
		return &pool{d, p}, err
	})
}

func (d *device) Alloc(bytes int64) (driver.Ptr, error) {
	return answer(d, DeviceAlloc, func() (driver.Ptr, error) { return d.inner.Alloc(bytes) })
}

func (d *device) Free(p driver.Ptr) error {
	return d.do(DeviceFree, func() error { return d.inner.Free(p) })
}

func (d *device) AllocHost(bytes int64) (driver.Ptr, error) {
	return answer(d, DeviceAllocHost, func() (driver.Ptr, error) { return d.inner.AllocHost(bytes) })
}

func (d *device) FreeHost(p driver.Ptr) error {
	return d.do(DeviceFreeHost, func() error { return d.inner.FreeHost(p) })
}

func (d *device) NewBLAS() (driver.BLAS, error) {
	return answer(d, DeviceNewBLAS, func() (driver.BLAS, error) {
		b, err := d.inner.NewBLAS()
		return &blas{d, b}, err
	})
}

func (d *device) NewSolver() (driver.Solver, error) {
	return answer(d, DeviceNewSolver, func() (driver.Solver, error) {
		s, err := d.inner.NewSolver()
		return &solver{d, s}, err
	})
}
