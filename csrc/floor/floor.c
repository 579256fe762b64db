//go:build cuda

#include "floor.h"

#include <cublas_v2.h>
#include <cuda.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A lane is a stream with what its work needs. */
struct lane {
	CUstream stream;
	CUevent done;          /* without timing, recorded after each operation */
	cublasHandle_t handle; /* NULL before the first product */
};

struct floor_gpu {
	CUdevice device;
	CUcontext context;
	CUmemoryPool pool;     /* the device's own, once it was used */
	CUevent before, after; /* with timing */
	int lanes;
	struct lane lane[];
};

/* The most operations in flight. */
enum { flight = 512 };

/* WITH runs an expression with the context current, and answers its value. */
#define WITH(gpu, expression)                                   \
	do {                                                    \
		int result_ = cuCtxPushCurrent((gpu)->context); \
		if (result_ != CUDA_SUCCESS)                    \
			return result_;                         \
		result_ = (int)(expression);                    \
		CUcontext popped_;                              \
		cuCtxPopCurrent(&popped_);                      \
		return result_;                                 \
	} while (0)

/* TRY leaves the function with the first failure. */
#define TRY(call)                     \
	do {                          \
		int tried_ = (call);  \
		if (tried_ != 0)      \
			return tried_; \
	} while (0)

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const char *floor_name(int result) {
	const char *text = NULL;
	if (result < 0)
		text = cublasGetStatusName((cublasStatus_t)-result);
	else
		cuGetErrorName((CUresult)result, &text);
	return text ? text : "";
}

static int lane_open(struct lane *lane) {
	TRY(cuStreamCreateWithPriority(&lane->stream, CU_STREAM_NON_BLOCKING, 0));
	/* An event that the host would sleep for lets only some 55 records be in flight. */
	return cuEventCreate(&lane->done, CU_EVENT_DISABLE_TIMING);
}

static int lane_close(struct lane *lane) {
	int result = CUDA_SUCCESS;
	if (lane->handle)
		result = -(int)cublasDestroy(lane->handle);
	if (lane->done)
		cuEventDestroy(lane->done);
	if (lane->stream)
		cuStreamDestroy(lane->stream);
	return result;
}

static int assemble(struct floor_gpu *gpu) {
	TRY(cuEventCreate(&gpu->before, CU_EVENT_DEFAULT));
	TRY(cuEventCreate(&gpu->after, CU_EVENT_DEFAULT));
	for (int i = 0; i < gpu->lanes; i++)
		TRY(lane_open(&gpu->lane[i]));
	return CUDA_SUCCESS;
}

static int dismantle(struct floor_gpu *gpu) {
	int result = cuCtxSynchronize();
	if (gpu->pool)
		cuMemPoolTrimTo(gpu->pool, 0);
	for (int i = 0; i < gpu->lanes; i++) {
		int closed = lane_close(&gpu->lane[i]);
		result = result ? result : closed;
	}
	if (gpu->before)
		cuEventDestroy(gpu->before);
	if (gpu->after)
		cuEventDestroy(gpu->after);
	return result;
}

static int with_assemble(struct floor_gpu *gpu) { WITH(gpu, assemble(gpu)); }
static int with_dismantle(struct floor_gpu *gpu) { WITH(gpu, dismantle(gpu)); }

int floor_open(int ordinal, int lanes, struct floor_gpu **made) {
	struct floor_gpu *gpu = calloc(1, sizeof *gpu + (size_t)lanes * sizeof gpu->lane[0]);
	if (!gpu)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gpu->lanes = lanes;
	int result = cuDeviceGet(&gpu->device, ordinal);
	if (result == CUDA_SUCCESS)
		result = cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
	if (result != CUDA_SUCCESS) {
		free(gpu);
		return result;
	}
	*made = gpu;
	result = with_assemble(gpu);
	if (result != CUDA_SUCCESS)
		floor_close(gpu);
	return result;
}

int floor_close(struct floor_gpu *gpu) {
	int result = with_dismantle(gpu);
	int released = cuDevicePrimaryCtxRelease(gpu->device);
	free(gpu);
	return result ? result : released;
}

