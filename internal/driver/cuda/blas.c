//go:build cuda

#include "blas.h"

#include "driver.h"

#include <cublas_v2.h>
#include <cuda.h>
#include <stdlib.h>

/*
 * A handle owns a workspace, which its products use on whatever stream they run,
 * and an array of addresses that it fills in stream order. So a product on
 * another stream than the last one waits for that one. The event for it is
 * recorded when the handle moves, not after each product: package cuda keeps the
 * last stream alive until then, and what that stream has been given since only
 * makes the wait longer. A handle that is leased until its operation is done
 * moves when its last stream is idle, and waits for nothing.
 */
struct weir_blas {
	cublasHandle_t handle;
	CUdeviceptr workspace;
	size_t bytes;
	CUevent done;
	int64_t *room; /* for the arguments of grouped products */
	size_t groups; /* that it is for */
};

uintptr_t weir_blas_native(const struct weir_blas *blas) {
	return (uintptr_t)blas->handle;
}

void weir_blas_forget(struct weir_blas *blas) {
	free(blas->room);
	free(blas);
}

static int dismantle(struct weir_blas *blas, CUstream last) {
	int result = CUDA_SUCCESS;
	if (last) {
		result = cuEventRecord(blas->done, last);
		int waited = result == CUDA_SUCCESS ? cuEventSynchronize(blas->done) : cuStreamSynchronize(last);
		if (result == CUDA_SUCCESS)
			result = waited;
	}
	if (blas->done)
		cuEventDestroy(blas->done);
	if (blas->handle)
		cublasDestroy(blas->handle);
	if (blas->workspace)
		cuMemFree(blas->workspace);
	weir_blas_forget(blas);
	return result;
}

static int assemble(size_t workspace, size_t addresses, struct weir_blas *blas) {
	CUresult result = cuEventCreate(&blas->done, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuMemAlloc(&blas->workspace, workspace + addresses);
	if (result != CUDA_SUCCESS)
		return result;
	blas->bytes = workspace;
	cublasStatus_t status = cublasCreate(&blas->handle);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasSetMathMode(blas->handle, CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
	return -(int)status;
}

int weir_blas_new(uintptr_t context, size_t workspace, size_t addresses, struct weir_blas **made, uint64_t *at) {
	struct weir_blas *blas = calloc(1, sizeof *blas);
	if (!blas)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int entered, result = weir_enter(context, &entered);
	if (result != CUDA_SUCCESS) {
		free(blas);
		return result;
	}
	result = assemble(workspace, addresses, blas);
	if (result == 0) {
		*made = blas;
		*at = blas->workspace + workspace;
	} else {
		dismantle(blas, NULL);
	}
	weir_leave(entered);
	return result;
}

int weir_blas_destroy(uintptr_t context, struct weir_blas *blas, uintptr_t last) {
	WEIR_WITH(context, dismantle(blas, (CUstream)last));
}

static int move(struct weir_blas *blas, CUstream stream, CUstream last) {
	CUresult result = CUDA_SUCCESS;
	if (last) {
		result = cuEventRecord(blas->done, last);
		if (result == CUDA_SUCCESS)
			result = cuStreamWaitEvent(stream, blas->done, 0);
	}
	if (result != CUDA_SUCCESS)
		return result;
	/* cublasSetStream takes the handle's workspace away. */
	cublasStatus_t status = cublasSetStream(blas->handle, stream);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasSetWorkspace(blas->handle, (void *)blas->workspace, blas->bytes);
	return -(int)status;
}

int weir_blas_move(uintptr_t context, struct weir_blas *blas, uintptr_t stream, uintptr_t last) {
	WEIR_WITH(context, move(blas, (CUstream)stream, (CUstream)last));
}

static cublasOperation_t operation(int op) {
	static const cublasOperation_t of[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
	return of[op];
}

static cudaDataType_t type_of(const struct weir_gemm *g) {
	switch (g->dtype) {
	case weir_float64:
		return CUDA_R_64F;
	case weir_complex64:
		return CUDA_C_32F;
	case weir_complex128:
		return CUDA_C_64F;
	case weir_float16:
		return CUDA_R_16F;
	case weir_bfloat16:
		return CUDA_R_16BF;
	}
	return CUDA_R_32F;
}

static cublasComputeType_t compute_of(const struct weir_gemm *g) {
	static const cublasComputeType_t of[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_16F};
	switch (g->dtype) {
	case weir_float32:
	case weir_complex64:
		return of[g->compute];
	case weir_float64:
	case weir_complex128:
		return CUBLAS_COMPUTE_64F;
	}
	return CUBLAS_COMPUTE_32F;
}

/* PRODUCT calls the function of one type, for one problem or for a batch. */
#define PRODUCT(name, R, scalars...)                                                                                        \
	do {                                                                                                                \
		const R alpha = {scalars(g->alpha)}, beta = {scalars(g->beta)};                                             \
		if (g->arrays)                                                                                              \
			return cublas##name##Batched_64(h, a, b, g->m, g->n, g->k, &alpha, (const R *const *)g->a, g->lda,  \
				(const R *const *)g->b, g->ldb, &beta, (R *const *)g->c, g->ldc, g->batch);                 \
		if (g->batch == 1)                                                                                          \
			return cublas##name##_v2_64(h, a, b, g->m, g->n, g->k, &alpha, (const R *)g->a, g->lda,             \
				(const R *)g->b, g->ldb, &beta, (R *)g->c, g->ldc);                                         \
		return cublas##name##StridedBatched_64(h, a, b, g->m, g->n, g->k, &alpha, (const R *)g->a, g->lda,          \
			g->stride_a, (const R *)g->b, g->ldb, g->stride_b, &beta, (R *)g->c, g->ldc, g->stride_c, g->batch); \
	} while (0)
