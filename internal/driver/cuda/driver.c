//go:build cuda

#include "driver.h"

#include <cuda.h>
#include <time.h>

/* What weir_enter made this thread's current context and left so, and how many
   selections are on top of it, which are others' to use. */
static __thread CUcontext ours;
static __thread int selections;

int weir_enter(uintptr_t context, int *entered) {
	CUcontext current = NULL;
	*entered = 0;
	CUresult result = cuCtxGetCurrent(&current);
	if (result == CUDA_SUCCESS && current == (CUcontext)context)
		return CUDA_SUCCESS;
	if (result == CUDA_SUCCESS && selections == 0 && (!current || current == ours)) {
		result = cuCtxSetCurrent((CUcontext)context);
		ours = result == CUDA_SUCCESS ? (CUcontext)context : NULL;
		return result;
	}
	result = cuCtxPushCurrent((CUcontext)context);
	*entered = result == CUDA_SUCCESS;
	return result;
}

void weir_leave(int entered) {
	CUcontext popped;
	if (entered)
		cuCtxPopCurrent(&popped);
}

const char *weir_error_name(int code) {
	const char *text = NULL;
	return cuGetErrorName((CUresult)code, &text) == CUDA_SUCCESS && text ? text : "";
}

const char *weir_error_text(int code) {
	const char *text = NULL;
	return cuGetErrorString((CUresult)code, &text) == CUDA_SUCCESS && text ? text : "";
}

static CUresult stream_new(int priority, uintptr_t *stream) {
	return cuStreamCreateWithPriority((CUstream *)stream, CU_STREAM_NON_BLOCKING, priority);
}

int weir_context_open(int device, uintptr_t *context, uintptr_t *probe) {
	CUcontext made;
	CUresult result = cuDevicePrimaryCtxRetain(&made, device);
	if (result != CUDA_SUCCESS)
		return result;
	result = weir_stream_new((uintptr_t)made, 0, probe);
	if (result != CUDA_SUCCESS)
		cuDevicePrimaryCtxRelease(device);
	*context = (uintptr_t)made;
	return result;
}

int weir_context_close(int device, uintptr_t context, uintptr_t probe) {
	weir_stream_destroy(context, probe);
	return cuDevicePrimaryCtxRelease(device);
}

int weir_context_synchronize(uintptr_t context) { WEIR_WITH(context, cuCtxSynchronize()); }

int weir_context_push(uintptr_t context) {
	CUresult result = cuCtxPushCurrent((CUcontext)context);
	if (result == CUDA_SUCCESS)
		selections++;
	return result;
}

int weir_context_pop(void) {
	CUcontext popped;
	selections--;
	return cuCtxPopCurrent(&popped);
}

int weir_memory_info(uintptr_t context, size_t *free, size_t *total) { WEIR_WITH(context, cuMemGetInfo(free, total)); }

int weir_stream_new(uintptr_t context, int priority, uintptr_t *stream) { WEIR_WITH(context, stream_new(priority, stream)); }

int weir_stream_destroy(uintptr_t context, uintptr_t stream) { WEIR_WITH(context, cuStreamDestroy((CUstream)stream)); }

int weir_stream_query(uintptr_t context, uintptr_t stream) { WEIR_WITH(context, cuStreamQuery((CUstream)stream)); }

static int64_t nanoseconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Waits by asking: all the time for half a millisecond, since to sleep costs 60 us
   and more, then in steps of a 64th of what it waited, so that a wait is late by
   so much at most. After limit ns it gives up with CUDA_ERROR_NOT_READY. An event
   that lets the driver put the waiter to sleep (CU_EVENT_BLOCKING_SYNC) is no
   alternative: on an H200 a stream takes 55 unfinished records of such events, and
   then submission waits. Nor is the driver's own wait for other events, which keeps
   a core busy to the end. */
static CUresult wait_event(CUevent event, int64_t limit) {
	enum { patience = 500 * 1000, shortest = 20 * 1000, longest = 1000 * 1000 }; /* ns */
	CUresult result = cuEventQuery(event);
	int64_t began = result == CUDA_ERROR_NOT_READY && limit ? nanoseconds() : 0, waited = 0;
	while (result == CUDA_ERROR_NOT_READY && waited < limit) {
		if (waited >= patience) {
			int64_t step = waited / 64;
			struct timespec pause = {.tv_nsec = step < shortest ? shortest : step > longest ? longest : step};
			nanosleep(&pause, NULL);
		}
		result = cuEventQuery(event);
		waited = nanoseconds() - began;
	}
	/* It returns at once, and is where memory pools trim themselves. */
	return result == CUDA_SUCCESS ? cuEventSynchronize(event) : result;
}

