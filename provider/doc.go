// Package provider shares the handles of device libraries (BLAS, solvers):
// scarce, expensive to make, and never usable by two at once.
//
// A Pool owns a fixed set of handles, made at its first use. A Lease is the
// exclusive use of one; it returns when the work that it submitted is done. A
// handle is not tied to a stream or a thread: an Execution takes a handle
// first, then an idle stream, and gives both back together, so that no stream
// waits behind an idle handle and no cycle can form; work that follows other work
// in any case takes both where that ran, if they are free (AcquireAfter). Acquire before any buffer
// access is opened.
//
// The registry is runtime.Use: one pool for each provider and device, made
// lazily, drained before the streams are and destroyed before them.
//
// It knows no operation; packages blas and solver do.
//
// Ownership: whoever acquires releases; a second release does nothing. A handle
// that answered an error is remade before anybody else gets it; while that
// fails, the handle stays away and who waits for it is told. Concurrency:
// pools are safe for concurrent use, one lease belongs to one goroutine at a
// time. Cancellation: Acquire leaves the queue when its context ends. Errors:
// ErrClosed, ErrStale, and the driver's.
package provider
