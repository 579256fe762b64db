package tensor

import (
	"context"
	"errors"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// operation is the scope of one operation that needs a stream and no handle.
type operation struct {
	s   stream.Stream
	acc buffer.Access
}

// onStream leases a stream, runs one operation's accesses and submissions on
// it, and gives it back. All memory has been taken before.
func onStream(ctx context.Context, r *runtime.Resources, do func(*operation) error) error {
	return lease(ctx, r, buffer.Begin, do)
}

// onStreamAcross is onStream for copies between devices.
func onStreamAcross(ctx context.Context, r *runtime.Resources, do func(*operation) error) error {
	return lease(ctx, r, buffer.BeginCopy, do)
}

func lease(ctx context.Context, r *runtime.Resources, begin func(stream.Stream) buffer.Access, do func(*operation) error) error {
	s, err := r.Streams().Acquire(ctx)
	if err != nil {
		return err
	}
	x := &operation{s: s, acc: begin(s)}
	err = do(x)
	return join(err, x.acc.End(), s.Release())
}

// submit gives work to the stream if every access was granted.
func (x *operation) submit(do func(driver.Stream) error) error {
	if x.acc.Err() != nil {
		return nil // End answers it
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