/* The stream may notice its end a moment after the event; or later work has come. */
static CUresult noticed(CUstream stream) {
	enum { tries = 64 };
	CUresult result = CUDA_ERROR_NOT_READY;
	for (int i = 0; i < tries && result == CUDA_ERROR_NOT_READY; i++)
		result = cuStreamQuery(stream);
	return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

int weir_stream_noticed(uintptr_t context, uintptr_t stream) { WEIR_WITH(context, noticed((CUstream)stream)); }

static CUresult settle(CUstream stream) {
	CUresult result = cuStreamQuery(stream);
	return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

int weir_stream_settle(uintptr_t context, uintptr_t stream) { WEIR_WITH(context, settle((CUstream)stream)); }

int weir_event_new(uintptr_t context, uintptr_t *event) {
	WEIR_WITH(context, cuEventCreate((CUevent *)event, CU_EVENT_DISABLE_TIMING));
}

int weir_event_destroy(uintptr_t context, uintptr_t event) { WEIR_WITH(context, cuEventDestroy((CUevent)event)); }

int weir_event_query(uintptr_t context, uintptr_t event) { WEIR_WITH(context, cuEventQuery((CUevent)event)); }

int weir_event_wait(uintptr_t context, uintptr_t event, int64_t limit) { WEIR_WITH(context, wait_event((CUevent)event, limit)); }

static int record(CUstream stream, CUevent event, int moves) {
	if (moves) {
		CUresult result = cuEventQuery(event);
		if (result != CUDA_SUCCESS)
			return result == CUDA_ERROR_NOT_READY ? weir_unfinished : (int)result;
	}
	return cuEventRecord(event, stream);
}

int weir_record(uintptr_t context, uintptr_t stream, uintptr_t event, int moves) {
	WEIR_WITH(context, record((CUstream)stream, (CUevent)event, moves));
}

int weir_wait(uintptr_t context, uintptr_t stream, uintptr_t event) {
	WEIR_WITH(context, cuStreamWaitEvent((CUstream)stream, (CUevent)event, 0));
}

int weir_copy(uintptr_t context, uintptr_t stream, uint64_t dst, uint64_t src, size_t bytes) {
	WEIR_WITH(context, cuMemcpyAsync(dst, src, bytes, (CUstream)stream));
}

int weir_copy_peer(uintptr_t context, uintptr_t stream, uint64_t dst, uintptr_t to, uint64_t src, uintptr_t from, size_t bytes) {
	WEIR_WITH(context, cuMemcpyPeerAsync(dst, (CUcontext)to, src, (CUcontext)from, bytes, (CUstream)stream));
}

static CUresult copy_marked(CUstream stream, uint64_t dst, uint64_t src, size_t bytes, CUevent event) {
	CUresult result = cuMemcpyAsync(dst, src, bytes, stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuEventRecord(event, stream);
	if (result != CUDA_SUCCESS)
		cuStreamSynchronize(stream); /* nothing else says when the memory may be reused */
	return result;
}

int weir_copy_marked(uintptr_t context, uintptr_t stream, uint64_t dst, uint64_t src, size_t bytes, uintptr_t event) {
	WEIR_WITH(context, copy_marked((CUstream)stream, dst, src, bytes, (CUevent)event));
}

int weir_zero(uintptr_t context, uintptr_t stream, uint64_t dst, size_t bytes) {
	WEIR_WITH(context, cuMemsetD8Async(dst, 0, bytes, (CUstream)stream));
}

int weir_alloc(uintptr_t context, size_t bytes, uint64_t *address) {
	WEIR_WITH(context, cuMemAlloc((CUdeviceptr *)address, bytes));
}

static CUresult free_plain(uint64_t address) {
	CUresult result = cuCtxSynchronize();
	CUresult freed = cuMemFree(address);
	return result != CUDA_SUCCESS ? result : freed;
}

int weir_free(uintptr_t context, uint64_t address) { WEIR_WITH(context, free_plain(address)); }

int weir_alloc_host(uintptr_t context, size_t bytes, uint64_t *address) {
	WEIR_WITH(context, cuMemHostAlloc((void **)address, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
}

int weir_free_host(uintptr_t context, uint64_t address) { WEIR_WITH(context, cuMemFreeHost((void *)address)); }

static CUresult pool_get(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t *value) {
	cuuint64_t got = 0;
	CUresult result = cuMemPoolGetAttribute(pool, attribute, &got);
	*value = got;
	return result;
}

static CUresult pool_new(int device, uint64_t threshold, size_t limit, CUmemoryPool *pool) {
	CUmemPoolProps properties = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_NONE,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	(void)limit;
#if CUDA_VERSION >= 12020
	/* The driver keeps the limit, if it is new enough to know that field. */
	properties.maxSize = limit;
	if (limit)
		result = cuMemPoolCreate(pool, &properties);
	properties.maxSize = 0;
#endif
	if (result != CUDA_SUCCESS)
		result = cuMemPoolCreate(pool, &properties);
	if (result != CUDA_SUCCESS)
		return result;
	/* Reuse that is bought by making a stream wait is no reuse. */
	int off = 0;
	cuuint64_t keep = threshold;
	result = cuMemPoolSetAttribute(*pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
	if (result == CUDA_SUCCESS)
		result = cuMemPoolSetAttribute(*pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
	if (result != CUDA_SUCCESS)
		cuMemPoolDestroy(*pool);
	return result;
}

int weir_pool_new(uintptr_t context, int device, uint64_t threshold, size_t limit, uintptr_t *pool) {
	WEIR_WITH(context, pool_new(device, threshold, limit, (CUmemoryPool *)pool));
}

static CUresult pool_admit(CUmemoryPool pool, int device, int peer) {
	int can = 0;
	CUresult result = cuDeviceCanAccessPeer(&can, peer, device);
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	return result == CUDA_SUCCESS && can ? cuMemPoolSetAccess(pool, &access, 1) : result;
}

int weir_pool_admit(uintptr_t context, uintptr_t pool, int device, int peer) {
	WEIR_WITH(context, pool_admit((CUmemoryPool)pool, device, peer));
}

static CUresult pool_alloc(CUmemoryPool pool, CUstream stream, size_t bytes, uint64_t limit, uint64_t *address, uint64_t *held) {
	CUresult result = cuMemAllocFromPoolAsync((CUdeviceptr *)address, bytes, pool, stream);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		cuMemPoolTrimTo(pool, 0);
		result = cuMemAllocFromPoolAsync((CUdeviceptr *)address, bytes, pool, stream);
	}
	if (!limit || result == CUDA_ERROR_OUT_OF_MEMORY) {
		if (result != CUDA_SUCCESS)
			pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, held);
		return result;
	}
	if (result != CUDA_SUCCESS)
		return result;
	result = pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, held);
	if (result == CUDA_SUCCESS && *held > limit) {
		cuMemPoolTrimTo(pool, limit); /* giving back what else is unused may do */
		result = pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, held);
	}
	if (result == CUDA_SUCCESS && *held <= limit)
		return CUDA_SUCCESS;
	cuMemFreeAsync(*address, stream);
	cuMemPoolTrimTo(pool, limit);
	pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, held);
	return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

int weir_pool_alloc(uintptr_t context, uintptr_t pool, uintptr_t stream, size_t bytes, uint64_t limit, uint64_t *address, uint64_t *held) {
	WEIR_WITH(context, pool_alloc((CUmemoryPool)pool, (CUstream)stream, bytes, limit, address, held));
}

int weir_pool_free(uintptr_t context, uintptr_t stream, uint64_t address) {
	WEIR_WITH(context, cuMemFreeAsync(address, (CUstream)stream));
}

static CUresult pool_trim(CUmemoryPool pool, uint64_t keep) {
	uint64_t used, held;
	CUresult result = pool_get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
	if (result == CUDA_SUCCESS)
		result = cuMemPoolTrimTo(pool, used + keep);
	if (result == CUDA_SUCCESS)
		result = pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held);
	/* The driver gives back whole pieces, and may keep more than it was told. */
	return result == CUDA_SUCCESS && held > used + keep ? cuMemPoolTrimTo(pool, 0) : result;
}

int weir_pool_trim(uintptr_t context, uintptr_t pool, uint64_t keep) {
	WEIR_WITH(context, pool_trim((CUmemoryPool)pool, keep));
}

static CUresult pool_held(CUmemoryPool pool, uint64_t *held, uint64_t *high) {
	CUresult result = pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, held);
	return result == CUDA_SUCCESS ? pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, high) : result;
}

