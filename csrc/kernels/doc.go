// Package kernels holds Weir's GPU kernels: copies with every conversion,
// products, sums, fills and scaled additions of strided views, and products of
// integer matrices, which BLAS has not.
//
// kernels.cu is compiled by build.sh (make kernels) into kernels.fatbin, which
// is embedded, so that a user of Weir needs no nvcc. A test says when the binary
// is older than its sources. The same source compiles as C++: then each kernel
// is a function that does the whole launch on the processor (twins.h), which is
// what the simulated driver of csrc/simcuda runs; so both have one meaning.
//
// A kernel has one parameter, Views or Product, which are the Go side of
// params.h. The package loads and launches nothing: internal/driver/cuda does.
// It plans no views either; there, axes are dropped and merged before they come
// here.
//
// # What is rounded how
//
// Conversions round once, to nearest and ties to even. float16 and bfloat16 are
// computed in float32. Sums have twice the precision of the elements, at most
// float64, and are added up as a tree whose form depends on the shape alone, so
// that equal launches give equal bits. Products and sums of products may be fused,
// as the GPU does by default.
//
// Everything here is immutable.
package kernels
