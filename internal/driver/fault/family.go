package fault

import (
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// New wraps inner; plan decides what becomes of each call. The wrapper has the
// inner family's name and devices.
func New(inner driver.Family, plan *Plan) driver.Family {
	return &family{inner: inner, plan: plan, devices: map[int]driver.Device{}}
}

// Unwrap answers what a wrapped family, device, stream, event, pool or handle
// wraps, and anything else as it is. T is the interface of package driver.
func Unwrap[T any](x T) T {
	if w, ok := any(x).(interface{ Unwrap() T }); ok {
		return w.Unwrap()
	}
	return x
}

type family struct {
	inner driver.Family
	plan  *Plan

	mu      sync.Mutex // guards devices; no inner call is made under it
	devices map[int]driver.Device
}

func (f *family) Name() string          { return f.inner.Name() }
func (f *family) Count() int            { return f.inner.Count() }
func (f *family) Unavailable() error    { return f.inner.Unavailable() }
func (f *family) Unwrap() driver.Family { return f.inner }

// Open has no device to kill before the call, so KillNth kills the one that it
// opens.
func (f *family) Open(ordinal int) (driver.Device, error) {
	v := f.plan.enter(FamilyOpen)
	if v.act == failOnce || v.act == failOn {
		return nil, injected(FamilyOpen, "", v.n, v.cause)
	}
	inner, err := f.inner.Open(ordinal)
	if err != nil {
		return nil, err
	}
	d := f.wrap(ordinal, inner)
	if v.act == kill {
		if err := base(d).die(FamilyOpen, v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// wrap answers the one wrapper of a device.
func (f *family) wrap(ordinal int, inner driver.Device) driver.Device {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d, ok := f.devices[ordinal]; ok {
		return d
	}
	d := driver.Device(&device{inner: inner, plan: f.plan})
	if _, ok := inner.(killer); ok {
		d = &mortal{device: d.(*device)}
	}
	f.devices[ordinal] = d
	return d
}

func base(d driver.Device) *device {
	if m, ok := d.(*mortal); ok {
		return m.device
	}
	return d.(*device)
}

// killer is a device that can be made to die.
type killer interface{ Kill(cause error) }

// mortal is a wrapped device that can be made to die.
type mortal struct{ *device }

// Kill makes the inner device die of cause.
func (m *mortal) Kill(cause error) { m.kill(cause) }

// die kills the device as a plan says, or answers why it cannot.
func (d *device) die(call Call, v verdict) error {
	if _, ok := d.inner.(killer); !ok {
		return &weir.Error{Op: string(call), Device: d.Name(), Kind: weir.KindLogic,
			Message: "the plan is to kill this device, which has no method Kill(error)", Err: weir.ErrNotSupported}
	}
	cause := v.cause
	if cause == nil {
		cause = ErrInjected
	}
	d.kill(cause)
	return nil
}

func (d *device) kill(cause error) {
	d.inner.(killer).Kill(cause)
	d.lost(d.inner.Err())
}
