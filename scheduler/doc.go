// Package scheduler is tasks, and how Weir waits.
//
// A Task is a goroutine that holds a lane of its scheduler while it runs. Pool
// runs tasks on the lanes of arenas, one arena a device; Debug runs them one at a
// time, in an order that a seed decides. Package async gives tasks values to
// read and write.
//
// Everything scarce (streams, provider handles) queues its callers in a Queue,
// first come first served, and parks them in Park, which gives the lane of a task
// back while it waits. So there is one verb to acquire, for tasks and for plain
// goroutines.
//
// Invariants:
//
//  1. A Queue belongs to whoever owns the scarce thing and is guarded by the
//     owner's mutex; no method of it waits.
//  2. A Waiter is answered once: by Deliver, after it was taken from the queue,
//     or by nobody, if Remove took it out. There is no third outcome, so
//     nothing is lost when a cancellation races with a delivery.
//  3. Delivering never runs the waiter's code: it only makes it runnable.
//  4. A scheduler's mutex is a leaf but for the debug scheduler's list of what was
//     woken: an owner may start tasks and deliver under its own.
//  5. A task whose wait nothing can end is never waited for without end: the debug
//     scheduler answers a Deadlock, Close ends the wait with ErrClosed, and the
//     pool's watchdog, if asked for, ends circles.
//
// What it does not do: it does not preempt, and has no priorities. A task that
// waits other than through Weir keeps its lane.
//
// Cancellation: Park ends with the context's cause. Concurrency: everything may be
// called by several goroutines at once, but Debug's Step and Run by one. Errors:
// ErrClosed and ErrLimit of tasks that are refused, Deadlock, ErrPanic, ErrLeak
// of tasks that Close gives up.
package scheduler
