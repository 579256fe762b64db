// Package cudaenv computes the environment in which the go command builds with
// the cuda tag: cgo on, Weir's kit and NVIDIA's headers first in the compiler's
// and the linker's path. weir env prints it and the Makefile uses it, so that
// Weir and modules that import it build alike. It needs no cgo itself, sets no
// variable and installs nothing of NVIDIA's.
//
// Headers come from the first of these folders that has cuda.h of CUDA 12 or
// later, cublas_v2.h and cusolverDn.h: CUDA_HOME; what make cuda-sdk installed
// in WEIR_CUDA_SDK; /usr/local/cuda; what make cuda-sdk installed in its usual
// place, weir/cuda-13.0 below the user's cache. What is named comes before what
// is found.
//
// The kit (package kit) comes below build/csrc in Weir's own checkout, else
// below weir in the user's cache, since the module cache cannot be written. It
// is built with go env's CC when it is not there, which takes about a second.
//
// Find reads files, runs go env and perhaps the C compiler; ctx ends them. It
// is safe for concurrent use, also from several processes. Errors are
// *weir.Error: ErrNotSupported where such a build cannot be, and it says what
// was looked for and what to do.
package cudaenv
