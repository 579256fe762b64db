// Package lazy makes static libraries that stand for CUDA's shared ones, so
// that a program built with the cuda tag names no NVIDIA library to the system
// and starts where there is none. It does not build programs and knows nothing
// of NVIDIA's headers; package kit puts its archives beside them.
//
// An archive (libcuda.a, libcublas.a, libcusolver.a) holds, for each function
// of its list, a trampoline in assembly: one jump through a slot of a table. A
// slot first leads to the loader (c/weir_lazy.c), which on the library's first
// call opens it, fills all slots and jumps again with the arguments untouched.
// Everything is hidden: neither the program's dynamic symbols nor CUDA's own
// libraries see a trampoline. A constructor that fills the tables before main
// was rejected: it makes every start pay for mapping cuBLAS.
//
// The lists are symbols/*.txt. A line is blank, a comment (#), or one of
//
//	soname libcublas.so.13     a name to look for; the first is the best
//	missing 15 NAME            what a function answers that is not there
//	source cuda_init.c         a file of c/ that belongs into the archive
//	cublasSscal_v2             a function
//	cublasF else g             g takes the calls where the library has no cublasF
//	cuInit by f                f takes the calls in any case
//
// A library is searched in the folders of WEIR_CUDA_LIBRARY_PATH, then where
// the system keeps libraries. c/weir_lazy.h is what a program may ask: the file
// that was loaded, why none was, whether it has a function, which one was called
// in vain. Those calls, and the first call of a function from several threads,
// are safe at any time.
//
// Sources is pure; Build runs a C compiler, and its errors carry what the
// compiler said.
package lazy
