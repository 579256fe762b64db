// Package tensor holds arrays on devices and computes with them: views,
// products, contractions and einsum, singular value decompositions, .npy files.
//
// Operations return when their work is submitted; Data, String and the
// functions that write files are the only ones that wait for it, and on CUDA SVD
// and SingularValues. An operation runs where its operands live, and all of them must live on one device; only
// constructors look at the context's device (runtime.On), else the default
// one. Shapes are given as ...int and checked; a wrong one is an error that
// names what was given and what was expected, never a panic.
//
// An Array is a view: a buffer, an offset, a shape and strides. Transposing,
// slicing, permuting, broadcasting and most reshaping copy nothing and share
// the buffer. An array's element type is data, see DType.
//
// # Aliasing
//
// Only functions named …Into write to an existing array. Where their result
// overlaps an operand in memory, the operand is copied first; a result of which
// two elements lie at one address is refused.
//
// # Ownership
//
// Free gives an array's memory back, after the submitted work that uses it;
// every array that shares the memory answers ErrClosed from then on. Scope
// frees all that is made under its context and not kept. What nobody frees, the
// collector does, in its own time.
//
// Concurrency: arrays are immutable views and safe for concurrent use; reading
// and writing one memory at the same time is refused with ErrBusy.
// Cancellation: a context ends the wait for a stream or a result; submitted
// work goes on. Errors: ErrArgument, ErrOutOfMemory, ErrClosed, ErrBusy,
// ErrNotStarted, and the device's own.
package tensor
