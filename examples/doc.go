// Package examples holds numbered programs, each building on the one before:
//
//	01-matmul            start the runtime, make arrays, multiply them
//	02-views-and-einsum  scopes, views that copy nothing, contractions
//	03-npy               operands and results in NumPy's files
//	04-own-kernel        an operation of one's own among Weir's
//	05-flow              ask for a whole computation before any of it is done
//	06-task              a task that submits work of its own
//	07-deadline          give up in time
//	08-two-devices       a pipeline over two devices
//	09-graph             record a computation once and replay it
//
// Run one from the module's root, as in
//
//	go run ./examples/01-matmul
//
// The folder data has the arrays that 03 and 04 read. What each program prints
// is in testdata, and the test holds it.
package examples
