package main

import (
	"context"
	"errors"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// inFlight is how many steps of a contraction can be under way: one runs while
// the next is submitted. A step is reported when it is submitted, so that the
// progress bar knows what is done to within this number.
const inFlight = 2

// onDevice starts a runtime for one device, the default one for "", and runs do
// in a scope of its arrays.
//
// After a signal nothing is closed: that would wait for the work which was
// submitted, and the end of the process gives everything back.
func onDevice(ctx context.Context, name string, do func(context.Context, runtime.Device) error) error {
	options := runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: inFlight}}
	if name != "" {
		options.Devices = []string{name}
	}
	rt, err := runtime.Start(options)
	if err != nil {
		return err
	}
	scope, free := tensor.Scope(ctx)
	device, err := runtime.Default()
	if err == nil {
		err = do(scope, device)
	}
	if ctx.Err() != nil && err != nil {
		return err
	}
	return errors.Join(err, free(), rt.Close())
}

// wait returns when the work that makes a is done.
func wait(ctx context.Context, a *tensor.Array) error {
	r, err := runtime.For(a.Device())
	if err != nil {
		return err
	}
	s, err := r.Streams().Acquire(ctx)
	if err != nil {
		return err
	}
	acc := buffer.Begin(s)
	acc.Read(a.Buffer())
	return errors.Join(acc.End(), s.Synchronize(ctx), s.Release())
}
