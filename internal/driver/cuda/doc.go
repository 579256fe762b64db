// Package cuda is the family of NVIDIA's GPUs, built with the tag cuda. Its
// binary also starts where there is no driver: then the family has no devices
// and Unavailable says what was looked for and where.
//
// Discovery uses gorgonia.org/cu: devices, names, attributes. Everything that
// needs a context is in the C files here, because cu leaves the choice of the
// current context to a locked thread, has no memory pools, and takes Go slices
// where device addresses go; cu/blas has no stream of its own, and keeps an
// error for ever. Each of their functions selects the device inside the call, so
// goroutines may move between threads.
//
// # Ownership
//
// The primary context is retained when the first object of a device is made,
// and released with the last one; with it go the kernels' module and the pinned
// blocks through which Go slices travel. Pinned memory that a burst of copies
// needed stays until then.
//
// # What waits
//
// Synchronize, CopyOut and the plain Free wait; so do the Destroy of a pool, for
// the device, and of a handle, for its last work. SVD waits for its stream and
// for cuSOLVER, which looks at the matrix on the host. CopyIn waits for the device
// only where src is larger than one staging block (4 MiB): then until all
// but the last blocks have left. Copies that large are not atomic to what other
// goroutines submit to the same stream meanwhile.
//
// # Death
//
// An error that CUDA documents as ending the context is the device's terminal
// error, whichever call meets it. While notifications are pending, the reader
// asks each of their contexts twenty times a second.
//
// Concurrency and errors are those of package driver. Codes and names are the
// driver's or cuBLAS's.
package cuda
