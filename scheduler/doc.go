// Package scheduler is how Weir waits. Everything scarce (streams, provider
// handles) queues its callers in a Queue, first come first served, and parks
// them in Park, which gives the lane of a task back while it waits.
//
// Invariants:
//
//  1. A Queue belongs to whoever owns the scarce thing and is guarded by the
//     owner's mutex; no method of it waits.
//  2. A Waiter is answered once: by Deliver, after it was taken from the queue,
//     or by nobody, if Remove took it out. There is no third outcome, so
//     nothing is lost when a cancellation races with a delivery.
//  3. Delivering never runs the waiter's code: it only makes it runnable.
//
// It does not start goroutines. The task schedulers themselves come with
// package async.
//
// Cancellation: Park ends with the context's cause. Concurrency: as the
// invariants say. Errors: none of its own.
package scheduler
