// Package fault wraps a family of devices and makes calls of it fail, so that
// what is above the driver can be tested where it matters most: the nth
// allocation is refused, a launch fails, a notification never comes, the
// device dies in the middle.
//
//	plan := &fault.Plan{}
//	family := fault.New(host.New(host.Options{}), plan)
//	plan.FailNth(fault.PoolAlloc, 3, nil) // the third from now on
//
// It does not invent what work computes: a call that is not made to fail is
// the inner family's call. An empty plan changes nothing, which package
// drivertest shows.
//
// # What a failure does
//
// A failing call is not made, so that nothing of it is submitted; its waker is
// not woken. The calls that give something up (Free, FreeHost and every
// Destroy) are made all the same, so that a test of a failed cleanup leaks
// nothing in the inner family; then they answer the failure. Family.Unavailable
// and Device.Err report a state and cannot be made to fail.
//
// # Ownership and concurrency
//
// What the wrapper makes is owned as in package driver; Unwrap answers the
// inner object. Streams and events of another make are handed on as they are.
// A Plan serves one family, is safe for concurrent use, and holds no lock while
// it runs a hook or an inner call.
//
// # Errors
//
// An injected error is a *weir.Error that matches ErrInjected, or is the one
// that the plan was given.
package fault
