package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalError is the cause of a context that a signal ended.
type signalError struct{ number syscall.Signal }

func (e signalError) Error() string {
	if e.number == syscall.SIGINT {
		return "interrupted"
	}
	return e.number.String()
}

// untilSignal answers a context that SIGINT, SIGTERM and SIGHUP end, but for a
// SIGHUP that nohup has ignored. Only the first is caught: a second one kills the
// process, should something not heed the context.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signalError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
