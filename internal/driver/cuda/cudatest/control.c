//go:build cuda

#include "control.h"

#include <cuda.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "weir_lazy.h"

/* The simulator's own function of that name; NULL of a real driver. */
static void *control(const char *name) {
	void *library = dlopen(weir_lazy_path("cuda"), RTLD_NOW | RTLD_NOLOAD);
	void *function = library ? dlsym(library, name) : NULL;
	if (library)
		dlclose(library); /* the loader keeps it open */
	return function;
}

static int hold(CUstream stream, uintptr_t *flag) {
	CUcontext context, popped;
	CUresult result = cuStreamGetCtx(stream, &context);
	if (result != CUDA_SUCCESS || (result = cuCtxPushCurrent(context)) != CUDA_SUCCESS)
		return result;
	/* A page of the process's own, which outlives the context: a stream may be let go
	   after its device died. */
	enum { page = 4096 };
	CUdeviceptr address;
	atomic_uint *value = aligned_alloc(page, page);
	if (!value)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		result = cuMemHostRegister(value, page, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (result == CUDA_SUCCESS) {
		atomic_store(value, 0);
		*flag = (uintptr_t)value;
		result = cuMemHostGetDevicePointer(&address, value, 0);
	}
	if (result == CUDA_SUCCESS)
		result = cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ);
	cuCtxPopCurrent(&popped);
	return result;
}

int weir_test_stall(uintptr_t stream, uintptr_t *flag) {
	unsigned long long (*stall)(void *) = (unsigned long long (*)(void *))control("weir_sim_stall");
	if (!stall)
		return hold((CUstream)stream, flag);
	*flag = stall((void *)stream);
	return *flag ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void weir_test_release(uintptr_t flag) {
	void (*release)(unsigned long long) = (void (*)(unsigned long long))control("weir_sim_release");
	if (release)
		release(flag);
	else
		atomic_store((atomic_uint *)flag, 1);
}

int weir_test_simulated(void) { return control("weir_sim_stall") != NULL; }

void weir_test_kill(int device, int error) {
	void (*kill)(int, int) = (void (*)(int, int))control("weir_sim_kill");
	if (kill)
		kill(device, error);
}

void weir_test_revive(void) {
	void (*revive)(void) = (void (*)(void))control("weir_sim_revive");
	if (revive)
		revive();
}

void weir_test_drop_callbacks(long long count) {
	void (*drop)(long long) = (void (*)(long long))control("weir_sim_drop_callbacks");
	if (drop)
		drop(count);
}

void weir_test_fail(const char *function, long long nth, int error) {
	void (*fail)(const char *, long long, int) = (void (*)(const char *, long long, int))control("weir_sim_fail");
	if (fail)
		fail(function, nth, error);
}

long long weir_test_count(const char *function) {
	long long (*count)(const char *) = (long long (*)(const char *))control("weir_sim_count");
	return count ? count(function) : 0;
}

long long weir_test_live(const char *kind) {
	long long (*live)(const char *) = (long long (*)(const char *))control("weir_sim_live");
	return live ? live(kind) : 0;
}

long long weir_test_misuse(char *text, size_t size) {
	long long (*misuse)(char *, size_t) = (long long (*)(char *, size_t))control("weir_sim_misuse");
	return misuse ? misuse(text, size) : 0;
}

long long weir_test_heap(void) {
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}
