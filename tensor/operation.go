package tensor

import (
	"context"
	"errors"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/stream"
)

// operation is the scope of one operation that needs a stream and no handle.
type operation struct {
	s    stream.Stream
	note *note // in the stream's place, or nil
	acc  buffer.Access
}

// onStream leases a stream of the device that to lies on, runs one operation's
// accesses and submissions on it, and gives it back. All memory has been taken
// before. The stream may be one where to or an array of from was just written.
func onStream(ctx context.Context, to *Array, do func(*operation) error, from ...*Array) error {
	return lease(ctx, buffer.Begin, to, do, from...)
}

// onStreamAcross is onStream for copies between devices.
func onStreamAcross(ctx context.Context, to *Array, do func(*operation) error) error {
	return lease(ctx, buffer.BeginCopy, to, do)
}

func lease(ctx context.Context, begin func(stream.Stream) buffer.Access, to *Array, do func(*operation) error, from ...*Array) error {
	if r := recordingOf(ctx); r != nil {
		return r.record(do)
	}
	after := written(from...)
	after[len(from)] = to.Buffer().Writer()
	s, err := to.resources().Streams().AcquireAfter(ctx, after)
	if err != nil {
		return err
	}
	x := &operation{s: s, acc: begin(s)}
	err = do(x)
	return join(err, x.acc.End(), s.Release())
}

// written is the latest write of each of up to three arrays.
func written(arrays ...*Array) (after stream.After) {
	for i, a := range arrays {
		after[i] = a.Buffer().Writer()
	}
	return after
}

// submit gives work to the stream if every access was granted.
func (x *operation) submit(do func(driver.Stream) error) error {
	if x.acc.Err() != nil {
		return nil // End answers it
	}
	if x.note != nil {
		return do(tape{note: x.note})
	}
	s, err := x.s.Submit()
	if err != nil {
		return err
	}
	return do(s)
}

func (x *operation) launch(k *driver.Kernel) error {
	return x.submit(func(s driver.Stream) error { return s.Launch(k) })
}

// join is errors.Join that answers a single error as it is, and the loss of a
// device, which every call then answers, once.
func join(errs ...error) error {
	var one error
	n := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		if n > 0 && errors.Is(err, weir.ErrDeviceLost) && errors.Is(one, weir.ErrDeviceLost) {
			continue
		}
		one = err
		n++
	}
	if n < 2 {
		return one
	}
	return errors.Join(errs...)
}
