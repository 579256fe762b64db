// Package native calls C++ libraries that others write against Weir's headers
// (csrc/native), with Weir's arrays: RAPIDS libraries on a GPU, or plain C++ on the
// host device. docs/native.md is the guide for their authors.
//
// A Session has what such calls need on one device: a handle, a stream of its own and
// a worker thread. Open loads a library and has it check that it was built against
// the same headers. Then there are two ways to call it:
//
//   - Session.Do lends arrays to a function, as views, and Library.Check makes an
//     error of what the call in it answers. That is for short calls: each holds an OS
//     thread.
//   - A Job runs on the session's worker while the caller waits and other goroutines
//     run. That is for calls that can take long.
//
// Outputs whose size only the call knows go into a Deposit.
//
// What it does not do: it compiles nothing, checks no types of C functions (nobody
// can), and does not stop a job: a context that ends is answered when the job has
// returned.
//
// Invariants:
//
//  1. An array is lent once the work queued on it is done, and until the scope or the
//     job ends an access of its buffer is open: so nobody frees it or uses it in a way
//     that excludes this use. At the end the tail of the session's stream is published
//     to its ledger.
//  2. Nothing is waited for while an access is open.
//  3. A view has a pointer only from the runtime library, and none after its scope.
//  4. The handle outlives every scope, job and deposit's memory of its session.
//  5. What a job was given is held until it has returned, whatever else happens.
//
// The runtime library libraftrkt is loaded, by purego and so without cgo, at the first
// use on a kind of device: libraftrkt_host on host devices, libraftrkt on CUDA
// devices, from the folders of WEIR_NATIVE_LIBRARY_PATH or where the system looks.
//
// Ownership: who makes a Session closes it; who makes a Deposit asks for its arrays,
// which are arrays as any, or closes it; what nobody uses any more the collector
// gives back. Concurrency: everything is safe for concurrent use, but a Scope, which
// belongs to its function. Cancellation: contexts end the wait for arrays and for a
// job's turn. Errors: *weir.Error, with who called in Op and a Kind; ErrNotSupported
// of libraries that cannot be loaded, ErrClosed of sessions and arrays that are gone,
// ErrArgument of arguments that a type refuses, ErrOutOfMemory of that kind, ErrBusy,
// ErrCancelled.
package native
