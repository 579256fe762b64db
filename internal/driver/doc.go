// Package driver is the one interface that a family of devices implements:
// devices and capabilities, streams, events, stream-ordered memory, copies,
// kernels, notifications, BLAS and solver handles, and the death of a context.
// Package host is the family that is always there; package fault wraps any
// family and makes calls of it fail; package drivertest is the conformance
// suite that every implementation passes.
//
// It does not do policy: pools, ledgers, elided waits, caching and retries are
// above it. Nothing outside this module can import it.
//
// # The contract
//
//  1. Work submitted to one stream runs in submission order; work on different
//     streams runs in any order, and may overlap, except as events order it.
//  2. Submission never waits for device work, except where a method says so,
//     where an operation's first use in the process loads its code, and where a
//     stream has more unfinished work than its device takes (1000 operations on
//     an H200). Arguments are captured by the call and may be reused when it
//     returns.
//  3. Stream.Record captures the stream's tail; Stream.Wait captures the
//     event's latest record at the time of the call. Waits work across the
//     devices of a family. An enqueued wait survives Event.Destroy.
//  4. An event is recorded on streams of its own device, and is not recorded
//     on another stream while its last record is unfinished.
//  5. Pool.Free of a block on stream s lets a later Pool.Alloc on s reuse it at
//     once; any other stream gets it only when that work is known to be done.
//  6. A context that dies is terminal: every later call, every unfinished
//     event and every pending notification answers one error that matches
//     weir.ErrDeviceLost and carries the first cause. Devices of other families
//     go on. So do those of the same one, unless its library ends all of a
//     process at once, as CUDA does: then each of them dies of the same cause.
//  7. A Waker is called once, on a goroutine of the family, with no lock held;
//     it may make driver calls and must not wait.
//
// # Ownership and concurrency
//
// Whoever makes a Stream, Event, Pool or handle destroys it, after the work
// that uses it was submitted; Destroy is idempotent. All methods are safe for
// concurrent use except that one BLAS or Solver handle is used by one
// goroutine at a time.
//
// # Errors
//
// Every method answers nil or an error that is a *weir.Error.
package driver
