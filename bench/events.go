package bench

import (
	"context"
	"errors"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

var events = Scenario{
	Name: "events",
	About: "what completions cost: recording and asking one, whose event comes from a ring, beside a driver event that is made," +
		" recorded, asked and destroyed for each, and beside one driver event alone; and finding a stream idle by asking, beside" +
		" being called by the driver",
	Cases: func(env Env) []Case {
		r := env.Resources
		return []Case{
			eventCase("record and ask / a driver event for each", r, (*recorder).fresh),
			eventCase("record and ask / one driver event", r, (*recorder).same),
			eventCase("record and ask / notification", r, (*recorder).notified),
		}
	},
}

// recorder learns that work on one stream is done, in different ways.
type recorder struct {
	s     stream.Stream
	dev   driver.Device
	woken chan error
	event driver.Event // of same
}

func eventCase(name string, r *runtime.Resources, floor func(*recorder) error) Case {
	return Case{Name: name, Unit: Nanoseconds, Open: func(ctx context.Context) (*Trial, error) {
		s, err := r.Streams().Acquire(ctx)
		if err != nil {
			return nil, err
		}
		x := &recorder{s: s, dev: r.Device().Driver(), woken: make(chan error, 1)}
		if x.event, err = x.dev.NewEvent(); err != nil {
			return nil, errors.Join(err, s.Release())
		}
		return &Trial{
			Value: each(x.ring), Floor: each(func() error { return floor(x) }), Allocs: true,
			Check: func() error { return errors.Join(x.ring(), floor(x)) },
			Close: func() error { return errors.Join(s.Release(), x.event.Destroy()) },
		}, nil
	}}
}

// ring is Weir's way.
func (x *recorder) ring() error {
	c, err := x.s.Record()
	if err != nil {
		return err
	}
	for {
		if done, err := c.Done(); done || err != nil {
			return err
		}
	}
}

// fresh makes an event for each completion.
func (x *recorder) fresh() error {
	e, err := x.dev.NewEvent()
	if err != nil {
		return err
	}
	return errors.Join(x.use(e), e.Destroy())
}

// same is all that a driver needs: no completion outlives the next.
func (x *recorder) same() error { return x.use(x.event) }

func (x *recorder) use(e driver.Event) error {
	s, err := x.s.Submit()
	if err != nil {
		return err
	}
	if err := s.Record(e); err != nil {
		return err
	}
	for {
		if done, err := e.Query(); done || err != nil {
			return err
		}
	}
}

// notified has the driver call, and waits for it.
func (x *recorder) notified() error {
	s, err := x.s.Submit()
	if err != nil {
		return err
	}
	if err := s.Notify(x); err != nil {
		return err
	}
	return <-x.woken
}

// Wake is called by the driver.
func (x *recorder) Wake(err error) { x.woken <- err }