int floor_synchronize(struct floor_gpu *gpu) { WITH(gpu, cuCtxSynchronize()); }

int floor_memory(struct floor_gpu *gpu, size_t *free, size_t *total) { WITH(gpu, cuMemGetInfo(free, total)); }

int floor_alloc(struct floor_gpu *gpu, size_t bytes, uint64_t *address) { WITH(gpu, cuMemAlloc((CUdeviceptr *)address, bytes)); }

int floor_free(struct floor_gpu *gpu, uint64_t address) { WITH(gpu, cuMemFree(address)); }

int floor_alloc_host(struct floor_gpu *gpu, size_t bytes, void **memory) {
	WITH(gpu, cuMemHostAlloc(memory, bytes, CU_MEMHOSTALLOC_PORTABLE));
}

int floor_free_host(struct floor_gpu *gpu, void *memory) { WITH(gpu, cuMemFreeHost(memory)); }

static int handles(struct floor_gpu *gpu, int lanes) {
	for (int i = 0; i < lanes; i++) {
		struct lane *lane = &gpu->lane[i];
		if (lane->handle)
			continue;
		TRY(-(int)cublasCreate(&lane->handle));
		TRY(-(int)cublasSetStream(lane->handle, lane->stream));
	}
	return CUDA_SUCCESS;
}

/* multiply submits C = A·B. cuBLAS is column-major, where row-major C = A·B reads
   as the transposed product, Cᵀ = Bᵀ·Aᵀ. */