int weir_pool_held(uintptr_t context, uintptr_t pool, uint64_t *held, uint64_t *high) {
	WEIR_WITH(context, pool_held((CUmemoryPool)pool, held, high));
}

static CUresult pool_destroy(CUmemoryPool pool) {
	CUresult result = cuCtxSynchronize();
	cuMemPoolTrimTo(pool, 0);
	CUresult destroyed = cuMemPoolDestroy(pool);
	return result != CUDA_SUCCESS ? result : destroyed;
}

int weir_pool_destroy(uintptr_t context, uintptr_t pool) { WEIR_WITH(context, pool_destroy((CUmemoryPool)pool)); }

int weir_module_load(uintptr_t context, const void *image, uintptr_t *module) {
	WEIR_WITH(context, cuModuleLoadData((CUmodule *)module, image));
}

int weir_module_unload(uintptr_t context, uintptr_t module) { WEIR_WITH(context, cuModuleUnload((CUmodule)module)); }

/* Drivers load a kernel's code when it is first launched, and then wait for all
   work of the device; those of CUDA 12.4 and later do it on request. */
static CUresult module_function(CUmodule module, const char *name, CUfunction *function) {
	CUresult result = cuModuleGetFunction(function, module, name);
#if CUDA_VERSION >= 12040
	if (result == CUDA_SUCCESS && (result = cuFuncLoad(*function)) == CUDA_ERROR_NOT_FOUND)
		result = CUDA_SUCCESS; /* an older driver */
#endif
	return result;
}

int weir_module_function(uintptr_t context, uintptr_t module, const char *name, uintptr_t *function) {
	WEIR_WITH(context, module_function((CUmodule)module, name, (CUfunction *)function));
}

int weir_launch(uintptr_t context, uintptr_t stream, uintptr_t function, unsigned blocks, unsigned threads, void *parameter) {
	void *parameters[] = {parameter};
	WEIR_WITH(context, cuLaunchKernel((CUfunction)function, blocks, 1, 1, threads, 1, 1, 0, (CUstream)stream, parameters, NULL));
}
