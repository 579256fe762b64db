package drivertest

import (
	"errors"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

var eventTests = []test{
	{"an event that was never recorded counts as done", func(f *fixture) {
		d := f.device(0)
		s, e := f.stream(d), f.event(d)
		f.finished("the event", e)
		f.sync("the event", e)
		f.ok(s.Wait(e))
		f.sync("a stream that waits for it", s)
	}},
	{"an event on an idle stream is done", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		f.sync("the stream", s)
		e := f.record(d, s)
		f.sync("the event", e)
		f.finished("the event", e)
	}},
	{"Record captures the work before it", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		release := f.stall(s)
		e := f.record(d, s)
		f.pending("the event", e)
		release()
		f.sync("the event", e)
		f.finished("the event", e)
	}},
	{"Record does not capture the work after it", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		first := f.stall(s)
		e := f.record(d, s)
		second := f.stall(s)
		first()
		f.sync("the event", e)
		f.finished("the event", e)
		f.pending("the stream", s)
		second()
	}},
	{"a second Record moves the event", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		first := f.stall(s)
		e := f.record(d, s)
		second := f.stall(s)
		f.ok(s.Record(e))
		between := f.record(d, s)
		first()
		f.pending("the event after its first record is done", e)
		second()
		f.sync("the event", e)
		f.sync("another event of the same place", between)
		f.finished("the event", e)
	}},
	{"a finished event is recorded on another stream", func(f *fixture) {
		d := f.device(0)
		a, b := f.stream(d), f.stream(d)
		e := f.record(d, a)
		f.sync("the event", e)
		release := f.stall(b)
		f.ok(b.Record(e))
		f.pending("the event", e)
		release()
		f.sync("the event", e)
	}},
	{"an unfinished event is not recorded on another stream", func(f *fixture) {
		d := f.device(0)
		a, b := f.stream(d), f.stream(d)
		release := f.stall(a)
		e := f.record(d, a)
		if err := b.Record(e); err != nil {
			f.refused(err, "Stream.Record", d, weir.ErrArgument)
			f.pending("the event after a Record that was refused", e)
		}
		release()
		f.sync("the event", e)
		f.sync("the stream of the first record", a)
	}},
	{"Synchronize of an event releases every waiter", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		release := f.stall(s)
		e := f.record(d, s)
		var released atomic.Bool
		var tasks []*task
		for range 4 {
			tasks = append(tasks, f.startWaiting("Event.Synchronize", func() error {
				err := e.Synchronize()
				if !released.Load() {
					return errors.Join(err, errors.New("returned while the event was pending"))
				}
				return err
			}))
		}
		released.Store(true)
		release()
		f.all(tasks)
	}},
	{"Destroy of a pending event does not wait, and may be repeated", func(f *fixture) {
		d := f.device(0)
		s, e := f.stream(d), f.event(d)
		release := f.stall(s)
		f.ok(s.Record(e))
		f.within("Destroy of a pending event", e.Destroy)
		f.ok(e.Destroy())
		release()
		f.sync("the stream", s)
	}},
	{"a destroyed event is ignored or refused", func(f *fixture) {
		d := f.device(0)
		s, e := f.stream(d), f.event(d)
		f.ok(e.Destroy())
		f.proper(s.Record(e), "Stream.Record", d, weir.ErrClosed)
		f.proper(s.Wait(e), "Stream.Wait", d, weir.ErrClosed)
		f.proper(second(e.Query()), "Event.Query", d, weir.ErrClosed)
		f.proper(e.Synchronize(), "Event.Synchronize", d, weir.ErrClosed)
		f.sync("the stream", s)
	}},
	{"an event is recorded on streams of its own device", func(f *fixture) {
		a, b := f.device(0), f.device(1)
		s, e := f.stream(a), f.event(b)
		f.refused(s.Record(e), "Stream.Record", a, weir.ErrArgument)
		f.finished("the event", e)
	}},
	{"an event of another family is waited for or refused", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		e := foreignEvent{done: make(chan struct{})}
		f.refused(s.Record(e), "Stream.Record", d, weir.ErrArgument)
		if err := s.Wait(e); err != nil {
			f.refused(err, "Stream.Wait", d, weir.ErrNotSupported)
			close(e.done)
			return
		}
		f.pending("a stream that waits for the foreign event", s)
		close(e.done)
		f.sync("a stream that waits for the foreign event", s)
	}},
	{"foreign work that fails is not taken for done", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		e := foreignEvent{done: make(chan struct{}), err: &weir.Error{Op: "Event.Synchronize", Device: "other:0", Err: weir.ErrDeviceLost}}
		if err := s.Wait(e); err != nil {
			f.t.Skipf("the family does not wait for foreign events: %v", err)
		}
		close(e.done)
		f.within("a stream behind a foreign event that fails", func() error {
			_ = s.Synchronize()
			return nil
		})
	}},
}

// foreignEvent is an event of no family that is known.
type foreignEvent struct {
	done chan struct{}
	err  error
}

func (e foreignEvent) Query() (bool, error) {
	select {
	case <-e.done:
		return e.err == nil, e.err
	default:
		return false, nil
	}
}

func (e foreignEvent) Synchronize() error {
	<-e.done
	return e.err
}

func (foreignEvent) Destroy() error { return nil }

var _ driver.Event = foreignEvent{}
