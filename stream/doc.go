// Package stream hands out the streams of a device and the completions that
// order work between them.
//
// A Stream is a lease of one slot of a Pool: acquired, never made, and given
// back by Release. The slot is leased again only when all work that it was
// given is done (idle → leased → pending → idle), so that unrelated work is
// never queued behind a running kernel. The pool is the throttle: N streams
// bound running and queued operations. Work that follows the last work of a
// stream in any case may be leased that stream before it is done (AcquireAfter).
//
// A Completion is an immutable value that names one recorded place of one
// stream. It may be kept and copied freely; it owns nothing. Waiting for one
// makes a stream wait on the device, never the host, except for
// Completion.Wait.
//
// It does not order accesses to memory (package buffer does), and measures no
// time (that would be another, timing, kind of event).
//
// Ownership: whoever acquired or retained a Stream releases it; a second
// release of the same handle does nothing. Concurrency: everything here is
// safe for concurrent use; goroutines that share a stream each retain a handle,
// and their work is ordered as their calls happened. Cancellation: Acquire and
// Completion.Wait end with their context; submitted work goes on. Errors:
// ErrStale after a release, ErrClosed after Close, the device's own, and that
// of a lost device whose work was waited for.
package stream
