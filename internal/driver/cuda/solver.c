//go:build cuda

#include "solver.h"

#include "driver.h"

#include <cuda.h>
#include <cusolverDn.h>
#include <stdlib.h>

/*
 * A handle owns a workspace, which its work uses on whatever stream it runs. So
 * work on another stream than the last waits for that; done is recorded after
 * each. Host memory that the library asks for is kept as long, since nothing
 * says when the library is through with it.
 */
struct weir_solver {
	cusolverDnHandle_t handle;
	cusolverDnParams_t params;
	CUdeviceptr workspace;
	size_t bytes;
	void *host;
	size_t host_bytes;
	CUevent done;
	uint64_t serial; /* of the last work's stream, 0 before the first */
};

uintptr_t weir_solver_native(const struct weir_solver *solver) {
	return (uintptr_t)solver->handle;
}

void weir_solver_forget(struct weir_solver *solver) {
	free(solver->host);
	free(solver);
}

static int dismantle(struct weir_solver *solver) {
	int result = CUDA_SUCCESS;
	if (solver->done) {
		result = cuEventSynchronize(solver->done);
		cuEventDestroy(solver->done);
	}
	if (solver->params)
		cusolverDnDestroyParams(solver->params);
	if (solver->handle)
		cusolverDnDestroy(solver->handle);
	if (solver->workspace)
		cuMemFree(solver->workspace);
	weir_solver_forget(solver);
	return result;
}

static int assemble(struct weir_solver *solver) {
	CUresult result = cuEventCreate(&solver->done, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	cusolverStatus_t status = cusolverDnCreate(&solver->handle);
	if (status == CUSOLVER_STATUS_SUCCESS)
		status = cusolverDnCreateParams(&solver->params);
	return -(int)status;
}

static int make(struct weir_solver **made) {
	struct weir_solver *solver = calloc(1, sizeof *solver);
	if (!solver)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int result = assemble(solver);
	if (result == 0)
		*made = solver;
	else
		dismantle(solver);
	return result;
}

int weir_solver_new(uintptr_t context, struct weir_solver **made) { WEIR_WITH(context, make(made)); }

int weir_solver_destroy(uintptr_t context, struct weir_solver *solver) { WEIR_WITH(context, dismantle(solver)); }

static int grow(struct weir_solver *solver, size_t bytes) {
	CUresult result = cuEventSynchronize(solver->done);
	if (result != CUDA_SUCCESS)
		return result;
	if (solver->workspace)
		cuMemFree(solver->workspace);
	solver->workspace = 0;
	solver->bytes = 0;
	result = cuMemAlloc(&solver->workspace, bytes);
	if (result == CUDA_SUCCESS)
		solver->bytes = bytes;
	return result;
}

static int reserve(struct weir_solver *solver, size_t bytes, uint64_t *address, size_t *has) {
	int result = bytes > solver->bytes ? grow(solver, bytes) : CUDA_SUCCESS;
	*address = solver->workspace;
	*has = solver->bytes;
	return result;
}

int weir_solver_reserve(uintptr_t context, struct weir_solver *solver, size_t bytes, uint64_t *address, size_t *has) {
	WEIR_WITH(context, reserve(solver, bytes, address, has));
}

static int begin(struct weir_solver *solver, CUstream stream, uint64_t serial) {
	if (serial == solver->serial)
		return CUDA_SUCCESS;
	CUresult result = cuStreamWaitEvent(stream, solver->done, 0);
	if (result != CUDA_SUCCESS)
		return result;
	cusolverStatus_t status = cusolverDnSetStream(solver->handle, stream);
	if (status == CUSOLVER_STATUS_SUCCESS)
		solver->serial = serial;
	return -(int)status;
}

int weir_solver_begin(uintptr_t context, struct weir_solver *solver, uintptr_t stream, uint64_t serial) {
	WEIR_WITH(context, begin(solver, (CUstream)stream, serial));
}

static int end(struct weir_solver *solver, CUstream stream) {
	CUresult result = cuEventRecord(solver->done, stream);
	if (result != CUDA_SUCCESS)
		cuStreamSynchronize(stream); /* nothing else says when the workspace may be reused */
	return result;
}

int weir_solver_end(uintptr_t context, struct weir_solver *solver, uintptr_t stream) {
	WEIR_WITH(context, end(solver, (CUstream)stream));
}

static int read_back(CUstream stream, uint64_t from, size_t bytes, void *to) {
	CUresult result = cuMemcpyDtoHAsync(to, from, bytes, stream);
	CUresult waited = cuStreamSynchronize(stream);
	return result != CUDA_SUCCESS ? result : waited;
}

int weir_solver_read(uintptr_t context, uintptr_t stream, uint64_t from, size_t bytes, void *to) {
	WEIR_WITH(context, read_back((CUstream)stream, from, bytes, to));
}

/* types are the elements and the real numbers of a type of package dtype. */
static void types(int32_t dtype, cudaDataType *element, cudaDataType *real) {
	static const cudaDataType elements[] = {[0] = CUDA_R_32F, [1] = CUDA_R_64F, [4] = CUDA_C_32F, [5] = CUDA_C_64F};
	*element = elements[dtype];
	*real = dtype == 0 || dtype == 4 ? CUDA_R_32F : CUDA_R_64F;
}

static signed char job(int32_t factors) { return "NSA"[factors]; }

static int svd_sizes(struct weir_solver *solver, struct weir_svd *p) {
	cudaDataType element, real;
	types(p->dtype, &element, &real);
	return -(int)cusolverDnXgesvd_bufferSize(solver->handle, solver->params, job(p->factors), job(p->factors), p->m, p->n, element, NULL,
		p->lda, real, NULL, element, NULL, p->ldu, element, NULL, p->ldvh, element, &p->work_bytes, &p->host_bytes);
}

int weir_solver_svd_sizes(uintptr_t context, struct weir_solver *solver, struct weir_svd *svd) { WEIR_WITH(context, svd_sizes(solver, svd)); }

static int svd(struct weir_solver *solver, const struct weir_svd *p) {
	if (p->host_bytes > solver->host_bytes) {
		CUresult result = cuEventSynchronize(solver->done);
		if (result != CUDA_SUCCESS)
			return result;
		free(solver->host);
		solver->host = malloc(p->host_bytes);
		solver->host_bytes = solver->host ? p->host_bytes : 0;
		if (!solver->host)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	cudaDataType element, real;
	types(p->dtype, &element, &real);
	return -(int)cusolverDnXgesvd(solver->handle, solver->params, job(p->factors), job(p->factors), p->m, p->n, element, (void *)p->a,
		p->lda, real, (void *)p->s, element, (void *)p->u, p->ldu, element, (void *)p->vh, p->ldvh, element, (void *)p->work,
		p->work_bytes, solver->host, p->host_bytes, (int *)p->info);
}

int weir_solver_svd(uintptr_t context, struct weir_solver *solver, const struct weir_svd *p) { WEIR_WITH(context, svd(solver, p)); }
