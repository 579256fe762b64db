/*
 * gorgonia.org/cu calls cuInit before main and ends the process unless it
 * answers success. Where there is no driver, or it refuses (no device, no
 * device that CUDA_VISIBLE_DEVICES names, a stub), the program is to run all
 * the same: so cuInit always answers success here, and then there are no
 * devices and the reason is kept.
 */
#include "internal.h"

#include <stdlib.h>

#pragma GCC visibility push(hidden)
extern struct weir_lazy_library weir_lazy_cuda;
int weir_lazy_cuda_init(unsigned int flags);
int weir_lazy_cuda_device_count(int *count);
#pragma GCC visibility pop

enum { success = 0, no_device = 100 };

/* Whether the driver has accepted cuInit. Atomic. */
static int accepted;

static const char *name_of(int status) {
	int (*name)(int, const char **) = (int (*)(int, const char **))weir_lazy_symbol(&weir_lazy_cuda, "cuGetErrorName");
	const char *text = NULL;
	return name && name(status, &text) == success && text ? text : "an error";
}

int weir_lazy_cuda_init(unsigned int flags) {
	int (*init)(unsigned int) = (int (*)(unsigned int))weir_lazy_symbol(&weir_lazy_cuda, "cuInit");
	if (!init) {
		if (weir_lazy_cuda.path)
			weir_lazy_explain(&weir_lazy_cuda, "%s has no cuInit", weir_lazy_cuda.path);
		return success; /* without a library, weir_lazy_open has left the reason */
	}
	int status = init(flags);
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	if (status == success)
		weir_lazy_explain(&weir_lazy_cuda, NULL);
	else if (status == no_device && visible)
		weir_lazy_explain(&weir_lazy_cuda, "cuInit of %s answers %s (%d), with CUDA_VISIBLE_DEVICES=\"%s\"", weir_lazy_cuda.path, name_of(status), status, visible);
	else
		weir_lazy_explain(&weir_lazy_cuda, "cuInit of %s answers %s (%d)", weir_lazy_cuda.path, name_of(status), status);
	__atomic_store_n(&accepted, status == success, __ATOMIC_RELEASE);
	return success;
}

int weir_lazy_cuda_device_count(int *count) {
	int (*own)(int *) = (int (*)(int *))weir_lazy_symbol(&weir_lazy_cuda, "cuDeviceGetCount");
	if (own && __atomic_load_n(&accepted, __ATOMIC_ACQUIRE))
		return own(count);
	*count = 0;
	return success;
}
