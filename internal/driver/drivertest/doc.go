// Package drivertest is the conformance suite of package driver: what it
// states about order, memory, kernels, errors and death is a test here, and
// every implementation runs them all.
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Open: …})
//	}
//
// The suite reads and writes device memory through streams only, so that it
// runs on a GPU as on the host. What a family does not have (a second device,
// stream-ordered pools, a way to die) is skipped with the reason.
//
// It measures no time but that of marks, and does not sleep. That something
// has not happened yet is shown while the stream that holds it back is stalled;
// only a hang is found by a deadline, which turns it into a message. Results
// are compared with naive models, on numbers that every element type holds
// exactly, so that equality is exact.
//
// # Ownership and concurrency
//
// A test destroys what it makes, in the reverse order; the family is the
// harness's to close. Tests run one after the other.
//
// # Errors
//
// Refusals are checked strictly: a *weir.Error whose Op is the interface's and
// method's name, as "Pool.Alloc", and whose Device is the device's name.
package drivertest
