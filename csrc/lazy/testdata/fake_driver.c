/* A driver with two devices, if the environment lets cuInit succeed. */
#include <stdlib.h>

int cuGetErrorName(int status, const char **name);
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);

int cuGetErrorName(int status, const char **name) {
	*name = status == 100 ? "CUDA_ERROR_NO_DEVICE" : NULL;
	return status == 100 ? 0 : 1;
}

#ifndef WITHOUT_INIT
int cuInit(unsigned flags) {
	const char *status = getenv("FAKE_INIT");
	(void)flags;
	return status ? atoi(status) : 0;
}
#endif

int cuDeviceGetCount(int *count) {
	*count = 2;
	return 0;
}
