// Package weir is the root of Weir, an asynchronous tensor runtime for Go:
// device tensors whose operations return at once, order themselves on the
// device through completion events, and lower to BLAS, solver and RAFT
// providers. Without a GPU the same program runs on the host device with the
// same meaning.
//
// This package holds only what every other one shares: the error vocabulary.
// Programs start in package runtime and compute in package tensor:
//
//	rt, err := runtime.Start(runtime.Options{})
//	defer rt.Close()
//	a, err := tensor.From(ctx, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
//	c, err := tensor.MatMul(ctx, a, a.T())
//	x, err := tensor.Data[float32](ctx, c)
//
// # Errors
//
// Every error that a call of Weir returns matches at least one sentinel of
// this package under errors.Is, and unwraps under errors.As to *Error, which
// says which operation failed, on which device and stream, and why. Report
// renders an error with all its causes for a person.
//
// # Concurrency
//
// The sentinels are constants in all but name. An *Error is immutable once it
// has been returned.
package weir
