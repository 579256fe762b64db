/* Handles of cuBLAS; driver.h says how calls are made. A result is
   0, a CUresult, or the negative of the library's status. */
#ifndef WEIR_BLAS_H
#define WEIR_BLAS_H

#include <stddef.h>
#include <stdint.h>

struct weir_blas;

/* The element types that cuBLAS multiplies, with the numbers of package dtype. */
enum { weir_float32 = 0, weir_float64 = 1, weir_complex64 = 4, weir_complex128 = 5, weir_float16 = 6, weir_bfloat16 = 7 };

/* Compute modes as in package driver. */
enum { weir_exact = 0, weir_tf32 = 1, weir_bf16 = 2, weir_fp16 = 3 };

struct weir_gemm {
	int32_t dtype, compute, op_a, op_b; /* operations as in package driver */
	int32_t arrays; /* a, b and c are arrays of batch addresses, in device memory */
	int64_t m, n, k, batch;
	double alpha[2], beta[2];
	uint64_t a, b, c;
	int64_t lda, ldb, ldc;
	int64_t stride_a, stride_b, stride_c;
};

/* The handle has workspace bytes for the library, and addresses bytes of device
   memory, at *at, for what its products find addresses in. */
int weir_blas_new(uintptr_t context, size_t workspace, size_t addresses, struct weir_blas **blas, uint64_t *at);
/* The library's own handle. */
uintptr_t weir_blas_native(const struct weir_blas *blas);
/* Waits for the handle's last product, which was on last, 0 if there was none. */
int weir_blas_destroy(uintptr_t context, struct weir_blas *blas, uintptr_t last);
/* For a handle whose context is dead: frees what is not the library's, which does
   not say that its handles can be destroyed then. */
void weir_blas_forget(struct weir_blas *blas);
/* Later products are on stream, behind what last, if not 0, has been given. */
int weir_blas_move(uintptr_t context, struct weir_blas *blas, uintptr_t stream, uintptr_t last);
int weir_blas_gemm(uintptr_t context, struct weir_blas *blas, const struct weir_gemm *gemm);
/* One launch for successive groups of one type where the library can, else one
   for each. The groups have arrays, which follow each other in memory. */
int weir_blas_groups(uintptr_t context, struct weir_blas *blas, const struct weir_gemm *groups, size_t count);

#endif
