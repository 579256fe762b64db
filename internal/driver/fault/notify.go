package fault

import "github.com/weirgo/weir/internal/driver"

// droppedWaker stands in for a waker whose notification is lost. The inner
// family wakes it; it passes on only the news that the device is dead.
type droppedWaker struct {
	dev   *device
	waker driver.Waker
}

func (w *droppedWaker) Wake(err error) {
	if err != nil {
		w.dev.lost(err)
	}
}

// Notify is the one call that a plan can make succeed without effect.
func (s *stream) Notify(w driver.Waker) error {
	v := s.dev.plan.enter(StreamNotify)
	if v.act != drop {
		return s.dev.carry(StreamNotify, v, func() error { return s.inner.Notify(w) })
	}
	lost := &droppedWaker{s.dev, w}
	if err := s.dev.carry(StreamNotify, v, func() error { return s.inner.Notify(lost) }); err != nil {
		return err
	}
	s.dev.mu.Lock()
	s.dev.dropped = append(s.dev.dropped, lost)
	s.dev.mu.Unlock()
	// The device may have died before the waker was on the list.
	_ = s.dev.Err()
	return nil
}

// lost wakes every waker that was dropped so far with the terminal error, each
// once and on a goroutine of its own.
func (d *device) lost(terminal error) {
	d.mu.Lock()
	dropped := d.dropped
	d.dropped = nil
	d.mu.Unlock()
	for _, w := range dropped {
		go w.waker.Wake(terminal)
	}
}
