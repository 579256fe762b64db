package graph

import (
	"errors"

	"github.com/weirgo/weir/internal/driver"
)

// Lanes are streams of a device, and handles on those that had products.
type Lanes struct {
	dev     driver.Device
	streams []driver.Stream
	handles [mostLanes]driver.BLAS
}

// NewLanes has no lanes yet: Capture makes those that it needs.
func NewLanes(d driver.Device) *Lanes { return &Lanes{dev: d} }

// Capture answers the nodes as a graph of the device, which Destroy gives up before
// the lanes are closed.
func (l *Lanes) Capture(nodes []Node) (driver.Graph, error) {
	places, lanes := plan(nodes)
	if err := l.need(places, max(lanes, 1)); err != nil {
		return nil, err
	}
	events := make([]driver.Event, len(nodes)) // each is recorded once: those of a capture cannot be asked for
	defer func() {
		for _, e := range events {
			if e != nil {
				_ = e.Destroy() // a dead device says so elsewhere
			}
		}
	}()
	for i := range places {
		if !places[i].awaited {
			continue
		}
		e, err := l.dev.NewEvent()
		if err != nil {
			return nil, err
		}
		events[i] = e
	}
	return l.dev.Capture(l.streams[:max(lanes, 1)], func() error {
		for i := range nodes {
			if err := l.submit(&nodes[i], &places[i], events, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// submit submits node i where it was put.
func (l *Lanes) submit(n *Node, p *place, events []driver.Event, i int) error {
	s := l.streams[p.lane]
	for _, before := range p.waits {
		if err := s.Wait(events[before]); err != nil {
			return err
		}
	}
	for _, step := range n.Steps {
		if err := step.Submit(s, l.handles[p.lane]); err != nil {
			return err
		}
	}
	if events[i] == nil {
		return nil
	}
	return s.Record(events[i])
}

// need makes the streams, and the handles of those with products, that there are
// not yet.
func (l *Lanes) need(places []place, lanes int) error {
	for len(l.streams) < lanes {
		s, err := l.dev.NewStream(0)
		if err != nil {
			return err
		}
		l.streams = append(l.streams, s)
	}
	for i := range places {
		p := &places[i]
		if !p.products || l.handles[p.lane] != nil {
			continue
		}
		h, err := l.dev.NewBLAS()
		if err != nil {
			return err
		}
		l.handles[p.lane] = h
	}
	return nil
}

// Close gives everything back. No graph of the lanes runs or will.
func (l *Lanes) Close() error {
	var errs []error
	for i, h := range l.handles {
		if h != nil {
			errs = append(errs, h.Destroy())
		}
		l.handles[i] = nil
	}
	for _, s := range l.streams {
		errs = append(errs, s.Destroy())
	}
	l.streams = nil
	return errors.Join(errs...)
}
