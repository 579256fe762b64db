package drivertest

import (
	"errors"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// kill makes d die, checks that it is dead, and answers the cause if known.
func (f *fixture) kill(d driver.Device) (cause error) {
	f.t.Helper()
	f.mortal()
	f.within("Kill", func() error {
		cause = f.h.Kill(d)
		return nil
	})
	f.lost("Device.Err", d.Err(), cause)
	return cause
}

// mortal skips the test where a device cannot be made to die.
func (f *fixture) mortal() {
	f.t.Helper()
	if f.h.Kill == nil {
		f.t.Skipf("devices of this family cannot be made to die")
	}
}

// lost checks that err says that the device was lost, and why.
func (f *fixture) lost(what string, err, cause error) {
	f.t.Helper()
	if !errors.Is(err, weir.ErrDeviceLost) || cause != nil && !errors.Is(err, cause) {
		f.t.Errorf("%s answered %v; expected one that matches %q and %v", what, err, weir.ErrDeviceLost, cause)
	}
	if _, ok := err.(*weir.Error); err != nil && !ok {
		f.t.Errorf("%s answered a %T; expected a *weir.Error", what, err)
	}
}

// mourning is everything that lives when a device dies.
type mourning struct {
	device driver.Device
	stream driver.Stream // stalled
	event  driver.Event  // pending on it
	pool   driver.Pool   // nil without pools
	blas   driver.BLAS
	memory driver.Ptr
}

func (f *fixture) mourning() *mourning {
	f.t.Helper()
	f.mortal()
	d := f.device(0)
	m := &mourning{device: d, memory: f.alloc(d, 1024), stream: f.stream(d), blas: f.blas(d)}
	if d.Capabilities().StreamOrderedPools {
		m.pool = f.pool(d, driver.PoolConfig{})
	}
	f.stall(m.stream)
	m.event = f.record(d, m.stream)
	return m
}

var deathTests = []test{
	{"a device that lives has no error", func(f *fixture) {
		for i := range f.family.Count() {
			if err := f.device(i).Err(); err != nil {
				f.t.Errorf("device %d: %v", i, err)
			}
		}
	}},
	{"every call of a dead device answers the first cause", func(f *fixture) {
		m := f.mourning()
		d, s := m.device, m.stream
		cause := f.kill(d)
		buffer := make([]byte, 8)
		calls := map[string]func() error{
			"Device.Select":      func() error { return second(d.Select()) },
			"Device.Memory":      func() error { _, _, err := d.Memory(); return err },
			"Device.NewStream":   func() error { return second(d.NewStream(0)) },
			"Device.NewEvent":    func() error { return second(d.NewEvent()) },
			"Device.Alloc":       func() error { return second(d.Alloc(8)) },
			"Device.AllocHost":   func() error { return second(d.AllocHost(8)) },
			"Device.NewBLAS":     func() error { return second(d.NewBLAS()) },
			"Device.NewSolver":   func() error { return second(d.NewSolver()) },
			"Stream.Record":      func() error { return s.Record(m.event) },
			"Stream.Wait":        func() error { return s.Wait(m.event) },
			"Stream.Notify":      func() error { return s.Notify(newWaker()) },
			"Stream.Query":       func() error { return second(s.Query()) },
			"Stream.Synchronize": s.Synchronize,
			"Stream.Copy":        func() error { return s.Copy(m.memory, m.memory+8, 8) },
			"Stream.CopyPeer":    func() error { return s.CopyPeer(m.memory, 0, m.memory+8, 0, 8) },
			"Stream.CopyIn":      func() error { return s.CopyIn(m.memory, buffer) },
			"Stream.CopyOut":     func() error { return s.CopyOut(buffer, m.memory) },
			"Stream.Zero":        func() error { return s.Zero(m.memory, 8) },
			"Stream.Launch": func() error {
				return s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(m.memory, dtype.Int64, 1)})
			},
			"Event.Query":       func() error { return second(m.event.Query()) },
			"Event.Synchronize": m.event.Synchronize,
			"BLAS.Gemm":         func() error { return m.blas.Gemm(s, square(m.memory, 1)) },
		}
		if m.pool != nil {
			calls["Device.NewPool"] = func() error { return second(d.NewPool(driver.PoolConfig{})) }
			calls["Pool.Alloc"] = func() error { return second(m.pool.Alloc(s, 8)) }
			calls["Pool.Trim"] = func() error { return m.pool.Trim(0) }
			calls["Pool.Stats"] = func() error { return second(m.pool.Stats()) }
		}
		for call, again := range calls {
			err := f.start(call+" of a dead device", again).join()
			f.lost(call, err, cause)
			f.refused(err, call, d, weir.ErrDeviceLost)
		}
	}},
	{"a dead device's things are given up without hanging", func(f *fixture) {
		m := f.mourning()
		d := m.device
		host, err := d.AllocHost(64)
		f.ok(err)
		memory, err := d.Alloc(64)
		f.ok(err)
		solver, err := d.NewSolver()
		f.ok(err)
		type exit struct {
			call string
			make func() error
		}
		exits := []exit{
			{"Event.Destroy", m.event.Destroy},
			{"BLAS.Destroy", m.blas.Destroy},
			{"Solver.Destroy", solver.Destroy},
			{"Device.Free", func() error { return d.Free(memory) }},
			{"Device.FreeHost", func() error { return d.FreeHost(host) }},
		}
		if m.pool != nil {
			at := f.take(m.pool, m.stream, 64)
			exits = append(exits, exit{"Pool.Free", func() error { return m.pool.Free(m.stream, at) }}, exit{"Pool.Destroy", m.pool.Destroy})
		}
		exits = append(exits, exit{"Stream.Destroy", m.stream.Destroy})
		f.kill(d)
		for _, e := range exits {
			f.proper(f.start(e.call+" of a dead device", e.make).join(), e.call, d, weir.ErrDeviceLost)
		}
	}},
	{"the first cause stays", func(f *fixture) {
		f.mortal()
		d := f.device(0)
		cause := f.kill(d)
		first := d.Err().Error()
		f.h.Kill(d)
		f.lost("Device.Err", d.Err(), cause)
		if d.Err().Error() != first {
			f.t.Errorf("the error was %q and is %q after a second death", first, d.Err())
		}
	}},
	{"death ends every wait, though the work never ends", func(f *fixture) {
		m := f.mourning()
		waits := []*task{
			f.startWaiting("Event.Synchronize", m.event.Synchronize),
			f.startWaiting("Stream.Synchronize", m.stream.Synchronize),
			f.startWaiting("CopyOut", func() error { return m.stream.CopyOut(make([]byte, 8), m.memory) }),
		}
		// A CopyIn that was submitted shows that the stream still took work.
		write(f, m.stream, m.memory, int64(1))
		cause := f.kill(m.device)
		for _, w := range waits {
			f.lost(w.what, w.join(), cause)
		}
	}},
	{"death wakes every waker once, though the work never ends", func(f *fixture) {
		f.mortal()
		d := f.device(0)
		s := f.stream(d)
		release := f.stall(s)
		var wakers []*waker
		for range 5 {
			w := newWaker()
			f.ok(s.Notify(w))
			wakers = append(wakers, w)
		}
		cause := f.kill(d)
		for _, w := range wakers {
			w.once(f, weir.ErrDeviceLost)
			if cause != nil {
				w.once(f, cause)
			}
		}
		release()
		f.within("Destroy of the stream", func() error {
			_ = s.Destroy()
			return nil
		})
		for _, w := range wakers {
			w.once(f, weir.ErrDeviceLost)
		}
	}},
	{"death releases streams of other devices that wait for it", func(f *fixture) {
		f.mortal()
		dead, other := f.device(0), f.device(1)
		s, waiting := f.stream(dead), f.stream(other)
		f.stall(s)
		e := f.record(dead, s)
		f.ok(waiting.Wait(e))
		f.pending("the waiting stream", waiting)
		cause := f.kill(dead)
		f.within("a stream that waited for the dead device", func() error {
			_ = waiting.Synchronize() // what it answers is the family's affair
			return nil
		})
		f.lost("Wait for an event of the dead device", e.Synchronize(), cause)
	}},
	{"a dead device's neighbour goes on, with its memory intact, or dies of the same cause", func(f *fixture) {
		f.mortal()
		dead, other := f.device(0), f.device(1)
		p, s, e, b := f.alloc(other, 64), f.stream(other), f.event(other), f.blas(other)
		want := []int64{1, 2, 3, 4, 5, 6, 7, 8}
		write(f, s, p, want...)
		f.sync("the neighbour's stream", s)
		cause := f.kill(dead)
		if !f.h.DeathSpreads {
			if got := read[int64](f, s, p, 8); !slices.Equal(got, want) {
				f.t.Errorf("the memory is %v; expected %v", got, want)
			}
			f.ok(errors.Join(s.Record(e), e.Synchronize(), f.stream(other).Synchronize(), other.Err()))
			return
		}
		for what, call := range map[string]func() error{
			"CopyOut":       func() error { return s.CopyOut(make([]byte, 64), p) },
			"Record":        func() error { return s.Record(e) },
			"Query":         func() error { return second(s.Query()) },
			"NewStream":     func() error { return second(other.NewStream(0)) },
			"Alloc":         func() error { return second(other.Alloc(8)) },
			"a product":     func() error { return b.Gemm(s, square(p, 1)) },
			"a copy across": func() error { return s.CopyPeer(p, 1, p+32, 0, 8) },
		} {
			f.lost(what+" of the neighbour", f.start(what, call).join(), cause)
		}
		f.lost("the neighbour's Err", other.Err(), cause)
		if text := other.Err().Error(); !strings.Contains(text, dead.Name()) || !strings.Contains(text, other.Name()) {
			f.t.Errorf("the neighbour's error is %q; expected it to name both devices", text)
		}
	}},
	{"who waits for a dead device's neighbour goes on waiting, or wakes with the same cause", func(f *fixture) {
		f.mortal()
		dead, other := f.device(0), f.device(1)
		p, s, w := f.alloc(other, 8), f.stream(other), newWaker()
		release := f.stall(s)
		e := f.record(other, s)
		f.ok(s.Notify(w))
		waits := []*task{
			f.startWaiting("Event.Synchronize", e.Synchronize),
			f.startWaiting("Stream.Synchronize", s.Synchronize),
			f.startWaiting("CopyOut", func() error { return s.CopyOut(make([]byte, 8), p) }),
		}
		cause := f.kill(dead)
		if !f.h.DeathSpreads {
			f.pending("the neighbour's event", e)
			release()
			f.all(waits)
			w.once(f, nil)
			return
		}
		w.once(f, weir.ErrDeviceLost) // though no call is made
		for _, t := range waits {
			f.lost(t.what, t.join(), cause)
		}
	}},
	{"a dead device's neighbour says that it is lost though no call of it is made", func(f *fixture) {
		f.mortal()
		if !f.h.DeathSpreads {
			f.t.Skip("a death of this family is one device's")
		}
		other := f.device(1)
		f.stream(other) // so that it is in use
		cause := f.kill(f.device(0))
		f.within("the death of the neighbour", func() error {
			for other.Err() == nil {
				goruntime.Gosched()
			}
			return nil
		})
		f.lost("the neighbour's Err", other.Err(), cause)
	}},
	{"a destroyed stream's notifications still come when the device dies", func(f *fixture) {
		f.mortal()
		d := f.device(0)
		running, waiting := f.stream(d), f.stream(d)
		f.stall(running)
		f.ok(waiting.Wait(f.record(d, running)))
		first, second := newWaker(), newWaker()
		f.ok(running.Notify(first))
		f.ok(waiting.Notify(second))
		f.ok(running.Destroy())
		f.ok(waiting.Destroy())
		f.kill(d)
		first.once(f, weir.ErrDeviceLost)
		second.once(f, weir.ErrDeviceLost)
	}},
	{"goroutines that submit while the device dies all end", func(f *fixture) {
		f.mortal()
		d := f.device(0)
		p := f.alloc(d, 8)
		running := make(chan struct{}, stressGoroutines)
		var tasks []*task
		for range stressGoroutines {
			s, e := f.stream(d), f.event(d)
			tasks = append(tasks, f.start("a goroutine that submits", func() error {
				running <- struct{}{}
				for {
					w := newWaker()
					for _, err := range []error{s.Zero(p, 8), s.Record(e), s.Wait(e), s.Notify(w), s.Synchronize()} {
						if err != nil {
							return err
						}
					}
					if err := <-w.woken; err != nil {
						return err
					}
				}
			}))
		}
		for range tasks {
			receive(f, "a goroutine that submits", running)
		}
		cause := f.kill(d)
		for _, t := range tasks {
			f.lost(t.what, t.join(), cause)
		}
	}},
}