static int multiply(struct lane *lane, enum floor_kind kind, int n, uint64_t a, uint64_t b, uint64_t c) {
	cublasHandle_t h = lane->handle;
	const cublasOperation_t as_is = CUBLAS_OP_N;
	const float one = 1, zero = 0;
	const double one_double = 1, zero_double = 0;
	cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
	switch (kind) {
	case floor_single:
		status = cublasSgemm(h, as_is, as_is, n, n, n, &one, (const float *)b, n, (const float *)a, n, &zero, (float *)c, n);
		break;
	case floor_double:
		status = cublasDgemm(h, as_is, as_is, n, n, n, &one_double, (const double *)b, n, (const double *)a, n, &zero_double,
			(double *)c, n);
		break;
	case floor_tf32:
		status = cublasGemmEx(h, as_is, as_is, n, n, n, &one, (const void *)b, CUDA_R_32F, n, (const void *)a, CUDA_R_32F, n, &zero,
			(void *)c, CUDA_R_32F, n, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
		break;
	}
	TRY(-(int)status);
	return cuEventRecord(lane->done, lane->stream);
}

/* measured is the time between the two timing events. */
static int measured(struct floor_gpu *gpu, struct floor_times *times) {
	float milliseconds = 0;
	TRY(cuEventElapsedTime(&milliseconds, gpu->before, gpu->after));
	times->device = (int64_t)(milliseconds * 1e6);
	return CUDA_SUCCESS;
}

/* asked is whether a lane's last product is done, which is of no interest here. */
static int asked(struct lane *lane) {
	int result = cuEventQuery(lane->done);
	return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

/* chain puts product i on lane i, in turn. With several it waits for the product
   before, and asks first whether the lane is idle, as a pool of streams does. */
static int chain(struct floor_gpu *gpu, enum floor_kind kind, int n, uint64_t x, uint64_t b, const uint64_t *turns, int lanes, int count,
	struct floor_times *times) {
	struct lane *lane = &gpu->lane[0];
	TRY(handles(gpu, lanes));
	TRY(cuEventRecord(gpu->before, lane->stream));
	int64_t start = now();
	for (int i = 0; i < count; i++) {
		struct lane *last = lane;
		lane = &gpu->lane[i % lanes];
		if (lane != last) {
			TRY(asked(lane));
			TRY(cuStreamWaitEvent(lane->stream, last->done, 0));
		}
		TRY(multiply(lane, kind, n, x, b, turns[i % 2]));
		x = turns[i % 2];
	}
	times->submit = now() - start;
	TRY(cuEventRecord(gpu->after, lane->stream));
	TRY(cuStreamSynchronize(lane->stream));
	times->done = now() - start;
	return measured(gpu, times);
}

int floor_chain(struct floor_gpu *gpu, enum floor_kind kind, int n, uint64_t x, uint64_t b, const uint64_t *turns, int lanes, int count,
	struct floor_times *times) {
	WITH(gpu, chain(gpu, kind, n, x, b, turns, lanes, count, times));
}

/* burst submits products, of which number i goes to lane i and to result i, both
   in turn. A result that another lane wrote in this burst is waited for. */
static int burst_of(struct floor_gpu *gpu, enum floor_kind kind, int n, uint64_t a, uint64_t b, const uint64_t *results, int result_count,
	int lanes, int count) {
	for (int i = 0; i < count; i++) {
		struct lane *lane = &gpu->lane[i % lanes];
		if (i >= result_count) {
			struct lane *writer = &gpu->lane[(i - result_count) % lanes];
			if (writer != lane)
				TRY(cuStreamWaitEvent(lane->stream, writer->done, 0));
		}
		TRY(multiply(lane, kind, n, a, b, results[i % result_count]));
	}
	return CUDA_SUCCESS;
}

static int products(struct floor_gpu *gpu, enum floor_kind kind, int n, uint64_t a, uint64_t b, const uint64_t *results, int result_count,
	int lanes, int64_t count, int burst, struct floor_times *times) {
	TRY(handles(gpu, lanes));
	for (; count > 0; count -= burst) {
		int64_t start = now();
		TRY(burst_of(gpu, kind, n, a, b, results, result_count, lanes, count < burst ? (int)count : burst));
		times->submit += now() - start;
		for (int i = 0; i < lanes; i++)
			TRY(cuStreamSynchronize(gpu->lane[i].stream));
		times->done += now() - start;
	}
	return CUDA_SUCCESS;
}

int floor_products(struct floor_gpu *gpu, enum floor_kind kind, int n, uint64_t a, uint64_t b, const uint64_t *results, int result_count,
	int lanes, int64_t count, int burst, struct floor_times *times) {
	WITH(gpu, products(gpu, kind, n, a, b, results, result_count, lanes, count, burst, times));
}

static int copied(struct floor_gpu *gpu, int64_t start, struct floor_times *times) {
	struct lane *lane = &gpu->lane[0];
	times->submit = now() - start;
	TRY(cuEventRecord(gpu->after, lane->stream));
	TRY(cuStreamSynchronize(lane->stream));
	times->done = now() - start;
	return measured(gpu, times);
}

static int copy_in(struct floor_gpu *gpu, uint64_t dst, const void *src, size_t bytes, struct floor_times *times) {
	struct lane *lane = &gpu->lane[0];
	TRY(cuEventRecord(gpu->before, lane->stream));
	int64_t start = now();
	TRY(cuMemcpyHtoDAsync(dst, src, bytes, lane->stream));
	return copied(gpu, start, times);
}

int floor_copy_in(struct floor_gpu *gpu, uint64_t dst, const void *src, size_t bytes, struct floor_times *times) {
	WITH(gpu, copy_in(gpu, dst, src, bytes, times));
}

static int copy_out(struct floor_gpu *gpu, void *dst, uint64_t src, size_t bytes, struct floor_times *times) {
	struct lane *lane = &gpu->lane[0];
	TRY(cuEventRecord(gpu->before, lane->stream));
	int64_t start = now();
	TRY(cuMemcpyDtoHAsync(dst, src, bytes, lane->stream));
	return copied(gpu, start, times);
}

int floor_copy_out(struct floor_gpu *gpu, void *dst, uint64_t src, size_t bytes, struct floor_times *times) {
	WITH(gpu, copy_out(gpu, dst, src, bytes, times));
}

/* pool lets the device's own pool keep what it has: left alone it gives all back
   whenever the device is waited for, and takes it again. */
static int pool(struct floor_gpu *gpu) {
	cuuint64_t all = UINT64_MAX;
	if (gpu->pool)
		return CUDA_SUCCESS;
	TRY(cuDeviceGetDefaultMemPool(&gpu->pool, gpu->device));
	return cuMemPoolSetAttribute(gpu->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
}

static void CUDA_CB arrive(void *count) { atomic_fetch_add((atomic_llong *)count, 1); }

void floor_nothing(void) {}

static void (*volatile nothing)(void) = floor_nothing; /* so that the call is made */

static int call_once(struct floor_gpu *gpu, enum floor_call call, atomic_llong *arrived) {
	struct lane *lane = &gpu->lane[0];
	CUevent event;
	CUdeviceptr block;
	switch (call) {
	case floor_record:
		return cuEventRecord(lane->done, lane->stream);
	case floor_wait:
		return cuStreamWaitEvent(gpu->lane[gpu->lanes - 1].stream, lane->done, 0);
	case floor_query_event:
		return cuEventQuery(lane->done);
	case floor_query_stream:
		return cuStreamQuery(lane->stream);
	case floor_event_pair:
		TRY(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
		return cuEventDestroy(event);
	case floor_memory_pair:
		TRY(cuMemAllocAsync(&block, 1024, lane->stream));
		return cuMemFreeAsync(block, lane->stream);
	case floor_block:
		TRY(cuMemAllocAsync(&block, 1024, lane->stream));
		TRY(cuEventRecord(lane->done, lane->stream));
		return cuMemFreeAsync(block, lane->stream);
	case floor_host_function:
		return cuLaunchHostFunc(lane->stream, arrive, arrived);
	case floor_empty:
		nothing();
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static int calls(struct floor_gpu *gpu, enum floor_call call, int64_t count, int64_t *spent) {
	atomic_llong arrived = 0;
	const int64_t all = count;
	const int each = flight / 4; /* a call of these is up to three operations */
	if (call == floor_memory_pair || call == floor_block)
		TRY(pool(gpu));
	while (count > 0) {
		int64_t start = now();
		for (int i = 0; i < each && count > 0; i++, count--)
			TRY(call_once(gpu, call, &arrived));
		*spent += now() - start;
		TRY(cuCtxSynchronize());
	}
	return call == floor_host_function && atomic_load(&arrived) != all ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

int floor_calls(struct floor_gpu *gpu, enum floor_call call, int64_t count, int64_t *spent) {
	WITH(gpu, calls(gpu, call, count, spent));
}

int floor_start(int ordinal, int lanes, int64_t *spent) {
	int64_t start = now();
	struct floor_gpu *gpu;
	TRY(floor_open(ordinal, lanes, &gpu));
	TRY(floor_close(gpu));
	*spent = now() - start;
	return CUDA_SUCCESS;
}

/* A batch is products of n×n matrices of float, of which number i lies i·n·n
   elements behind the first. */
struct floor_batch {
	struct floor_gpu *gpu;
	int n, count;
	uint64_t a, b, c;
	uint64_t *host;     /* page-locked: the addresses of all a, then b, then c */
	CUdeviceptr arrays; /* the same on the device */
};

static uint64_t matrix_bytes(const struct floor_batch *batch) { return (uint64_t)batch->n * batch->n * sizeof(float); }

static size_t array_bytes(const struct floor_batch *batch) { return (size_t)batch->count * sizeof(uint64_t); }

static void list_addresses(struct floor_batch *batch) {
	const uint64_t first[3] = {batch->a, batch->b, batch->c};
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < batch->count; i++)
			batch->host[k * batch->count + i] = first[k] + i * matrix_bytes(batch);
}

static int copy_addresses(struct floor_batch *batch) {
	return cuMemcpyHtoDAsync(batch->arrays, batch->host, 3 * array_bytes(batch), batch->gpu->lane[0].stream);
}

static int batch_ready(struct floor_batch *batch) {
	TRY(handles(batch->gpu, 1));
	TRY(cuMemHostAlloc((void **)&batch->host, 3 * array_bytes(batch), CU_MEMHOSTALLOC_PORTABLE));
	TRY(cuMemAlloc(&batch->arrays, 3 * array_bytes(batch)));
	list_addresses(batch);
	TRY(copy_addresses(batch));
	return cuStreamSynchronize(batch->gpu->lane[0].stream);
}

static int batch_free(struct floor_batch *batch) {
	int result = CUDA_SUCCESS;
	if (batch->arrays)
		result = cuMemFree(batch->arrays);
	if (batch->host)
		cuMemFreeHost(batch->host);
	return result;
}

static int with_batch_ready(struct floor_batch *batch) { WITH(batch->gpu, batch_ready(batch)); }
static int with_batch_free(struct floor_batch *batch) { WITH(batch->gpu, batch_free(batch)); }

int floor_batch_open(struct floor_gpu *gpu, int n, uint64_t a, uint64_t b, uint64_t c, int count, struct floor_batch **made) {
	struct floor_batch *batch = calloc(1, sizeof *batch);
	if (!batch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*batch = (struct floor_batch){.gpu = gpu, .n = n, .count = count, .a = a, .b = b, .c = c};
	int result = with_batch_ready(batch);
	if (result == 0)
		*made = batch;
	else
		floor_batch_close(batch);
	return result;
}

int floor_batch_close(struct floor_batch *batch) {
	int result = with_batch_free(batch);
	free(batch);
	return result;
}

static int batch_submit(struct floor_batch *batch, enum floor_way way) {
	cublasHandle_t h = batch->gpu->lane[0].handle;
	const cublasOperation_t as_is = CUBLAS_OP_N;
	const int n = batch->n, count = batch->count;
	const long long stride = (long long)n * n;
	const float one = 1, zero = 0;
	if (way == floor_strided)
		return -(int)cublasSgemmStridedBatched(h, as_is, as_is, n, n, n, &one, (const float *)batch->b, n, stride, (const float *)batch->a, n,
			stride, &zero, (float *)batch->c, n, stride, count);
	if (way == floor_copied_pointers) {
		list_addresses(batch);
		TRY(copy_addresses(batch));
	}
	const CUdeviceptr a = batch->arrays, b = a + array_bytes(batch), c = b + array_bytes(batch);
	return -(int)cublasSgemmBatched(h, as_is, as_is, n, n, n, &one, (const float *const *)b, n, (const float *const *)a, n, &zero,
		(float *const *)c, n, count);
}

static int batch_run(struct floor_batch *batch, enum floor_way way, struct floor_times *times) {
	int64_t start = now();
	TRY(batch_submit(batch, way));
	times->submit = now() - start;
	TRY(cuStreamSynchronize(batch->gpu->lane[0].stream));
	times->done = now() - start;
	return CUDA_SUCCESS;
}

int floor_batch_run(struct floor_batch *batch, enum floor_way way, struct floor_times *times) {
	WITH(batch->gpu, batch_run(batch, way, times));
}

/* A program is products, of which number i goes to lane i, in turn. */
struct floor_program {
	struct floor_gpu *gpu;
	int count, lanes;
	struct floor_step *step;
	int32_t *list;     /* which steps the steps wait for */
	CUevent *finished; /* of each step that another lane waits for; else NULL */
	CUevent fork;      /* of the capture's first lane */
	CUgraphExec graph; /* NULL before the first replay */
};

static int program_ready(struct floor_program *program) {
	TRY(handles(program->gpu, program->lanes));
	TRY(cuEventCreate(&program->fork, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < program->count; i++) {
		const struct floor_step *step = &program->step[i];
		for (int w = 0; w < step->waits; w++) {
			const int before = program->list[step->first + w];
			if (before % program->lanes != i % program->lanes && !program->finished[before])
				TRY(cuEventCreate(&program->finished[before], CU_EVENT_DISABLE_TIMING));
		}
	}
	return CUDA_SUCCESS;
}

static int program_free(struct floor_program *program) {
	int result = CUDA_SUCCESS;
	if (program->graph)
		result = cuGraphExecDestroy(program->graph);
	for (int i = 0; i < program->count; i++)
		if (program->finished[i])
			cuEventDestroy(program->finished[i]);
	if (program->fork)
		cuEventDestroy(program->fork);
	return result;
}

static int with_program_ready(struct floor_program *program) { WITH(program->gpu, program_ready(program)); }
static int with_program_free(struct floor_program *program) { WITH(program->gpu, program_free(program)); }

static void *duplicate(const void *from, size_t bytes) {
	void *to = malloc(bytes ? bytes : 1);
	return to && bytes ? memcpy(to, from, bytes) : to;
}

static void program_forget(struct floor_program *program) {
	free(program->step);
	free(program->list);
	free(program->finished);
	free(program);
}

int floor_program_open(struct floor_gpu *gpu, const struct floor_step *steps, int count, const int32_t *list, int listed, int lanes,
	struct floor_program **made) {
	struct floor_program *program = calloc(1, sizeof *program);
	if (!program)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*program = (struct floor_program){.gpu = gpu, .count = count, .lanes = lanes};
	program->step = duplicate(steps, (size_t)count * sizeof *steps);
	program->list = duplicate(list, (size_t)listed * sizeof *list);
	program->finished = calloc((size_t)count, sizeof *program->finished);
	if (!program->step || !program->list || !program->finished) {
		program_forget(program);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	int result = with_program_ready(program);
	if (result == 0)
		*made = program;
	else
		floor_program_close(program);
	return result;
}

int floor_program_close(struct floor_program *program) {
	int result = with_program_free(program);
	program_forget(program);
	return result;
}

static int program_submit(struct floor_program *program) {
	const cublasOperation_t as_is = CUBLAS_OP_N;
	const float one = 1, zero = 0;
	for (int i = 0; i < program->count; i++) {
		const struct floor_step *s = &program->step[i];
		struct lane *lane = &program->gpu->lane[i % program->lanes];
		for (int w = 0; w < s->waits; w++) {
			const int before = program->list[s->first + w];
			if (before % program->lanes != i % program->lanes)
				TRY(cuStreamWaitEvent(lane->stream, program->finished[before], 0));
		}
		TRY(-(int)cublasSgemm(lane->handle, as_is, as_is, s->n, s->m, s->k, &one, (const float *)s->b, s->n, (const float *)s->a, s->k,
			&zero, (float *)s->c, s->n));
		if (program->finished[i])
			TRY(cuEventRecord(program->finished[i], lane->stream));
	}
	return CUDA_SUCCESS;
}

static int program_run(struct floor_program *program, struct floor_times *times) {
	int64_t start = now();
	TRY(program_submit(program));
	times->submit = now() - start;
	for (int i = 0; i < program->lanes; i++)
		TRY(cuStreamSynchronize(program->gpu->lane[i].stream));
	times->done = now() - start;
	return CUDA_SUCCESS;
}

int floor_program_run(struct floor_program *program, struct floor_times *times) { WITH(program->gpu, program_run(program, times)); }

/* captured submits the program to capturing lanes, which the first one forks into
   and joins. */
static int captured(struct floor_program *program) {
	struct lane *lane = program->gpu->lane;
	TRY(cuEventRecord(program->fork, lane[0].stream));
	for (int i = 1; i < program->lanes; i++)
		TRY(cuStreamWaitEvent(lane[i].stream, program->fork, 0));
	TRY(program_submit(program));
	for (int i = 1; i < program->lanes; i++) {
		TRY(cuEventRecord(lane[i].done, lane[i].stream));
		TRY(cuStreamWaitEvent(lane[0].stream, lane[i].done, 0));
	}
	return CUDA_SUCCESS;
}

/* capture runs the program once before, so that the library is loaded. */
static int capture(struct floor_program *program) {
	struct floor_times times;
	CUgraph graph;
	CUstream origin = program->gpu->lane[0].stream;
	TRY(program_run(program, &times));
	TRY(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
	int result = captured(program);
	int ended = cuStreamEndCapture(origin, &graph);
	TRY(result);
	TRY(ended);
	result = cuGraphInstantiate(&program->graph, graph, 0);
	cuGraphDestroy(graph);
	return result;
}

static int program_replay(struct floor_program *program, int64_t count, struct floor_times *times) {
	CUstream stream = program->gpu->lane[0].stream;
	if (!program->graph)
		TRY(capture(program));
	int64_t start = now();
	for (int64_t i = 0; i < count; i++)
		TRY(cuGraphLaunch(program->graph, stream));
	times->submit = now() - start;
	TRY(cuStreamSynchronize(stream));
	times->done = now() - start;
	return CUDA_SUCCESS;
}

int floor_program_replay(struct floor_program *program, int64_t count, struct floor_times *times) {
	WITH(program->gpu, program_replay(program, count, times));
}
