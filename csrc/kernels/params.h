/*
 * What a kernel is given: one structure, passed by value. C++ on the GPU (see
 * kernels.cu), the processor's twins of the kernels, and Go (params.go, which a
 * test compares with this file) all read it.
 *
 * Element types have the numbers of package dtype. Addresses are those of the
 * element with index zero; steps are in bytes and may be zero or negative.
 */
#ifndef WEIR_KERNELS_PARAMS_H
#define WEIR_KERNELS_PARAMS_H

#include <stdint.h>

enum {
	WEIR_MAX_AXES = 32,
	WEIR_BLOCK = 256 /* threads of a block, in every launch */
};

enum weir_dtype {
	WEIR_FLOAT32,
	WEIR_FLOAT64,
	WEIR_INT32,
	WEIR_INT64,
	WEIR_COMPLEX64,
	WEIR_COMPLEX128,
	WEIR_FLOAT16,
	WEIR_BFLOAT16
};

/*
 * Elementwise kernels go through axes 0 to outer-1, the last of them fastest;
 * count is the product of their extents. The sum goes through the further inner
 * axes of operand 1 for each element of operand 0, inner_count of them, with
 * lanes threads (a power of two up to WEIR_BLOCK).
 *
 * Where narrow is set, count and inner_count are below 2^31, and i / extent[k]
 * is (hi32(i * magic[k]) + i) >> shift[k].
 */
struct weir_views {
	uint64_t base[3]; /* of the result, a, b */
	int64_t count, inner_count;
	int64_t extent[WEIR_MAX_AXES];
	int64_t step[3][WEIR_MAX_AXES];
	uint32_t magic[WEIR_MAX_AXES];
	uint32_t shift[WEIR_MAX_AXES];
	double alpha[2], beta[2]; /* real and imaginary part */
	uint64_t value[2];        /* the element of a fill, as it lies in memory */
	int32_t outer, inner;
	int32_t narrow;
	int32_t conj[2]; /* of a, b */
	int32_t from, to; /* element types of a conversion */
	int32_t lanes;
};

/*
 * C = alpha op(A) op(B) + beta C in integers that wrap, column-major, for batch
 * problems; trans reads A or B transposed. Leading dimensions and strides are in
 * elements.
 */
struct weir_product {
	uint64_t a, b, c;
	int64_t m, n, k, batch;
	int64_t lda, ldb, ldc;
	int64_t stride_a, stride_b, stride_c;
	int64_t alpha, beta;
	int32_t trans_a, trans_b;
};

#endif