#define REAL(z) z[0]
#define COMPLEX(z) z[0], z[1]

/* extended is for products whose elements are not what is computed with. Their
   scalars are of single precision; real ones are read from the first part. */
static cublasStatus_t extended(cublasHandle_t h, cublasOperation_t a, cublasOperation_t b, const struct weir_gemm *g) {
	const cuComplex alpha = {g->alpha[0], g->alpha[1]}, beta = {g->beta[0], g->beta[1]};
	cudaDataType_t type = type_of(g);
	cublasComputeType_t compute = compute_of(g);
	if (g->arrays)
		return cublasGemmBatchedEx_64(h, a, b, g->m, g->n, g->k, &alpha, (const void *const *)g->a, type, g->lda,
			(const void *const *)g->b, type, g->ldb, &beta, (void *const *)g->c, type, g->ldc, g->batch, compute, CUBLAS_GEMM_DEFAULT);
	if (g->batch == 1)
		return cublasGemmEx_64(h, a, b, g->m, g->n, g->k, &alpha, (const void *)g->a, type, g->lda, (const void *)g->b, type, g->ldb,
			&beta, (void *)g->c, type, g->ldc, compute, CUBLAS_GEMM_DEFAULT);
	return cublasGemmStridedBatchedEx_64(h, a, b, g->m, g->n, g->k, &alpha, (const void *)g->a, type, g->lda, g->stride_a,
		(const void *)g->b, type, g->ldb, g->stride_b, &beta, (void *)g->c, type, g->ldc, g->stride_c, g->batch, compute,
		CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t multiply(cublasHandle_t h, const struct weir_gemm *g) {
	cublasOperation_t a = operation(g->op_a), b = operation(g->op_b);
	switch (g->dtype) {
	case weir_float32:
		if (g->compute == weir_exact)
			PRODUCT(Sgemm, float, REAL);
		break;
	case weir_float64:
		PRODUCT(Dgemm, double, REAL);
	case weir_complex64:
		if (g->compute == weir_exact)
			PRODUCT(Cgemm, cuComplex, COMPLEX);
		break;
	case weir_complex128:
		PRODUCT(Zgemm, cuDoubleComplex, COMPLEX);
	}
	return extended(h, a, b, g);
}

int weir_blas_gemm(uintptr_t context, struct weir_blas *blas, const struct weir_gemm *g) {
	WEIR_WITH(context, -(int)multiply(blas->handle, g));
}

/* groupable says whether cuBLAS documents grouped products for g. */
static int groupable(const struct weir_gemm *g) {
	cublasComputeType_t compute = compute_of(g);
	return g->dtype != weir_complex64 && g->dtype != weir_complex128 && compute != CUBLAS_COMPUTE_32F_FAST_16BF && compute != CUBLAS_COMPUTE_32F_FAST_16F;
}

/* grouped is one launch for groups of one type. */
static cublasStatus_t grouped(struct weir_blas *blas, const struct weir_gemm *groups, size_t count) {
	enum { words = 10 }; /* for each group: seven sizes, two scalars, two operations */
	if (count > blas->groups) {
		int64_t *room = realloc(blas->room, count * words * sizeof *room);
		if (!room)
			return CUBLAS_STATUS_ALLOC_FAILED;
		blas->room = room;
		blas->groups = count;
	}
	int64_t *m = blas->room, *n = m + count, *k = n + count, *lda = k + count, *ldb = lda + count, *ldc = ldb + count, *size = ldc + count;
	void *alpha = size + count, *beta = size + 2 * count;
	cublasOperation_t *a = (cublasOperation_t *)(size + 3 * count), *b = a + count;
	for (size_t i = 0; i < count; i++) {
		const struct weir_gemm *g = &groups[i];
		m[i] = g->m, n[i] = g->n, k[i] = g->k, lda[i] = g->lda, ldb[i] = g->ldb, ldc[i] = g->ldc, size[i] = g->batch;
		a[i] = operation(g->op_a), b[i] = operation(g->op_b);
		if (g->dtype == weir_float64)
			((double *)alpha)[i] = g->alpha[0], ((double *)beta)[i] = g->beta[0];
		else
			((float *)alpha)[i] = g->alpha[0], ((float *)beta)[i] = g->beta[0];
	}
	cudaDataType_t type = type_of(groups);
	return cublasGemmGroupedBatchedEx_64(blas->handle, a, b, m, n, k, alpha, (const void *const *)groups->a, type, lda,
		(const void *const *)groups->b, type, ldb, beta, (void *const *)groups->c, type, ldc, count, size, compute_of(groups));
}

/* most_groups is how many groups one call takes. On an H200, cuBLAS 13.1, mixed
   products of 16 to 128 took 0.25 us each in a call of 256 groups, and 8.5 in one of
   1024, no less than one by one. */
enum { most_groups = 256 };

/* A library that lacks the grouped function, which came with CUDA 12.5, answers
   that it does not support it, by the lazy loader. */
static cublasStatus_t multiply_groups(struct weir_blas *blas, const struct weir_gemm *g, size_t count) {
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	for (size_t run; count > 0 && status == CUBLAS_STATUS_SUCCESS; g += run, count -= run) {
		for (run = 1; run < count && run < most_groups && g[run].dtype == g->dtype && compute_of(&g[run]) == compute_of(g); run++)
			;
		status = CUBLAS_STATUS_NOT_SUPPORTED;
		if (run > 1 && groupable(g))
			status = grouped(blas, g, run);
		if (status != CUBLAS_STATUS_NOT_SUPPORTED)
			continue;
		status = CUBLAS_STATUS_SUCCESS;
		for (size_t i = 0; i < run && status == CUBLAS_STATUS_SUCCESS; i++)
			status = multiply(blas->handle, &g[i]);
	}
	return status;
}

int weir_blas_groups(uintptr_t context, struct weir_blas *blas, const struct weir_gemm *groups, size_t count) {
	WEIR_WITH(context, -(int)multiply_groups(blas, groups, count));
}
