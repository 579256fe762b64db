// Package flow is tensor's operations on values that are written in the future.
//
// A function of this package never fails and never waits for a device: it appends
// one record to the ordered log of ctx's device and answers the value that is to
// be (it waits only for room in a log that is full). A task launches the records in
// that order, each by the function of the same name in package tensor, whose words
// on shapes, element types, precision and rounding hold here too. A value is
// written once its operation was launched, not once it was computed: buffers order
// the device, and Data, on what Get answers, waits for it.
//
//	theta := flow.Einsum(ctx, "isj,jtk->istk", async.Of(a), async.Of(b))
//	v, err := flow.MatMul(ctx, flow.Reshape(ctx, theta, m, n), w).Get(ctx)
//
// Values may be read and written by tasks too (package async). An operation on a
// value that a task is yet to write, or that is to change what a task still reads,
// steps aside until then; those behind it that do not need it go on.
//
// Failures: an operation that cannot be launched poisons what it was to make with
// an *async.Poison that names it and the line that asked for it, and so does all
// that is made of that. Get answers it. A change in place that fails poisons the
// value that it was asked of, and not others that view the same memory.
//
// Cancellation: when ctx ends before an operation was launched, what it was to
// make is poisoned, which matches weir.ErrCancelled. What was launched goes on.
//
// Memory: an array that an operation makes belongs to ctx's scope if it has one
// (tensor.Scope), whose free function then waits until what was asked for under
// it is launched; otherwise it is free when it is garbage (results below 1 MiB of one
// batch by eights, when all are), or by Free. A view that an
// operation here makes shares memory, and operations that read or change it in place
// are in the order of the calls with those that read or change what it views. Get,
// and the Readers and Writers of tasks, are of the one value alone. Views that were
// made elsewhere (async.Of of a view) are values by themselves, and so is each
// async.Of of one array: operations on one of them are in no order with those on
// another, so make one value of an array that is changed in place.
//
// Graphs: Record has a program's operations recorded, and Replay does all of them
// with one launch, on a device that has graphs; where it has none, or where an
// operation cannot be recorded, it runs the program, and Reason says why. What a
// graph makes belongs to the graph, until Close.
//
// Concurrency: everything may be called by several goroutines at once; the order
// of operations is that of their calls.
package flow
