//go:build cuda

#include "blas.h"

#include <cublas_v2.h>
#include <cuda.h>
#include <cusolverDn.h>
#include <stdlib.h>

/*
 * A handle owns a workspace, which its products use on whatever stream they run.
 * So a product on another stream than the last one waits for that one; done is
 * recorded after each.
 */
struct weir_blas {
	cublasHandle_t handle;
	CUdeviceptr workspace;
	size_t bytes;
	CUevent done;
	uint64_t serial; /* of the last product's stream, 0 before the first */
};

static int dismantle(struct weir_blas *blas) {
	int result = CUDA_SUCCESS;
	if (blas->done) {
		result = cuEventSynchronize(blas->done);
		cuEventDestroy(blas->done);
	}
	if (blas->handle)
		cublasDestroy(blas->handle);
	if (blas->workspace)
		cuMemFree(blas->workspace);
	free(blas);
	return result;
}

static int assemble(size_t workspace, struct weir_blas *blas) {
	CUresult result = cuEventCreate(&blas->done, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuMemAlloc(&blas->workspace, workspace);
	if (result != CUDA_SUCCESS)
		return result;
	blas->bytes = workspace;
	cublasStatus_t status = cublasCreate(&blas->handle);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasSetMathMode(blas->handle, CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
	return -(int)status;
}

int weir_blas_new(uintptr_t context, size_t workspace, struct weir_blas **made) {
	struct weir_blas *blas = calloc(1, sizeof *blas);
	if (!blas)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int result = cuCtxPushCurrent((CUcontext)context);
	if (result != CUDA_SUCCESS) {
		free(blas);
		return result;
	}
	result = assemble(workspace, blas);
	if (result == 0)
		*made = blas;
	else
		dismantle(blas);
	CUcontext popped;
	cuCtxPopCurrent(&popped);
	return result;
}

int weir_blas_destroy(uintptr_t context, struct weir_blas *blas) {
	int result = cuCtxPushCurrent((CUcontext)context);
	if (result != CUDA_SUCCESS)
		return result;
	result = dismantle(blas);
	CUcontext popped;
	cuCtxPopCurrent(&popped);
	return result;
}

static cublasOperation_t operation(int op) {
	static const cublasOperation_t of[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
	return of[op];
}

/* PRODUCT calls the function of one type, for one problem or for a batch. */
#define PRODUCT(name, R, scalars...)                                                                                        \
	do {                                                                                                                \
		const R alpha = {scalars(g->alpha)}, beta = {scalars(g->beta)};                                             \
		if (g->batch == 1)                                                                                          \
			return cublas##name##_v2_64(h, a, b, g->m, g->n, g->k, &alpha, (const R *)g->a, g->lda,             \
				(const R *)g->b, g->ldb, &beta, (R *)g->c, g->ldc);                                         \
		return cublas##name##StridedBatched_64(h, a, b, g->m, g->n, g->k, &alpha, (const R *)g->a, g->lda,          \
			g->stride_a, (const R *)g->b, g->ldb, g->stride_b, &beta, (R *)g->c, g->ldc, g->stride_c, g->batch); \
	} while (0)
#define REAL(z) z[0]
#define COMPLEX(z) z[0], z[1]

static cublasStatus_t half(cublasHandle_t h, cudaDataType_t type, cublasOperation_t a, cublasOperation_t b, const struct weir_gemm *g) {
	const float alpha = g->alpha[0], beta = g->beta[0];
	if (g->batch == 1)
		return cublasGemmEx_64(h, a, b, g->m, g->n, g->k, &alpha, (const void *)g->a, type, g->lda, (const void *)g->b, type, g->ldb,
			&beta, (void *)g->c, type, g->ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
	return cublasGemmStridedBatchedEx_64(h, a, b, g->m, g->n, g->k, &alpha, (const void *)g->a, type, g->lda, g->stride_a,
		(const void *)g->b, type, g->ldb, g->stride_b, &beta, (void *)g->c, type, g->ldc, g->stride_c, g->batch,
		CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t multiply(cublasHandle_t h, const struct weir_gemm *g) {
	cublasOperation_t a = operation(g->op_a), b = operation(g->op_b);
	switch (g->dtype) {
	case weir_float32:
		PRODUCT(Sgemm, float, REAL);
	case weir_float64:
		PRODUCT(Dgemm, double, REAL);
	case weir_complex64:
		PRODUCT(Cgemm, cuComplex, COMPLEX);
	case weir_complex128:
		PRODUCT(Zgemm, cuDoubleComplex, COMPLEX);
	case weir_float16:
		return half(h, CUDA_R_16F, a, b, g);
	case weir_bfloat16:
		return half(h, CUDA_R_16BF, a, b, g);
	}
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

static int gemm(struct weir_blas *blas, CUstream stream, uint64_t serial, const struct weir_gemm *g) {
	if (serial != blas->serial) {
		/* cublasSetStream takes the handle's workspace away. */
		cublasStatus_t status = cublasSetStream(blas->handle, stream);
		if (status == CUBLAS_STATUS_SUCCESS)
			status = cublasSetWorkspace(blas->handle, (void *)blas->workspace, blas->bytes);
		if (status != CUBLAS_STATUS_SUCCESS)
			return -(int)status;
		CUresult result = cuStreamWaitEvent(stream, blas->done, 0);
		if (result != CUDA_SUCCESS)
			return result;
		blas->serial = serial;
	}
	cublasStatus_t status = multiply(blas->handle, g);
	CUresult result = cuEventRecord(blas->done, stream);
	if (result != CUDA_SUCCESS)
		cuStreamSynchronize(stream); /* nothing else says when the workspace may be reused */
	return status != CUBLAS_STATUS_SUCCESS ? -(int)status : (int)result;
}

int weir_blas_gemm(uintptr_t context, struct weir_blas *blas, uintptr_t stream, uint64_t serial, const struct weir_gemm *g) {
	int result = cuCtxPushCurrent((CUcontext)context);
	if (result != CUDA_SUCCESS)
		return result;
	result = gemm(blas, (CUstream)stream, serial, g);
	CUcontext popped;
	cuCtxPopCurrent(&popped);
	return result;
}

static int solver_new(uintptr_t *solver) { return -(int)cusolverDnCreate((cusolverDnHandle_t *)solver); }

int weir_solver_new(uintptr_t context, uintptr_t *solver) {
	int result = cuCtxPushCurrent((CUcontext)context);
	if (result != CUDA_SUCCESS)
		return result;
	result = solver_new(solver);
	CUcontext popped;
	cuCtxPopCurrent(&popped);
	return result;
}

int weir_solver_destroy(uintptr_t context, uintptr_t solver) {
	int result = cuCtxPushCurrent((CUcontext)context);
	if (result != CUDA_SUCCESS)
		return result;
	result = -(int)cusolverDnDestroy((cusolverDnHandle_t)solver);
	CUcontext popped;
	cuCtxPopCurrent(&popped);
	return result;
}
