// The arithmetic of matrix products, on memory of the processor.
#pragma once

#include "abi.h"

#include <complex>
#include <cstddef>
#include <cstdint>

namespace simcuda::blas {

// Rounding is how operands are narrowed before they are multiplied.
enum class Rounding { none, tf32, half, brain };

// Types are a product's element types and how it computes.
struct Types {
	DataType ab, c;
	Rounding rounding;
	DataType scalar; // of alpha and beta
};

// types_of refuses (invalid_value or not_supported) what cuBLAS does not offer.
Types types_of(DataType a, DataType b, DataType c, ComputeType compute);

std::size_t bytes_of(DataType type);

// Scalar is alpha or beta.
using Scalar = std::complex<double>;
Scalar read_scalar(DataType type, const void *at);

// Product is C = alpha op(A) op(B) + beta C, column-major: op(A) is m by k,
// op(B) k by n. With beta 0, C is not read; with alpha 0 or k 0, A and B are not.
struct Product {
	Types types;
	Transpose op_a, op_b;
	std::int64_t m, n, k;
	Scalar alpha, beta;
	const void *a, *b;
	void *c;
	std::int64_t lda, ldb, ldc;
};

void multiply(const Product &product);

} // namespace simcuda::blas
