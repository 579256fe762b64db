// Package profile measures how long a device takes: from one place of a stream
// to another, on the device's own clock.
//
//	t, err := profile.Begin(s)
//	if err != nil { … }
//	defer t.Release()
//	… submit work to s …
//	if err := t.End(); err != nil { … }
//	took, err := t.Elapsed(ctx) // waits for the work
//
// Nothing else in Weir makes events with the time, which cost a device more than
// those that only order work: a program that does not profile pays nothing.
//
// The time is that of the stream, not of the work alone: it has in it what the
// stream waited for, and on an idle stream the time until the work was
// submitted. An operation of package tensor leases a stream of its own; to time
// one, have a stream wait for its operands' completions before Begin and for its
// result's before End. On the host device the clock is the process's.
//
// It keeps no statistics, and does not say what a kernel did.
//
// Ownership: a Timer leases nothing; whoever holds the stream keeps it from Begin
// to End. Release gives the timer's two marks up; Elapsed does too once it knows
// the time. A timer that is released in neither way keeps them on the device.
// Concurrency: one goroutine at a time uses a Timer; several timers may be on one
// stream, nested or not. Cancellation: Elapsed ends with its context; the work
// goes on, and Elapsed may be called again. Errors: ErrStale of a released
// stream, ErrClosed after Release or the pool's Close, ErrArgument before End,
// and the device's own.
package profile
