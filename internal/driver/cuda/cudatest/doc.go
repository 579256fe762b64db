// Package cudatest is what tests of the CUDA family need beside package driver:
// streams that are held back, and devices that die and come back. It works on a
// GPU and on the simulated driver, which it finds by its controls
// (csrc/simcuda/weir_sim.h); a GPU's context does not come back in the process
// in which it died.
//
// It is for tests alone. A held stream's flag, a page of pinned memory, is
// kept until the process ends. Everything is safe for concurrent use. Errors are
// *weir.Error.
package cudatest
