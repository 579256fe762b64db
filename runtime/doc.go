// Package runtime starts Weir and knows its devices. It is not Go's runtime: a
// file that needs both imports Go's as goruntime.
//
// Start is called once, in main, and installs process-global services; ordinary
// code looks them up by device and never passes a Runtime along:
//
//	rt, err := runtime.Start(runtime.Options{})
//	if err != nil { … }
//	defer rt.Close()
//
// A Device names one device of a family ("host:0", "cuda:1") with an immutable
// snapshot of its capabilities. Resources is all that one enrolled device
// offers: its stream pool, the services that are made on first use (provider
// handles, memory), and the reclamation stream. On puts a device into a
// context, where constructors read it; operations run where their operands
// live.
//
// Close takes the services away again, in this order: the global lookup; the
// drain of provider work and streams; provider resources; the device sets.
// What still lives then is reported, each with its kind, size and device.
//
// It does not compute, allocate arrays or order accesses.
//
// Ownership: whoever starts closes; Close is idempotent. Concurrency: every
// function is safe for concurrent use. Cancellation: none here waits, except
// Close, which waits for submitted device work. Errors: ErrNotStarted,
// ErrNoDevice, ErrArgument, ErrClosed, ErrLeak, and the drivers' own.
package runtime
