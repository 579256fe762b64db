package profile

import (
	"context"
	"errors"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/stream"
)

// Timer is two places of one stream.
type Timer struct {
	s        stream.Stream
	device   string
	stream   string
	from, to driver.Mark // nil once they are given up
	end      stream.Completion
	state    state
	took     time.Duration
}

type state uint8

const (
	running state = iota
	ended
	known
	released
)

// Begin marks the tail of s: the time runs once the work submitted before is
// done.
func Begin(s stream.Stream) (*Timer, error) {
	d, name := s.Device(), s.String()
	st, err := s.Submit()
	if err != nil {
		return nil, err
	}
	t := &Timer{s: s, device: d.Name(), stream: name}
	if t.from, err = d.NewMark(); err == nil {
		t.to, err = d.NewMark()
	}
	if err == nil {
		err = st.Mark(t.from)
	}
	if err != nil {
		return nil, errors.Join(t.wrap("profile.Begin", err), t.give("profile.Begin"))
	}
	return t, nil
}

// End marks the tail of the stream: the time stops when the work submitted so far
// is done. It does not wait. After the first one it does nothing. When it fails
// the timer still runs.
func (t *Timer) End() error {
	const op = "profile.End"
	switch t.state {
	case released:
		return t.closed(op)
	case ended, known:
		return nil
	}
	st, err := t.s.Submit()
	if err != nil {
		return err
	}
	if err := st.Mark(t.to); err != nil {
		return t.wrap(op, err)
	}
	if t.end, err = t.s.Record(); err != nil {
		return err
	}
	t.state = ended
	return nil
}

// Elapsed waits until the work is done, or ctx ends, and answers how long the
// stream took. Then it gives the marks up; asked again, it answers the same.
func (t *Timer) Elapsed(ctx context.Context) (time.Duration, error) {
	const op = "profile.Elapsed"
	switch t.state {
	case released:
		return 0, t.closed(op)
	case running:
		return 0, t.refuse(op, "the timer still runs; call End first", weir.ErrArgument)
	case known:
		return t.took, nil
	}
	if err := t.end.Wait(ctx); err != nil {
		return 0, err
	}
	took, err := t.to.Since(t.from)
	if err != nil {
		return 0, t.wrap(op, err)
	}
	t.took, t.state = took, known
	return took, t.give(op)
}

// Release gives the timer up, at any time and without waiting; what was
// submitted goes on. A second Release does nothing.
func (t *Timer) Release() error {
	t.state = released
	return t.give("profile.Release")
}

// give destroys the marks that are left.
func (t *Timer) give(op string) error {
	var errs []error
	for _, m := range []*driver.Mark{&t.from, &t.to} {
		if *m != nil {
			errs = append(errs, t.wrap(op, (*m).Destroy()))
			*m = nil
		}
	}
	return errors.Join(errs...)
}

func (t *Timer) closed(op string) error {
	return t.refuse(op, "the timer was released", weir.ErrClosed)
}

func (t *Timer) refuse(op, message string, sentinel error) error {
	return &weir.Error{Op: op, Device: t.device, Stream: t.stream, Kind: weir.KindLogic, Message: message, Err: sentinel}
}

// wrap says which of the package's calls a driver's error ended.
func (t *Timer) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	e := &weir.Error{Op: op, Device: t.device, Stream: t.stream, Kind: weir.KindCUDA, Err: err}
	if cause, ok := err.(*weir.Error); ok {
		e.Code, e.Name, e.Kind = cause.Code, cause.Name, cause.Kind
	}
	return e
}
