// Package hostblas is the processor's BLAS: it computes the products of the
// host device with OpenBLAS, loaded at run time without cgo, or else with
// gonum and loops of its own. It does not queue, order or validate anything.
//
// With a library, the four types of BLAS go to its Fortran entry points
// (sgemm_ …), whose arguments are all addresses, so that a call needs no
// reflection and allocates nothing. Without one, float32 and float64 are built
// from gonum's vector kernels, and the complex types run in loops of this
// package, which are faster than gonum's. float16 and bfloat16 are converted to
// float32 block by block; int32 and int64 always run in loops of this package.
//
// Singular values come from the library's LAPACK (sgesdd_ …) where it has one,
// else from gonum's and, of complex matrices, from rotations of this package; see
// SVD.
//
// NaN and infinity behave as BLAS says with every library: alpha = 0 or K = 0
// reads neither A nor B, beta = 0 does not read C, and otherwise every element
// takes part, so that 0·NaN and 0·Inf are NaN. Which parts of a complex element
// become NaN is not specified.
//
// All products of the process share one budget of GOMAXPROCS cores, first come
// first served; plan.go has the rule. How a product is divided depends only on
// its shape and the budget, never on the load, so its result is the same each
// time. A loaded OpenBLAS is set to one thread, but while a product runs alone;
// other users of that library in the process see this setting.
//
// A Library is never released and is safe for concurrent use. A Scratch belongs
// to one goroutine at a time and is given back by Free. Nothing here fails: a
// library that does not load is replaced by gonum and Reason says why, and a
// workspace that the system refuses is replaced by smaller blocks.
package hostblas
