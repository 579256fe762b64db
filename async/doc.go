// Package async is values that are written in the future, and tasks that read and
// write them.
//
// A Value is read through a Reader and written through a Writer. The order of
// reads and writes of a value is the order in which Read and Write were called,
// on whatever goroutine, and has nothing to do with when tasks run: the first
// write, the reads of it, the second write, and so on, an epoch each. A task,
// started by Go, is given the readers and writers that it needs and lets go of
// them when it ends.
//
// A failure is a value too: a task that fails poisons what it was to write, and
// what is computed from that is poisoned by the same Poison, the first cause. A
// task that handles the error of a poisoned input is no failure. A later write
// clears poison.
//
// A Log is an ordered list of operations that are launched by one task, for
// packages that offer operations on values, such as tensor/flow.
//
// What it does not do: it knows nothing of devices. Of a value that stands for
// device memory, "written" means that the work was submitted; buffers order the
// device.
//
// Ownership: a Reader and a Writer have one owner each. Concurrency: everything
// may be called by several goroutines at once. Waiting: Await, Get, Take and Wait
// wait, and give the lane of a task back meanwhile; nothing else does, but for
// room in a Log that is full. Cancellation: waits end with their context, and
// match weir.ErrCancelled then. Errors: weir.ErrUninitialized, ErrPoisoned,
// ErrCancelled, ErrStale, ErrBusy, ErrDeadlock, as each method says.
package async
