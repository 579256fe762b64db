// Package host is the device family of the processor itself: the default
// device, and the reference that every other family agrees with.
//
// A stream is a real asynchronous queue. It holds no goroutine while it is
// empty: the submission that finds it idle starts one, which drains the queue
// and ends; a stream that waits for an event leaves its goroutine too, and the
// event starts it again. So thousands of idle streams cost nothing, and there
// is nothing to stop at the end.
//
// Several devices can be made; they share the processor and differ in
// identity, memory accounting and death, which is what programs for several
// devices need to be tested.
//
// It does not split work over cores: package hostblas gives each product its
// share of them, so that several streams together never oversubscribe.
//
// # Faults
//
// Work that faults (an address outside every allocation, a kernel that
// panics) kills the device, as an illegal address kills a CUDA context. Kill
// does so on request.
//
// Ownership, concurrency and errors are those of package driver.
package host
