/* Does what gorgonia.org/cu does before main, and asks for the devices. */
#include "weir_lazy.h"

#include <stdio.h>

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuCtxSynchronize(void);

int main(void) {
	int count = -1;
	int init = cuInit(0);
	int counted = cuDeviceGetCount(&count);
	printf("init %d, count %d: %d devices, missing %d\n%s\n", init, counted, count, cuCtxSynchronize(), weir_lazy_reason("cuda"));
	return 0;
}
