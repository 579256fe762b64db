/* Calls with the prototypes that gorgonia.org/cu v0.9.6 uses. */
#include <cuda.h>

int calls(void);

int calls(void) {
	CUcontext context;
	CUgraphNode from, to;
	size_t count = 0;
	float milliseconds;
	int failed = 0;

	failed |= cuCtxCreate(&context, 0, 0) != 0;
	failed |= cuMemAdvise(0, 8, (CUmem_advise)1, 0) != 0;
	failed |= cuMemPrefetchAsync(0, 8, 0, 0) != 0;
	failed |= cuEventElapsedTime(&milliseconds, 0, 0) != 0;
	failed |= cuGraphAddDependencies(0, &from, &to, count) != 0;
	failed |= cuGraphRemoveDependencies(0, &from, &to, count) != 0;
	failed |= cuGraphGetEdges(0, &from, &to, &count) != 0;
	failed |= cuGraphNodeGetDependencies(from, &to, &count) != 0;
	failed |= cuGraphNodeGetDependentNodes(from, &to, &count) != 0;
	return failed;
}
