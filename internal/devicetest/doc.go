// Package devicetest is the contract of the layers above the driver, for every
// device family: what runtime, stream, provider and buffer state about pools,
// ledgers, leases, memory and death is a test here that runs on the host device,
// on the simulated driver and on a GPU.
//
//	devicetest.Run(t, devicetest.Harness{Families: …, Stall: …})
//
// It leaves to package drivertest what the driver's own calls do, and to the
// packages themselves what needs Go code in a stream or a bubble of its own.
//
// Order is shown by data: what a stream was to wait for is stalled, the work
// behind it is found unfinished, and after the release the numbers say which
// came first. No test measures time or sleeps; a deadline only turns a hang into
// a message. What a GPU punishes is left alone: no more than about two hundred
// operations stand behind a stall, and nothing that waits for the device (a
// first use that loads code, a new handle, a plain free) is called under one.
//
// # Ownership and concurrency
//
// A test gives back what it makes, in the reverse order, once it has released
// every stall; the families are the harness's. Tests run one after the other.
//
// # Errors
//
// Messages are compared whole, with the device's name in its place.
package devicetest
