//go:build cuda

package bench

import (
	"errors"
	"time"

	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/internal/driver"
)

// callsInFlight is how many calls are made before the device is waited for: far
// fewer than the thousand after which a submission waits.
const callsInFlight = 128

func gpuCallsCases(env Env) []Case {
	all := []struct {
		name string
		call floor.Call
		of   func(*caller) func() error
	}{
		{"crossing to C and back / a call in C", floor.Empty, (*caller).cross},
		{"event record", floor.Record, (*caller).record},
		{"stream waits for an event", floor.Wait, (*caller).wait},
		{"event query, done", floor.QueryEvent, (*caller).queryEvent},
		{"stream query, idle", floor.QueryStream, (*caller).queryStream},
		{"event made and destroyed", floor.EventPair, (*caller).eventPair},
		{"1 KiB taken and freed in stream order", floor.MemoryPair, (*caller).memoryPair},
		{"host function", floor.HostFunction, (*caller).hostFunction},
	}
	var cases []Case
	for _, c := range all {
		cases = append(cases, onGPU(env, Case{Name: c.name, Unit: Nanoseconds}, 2, func(x *rig) (*Trial, error) {
			k, err := newCaller(x)
			if err != nil {
				return nil, err
			}
			once := c.of(k)
			return &Trial{
				Value: k.loop(once), Floor: func(n int) (time.Duration, error) { return x.gpu.Call(c.call, n) },
				Fixed: callsInFlight, Allocs: true,
				Check: func() error { return errors.Join(once(), k.await()) },
			}, nil
		}))
	}
	return cases
}

// caller makes single calls of Weir's interface of the driver.
type caller struct {
	x            *rig
	device       driver.Device
	stream, next driver.Stream
	event        driver.Event
	pool         driver.Pool
	woken        chan error
	waking       int // host functions under way
}

func newCaller(x *rig) (*caller, error) {
	d := x.r.Device().Driver()
	k := &caller{x: x, device: d, woken: make(chan error, callsInFlight)}
	var err error
	if k.stream, err = d.NewStream(0); err != nil {
		return nil, err
	}
	x.later(k.stream.Destroy)
	if k.next, err = d.NewStream(0); err != nil {
		return nil, err
	}
	x.later(k.next.Destroy)
	if k.event, err = d.NewEvent(); err != nil {
		return nil, err
	}
	x.later(k.event.Destroy)
	if k.pool, err = d.NewPool(driver.PoolConfig{ReleaseThreshold: 1 << 30}); err != nil {
		return nil, err
	}
	x.later(k.pool.Destroy)
	return k, nil
}

// loop makes calls, and waits for the device outside the time.
func (k *caller) loop(once func() error) Loop {
	return func(n int) (took time.Duration, err error) {
		for ; n > 0; n -= callsInFlight {
			d, err := each(once)(min(n, callsInFlight))
			if err := errors.Join(err, k.await()); err != nil {
				return 0, err
			}
			took += d
		}
		return took, nil
	}
}

func (k *caller) await() error {
	errs := []error{k.x.gpu.Synchronize()}
	for ; k.waking > 0; k.waking-- {
		errs = append(errs, <-k.woken)
	}
	return errors.Join(errs...)
}

func (k *caller) cross() func() error {
	return func() error {
		floor.Nothing()
		return nil
	}
}

func (k *caller) record() func() error { return func() error { return k.stream.Record(k.event) } }

func (k *caller) wait() func() error { return func() error { return k.next.Wait(k.event) } }

func (k *caller) queryEvent() func() error {
	return func() error {
		done, err := k.event.Query()
		return k.expectDone(done, err)
	}
}

func (k *caller) queryStream() func() error {
	return func() error {
		done, err := k.stream.Query()
		return k.expectDone(done, err)
	}
}

func (k *caller) expectDone(done bool, err error) error {
	if err == nil && !done {
		return wrong("a stream with no work is not done")
	}
	return err
}

func (k *caller) eventPair() func() error {
	return func() error {
		e, err := k.device.NewEvent()
		if err != nil {
			return err
		}
		return e.Destroy()
	}
}

func (k *caller) memoryPair() func() error {
	return func() error {
		p, err := k.pool.Alloc(k.stream, 1024)
		if err != nil {
			return err
		}
		return k.pool.Free(k.stream, p)
	}
}

func (k *caller) hostFunction() func() error {
	return func() error {
		k.waking++
		return k.stream.Notify(k)
	}
}

// Wake is called by the driver.
func (k *caller) Wake(err error) { k.woken <- err }
