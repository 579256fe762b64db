// Package buffer owns device memory and orders the work that touches it.
//
// A Buffer is one logical allocation with its own ledger: the completion of its
// latest writer and those of the readers since. An Access is the scope of one
// operation on one stream: it makes the stream wait, on the device, for what
// each operand's ledger demands, yields the operands' addresses, and at End
// publishes one completion to every ledger. So the next operation can be
// submitted at once, on any stream, and the device keeps the order.
//
// The ledger holds what is unfinished; it does not establish causality. Program
// order does: an access that would overlap one that excludes it is refused with
// ErrBusy, never queued.
//
// Memory comes in stream order from the device's pool; blocks below 1 MiB come
// from a cache of size classes over it. A freed block keeps the completions of
// its last users, which become the first entries of its next owner's ledger: so
// freeing and allocating never wait.
//
// Buffers are bytes. Element types, shapes and strides belong to package
// tensor; a view there is a buffer and an offset, and addresses exist only
// inside an Access.
//
// Ownership: Free gives memory back, after the last use on every stream;
// without it the collector does, later, through the reclaimer. Concurrency:
// Buffers and Memory are safe for concurrent use, an Access belongs to one
// goroutine. Cancellation: only HostRead and HostWrite wait, and end with their
// context. Errors: ErrOutOfMemory with what was asked, held and allowed,
// ErrClosed after Free, ErrBusy, ErrArgument.
package buffer
