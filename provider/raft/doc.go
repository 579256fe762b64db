// Package raft leases handles of RAFT, NVIDIA's library of primitives for GPUs, and
// submits its operations: products, randomized singular value decompositions,
// reductions of rows and k-selection, of float32 and float64. It is for GPUs alone: on
// a host device Acquire answers an ErrNotSupported, and package tensor computes there
// by other means.
//
// RAFT comes as two libraries that make raft builds, libraftrkt and libweirraft. They
// are loaded at the first use on a GPU, from the folders of WEIR_NATIVE_LIBRARY_PATH or
// where the system's loader looks. Where they are not, Acquire answers an
// ErrNotSupported that says where they were looked for and what builds them; the next
// one looks again.
//
// The order of an operation is: memory; Acquire, which takes a handle, then an idle
// stream; an access scope on that stream; the operation; the scope's End; Release.
// Gemm, Reduce and SelectK submit and return. RandomizedSVD waits for the stream, as
// RAFT does.
//
// It allocates no array and plans nothing from shapes (package tensor does). What
// operations need in between comes from a memory pool that RAFT has on each GPU, beside
// Weir's own: the resources' MemoryLimit does not count it. The pool becomes RMM's
// resource of the device, unless somebody has set another one. A device has one pool of
// handles, by default two, or one if it has one stream; Configure sets another count
// before the first use.
//
// Ownership: Release gives handle and stream back. Concurrency: a lease belongs to one
// goroutine at a time. Errors: ErrStale after a release; the native interface's, of kind
// logic where a description is wrong, and RAFT's own, after which the handle is remade.
package raft
