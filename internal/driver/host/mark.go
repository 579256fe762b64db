package host

import (
	"sync/atomic"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// mark is the latest of the places that it was put at. Each place is an event of
// its own, so that a mark moves freely between streams.
type mark struct {
	dev       *device
	latest    atomic.Pointer[place] // nil before the first
	destroyed atomic.Bool
}

// place is where a stream was, and when. at is written before the event is done
// and read after.
type place struct {
	event event
	at    time.Time
}

func (d *device) NewMark() (driver.Mark, error) {
	if err := d.alive("Device.NewMark"); err != nil {
		return nil, err
	}
	return &mark{dev: d}, nil
}

func (s *stream) Mark(dm driver.Mark) error {
	const op = "Stream.Mark"
	m, err := s.dev.mark(op, dm)
	if err != nil {
		return err
	}
	p := &place{event: event{dev: s.dev}}
	p.event.clock = &p.at
	if err := s.record(op, &p.event); err != nil {
		return err
	}
	m.latest.Store(p)
	return nil
}

// mark is dm as a mark of d that lives, or the error that call op answers.
func (d *device) mark(op string, dm driver.Mark) (*mark, error) {
	m, ok := dm.(*mark)
	if !ok || m.dev != d {
		return nil, d.argument(op, "a mark of another device; expected one of %s", d.name)
	}
	if err := d.alive(op); err != nil {
		return nil, err
	}
	if m.destroyed.Load() {
		return nil, &weir.Error{Op: op, Device: d.name, Kind: weir.KindLogic, Message: "the mark was destroyed", Err: weir.ErrClosed}
	}
	return m, nil
}

func (m *mark) Since(earlier driver.Mark) (time.Duration, error) {
	const op = "Mark.Since"
	var places [2]*place
	for i, dm := range [...]driver.Mark{earlier, m} {
		one, err := m.dev.mark(op, dm)
		if err != nil {
			return 0, err
		}
		if places[i] = one.latest.Load(); places[i] == nil {
			return 0, m.dev.argument(op, "a mark that was never put on a stream; expected two that were")
		}
	}
	for _, p := range places {
		if err := p.event.synchronize(op); err != nil {
			return 0, err
		}
	}
	return places[1].at.Sub(places[0].at), nil
}

// Destroy leaves a wait for the mark alone.
func (m *mark) Destroy() error {
	m.destroyed.Store(true)
	return m.dev.alive("Mark.Destroy")
}
