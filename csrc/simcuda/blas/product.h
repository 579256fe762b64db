// Submission of matrix products.
#pragma once

#include "gemm.h"
#include "handle.h"

namespace simcuda::blas {

// Operand is a matrix, or the matrices of a batch: evenly apart, or at the
// addresses in an array in device memory.
struct Operand {
	DevicePtr at;
	std::int64_t leading;
	std::int64_t stride = 0; // in elements
};

// Batch is products of one shape.
struct Batch {
	Types types;
	Transpose op_a, op_b;
	std::int64_t m, n, k;
	const void *alpha, *beta; // where the handle's pointer mode says
	Operand a, b, c;
	std::int64_t count = 1;
	bool arrays = false;
};

// submit gives the products to the handle's stream.
void submit(const char *function, const Handle &handle, const Batch &batch);

// types_for is how a function for one type computes, by the handle's math mode.
Types types_for(const Handle &handle, DataType type);

} // namespace simcuda::blas
