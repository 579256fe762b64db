/* Handles of cuBLAS and cuSOLVER; driver.h says how calls are made. A result is
   0, a CUresult, or the negative of the library's status. */
#ifndef WEIR_BLAS_H
#define WEIR_BLAS_H

#include <stddef.h>
#include <stdint.h>

struct weir_blas;

/* The element types that cuBLAS multiplies, with the numbers of package dtype. */
enum { weir_float32 = 0, weir_float64 = 1, weir_complex64 = 4, weir_complex128 = 5, weir_float16 = 6, weir_bfloat16 = 7 };

struct weir_gemm {
	int32_t dtype, op_a, op_b; /* operations as in package driver */
	int64_t m, n, k, batch;
	double alpha[2], beta[2];
	uint64_t a, b, c;
	int64_t lda, ldb, ldc;
	int64_t stride_a, stride_b, stride_c;
};

int weir_blas_new(uintptr_t context, size_t workspace, struct weir_blas **blas);
/* Waits for the handle's last product. */
int weir_blas_destroy(uintptr_t context, struct weir_blas *blas);
/* serial is the stream's own number; a stream's handle may be that of one that
   is gone. */
int weir_blas_gemm(uintptr_t context, struct weir_blas *blas, uintptr_t stream, uint64_t serial, const struct weir_gemm *gemm);

int weir_solver_new(uintptr_t context, uintptr_t *solver);
int weir_solver_destroy(uintptr_t context, uintptr_t solver);

#endif
