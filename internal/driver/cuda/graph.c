//go:build cuda

#include "graph.h"

#include "driver.h"

#include <cuda.h>

/* Goroutines move between threads: a relaxed capture may be ended on any, and what
   others do meanwhile does not concern it. */
static CUresult begin(const uintptr_t *streams, size_t count, CUevent event) {
	CUstream origin = (CUstream)streams[0];
	CUresult result = cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED);
	if (result != CUDA_SUCCESS)
		return result;
	if (count > 1)
		result = cuEventRecord(event, origin);
	for (size_t i = 1; i < count && result == CUDA_SUCCESS; i++)
		result = cuStreamWaitEvent((CUstream)streams[i], event, 0);
	if (result != CUDA_SUCCESS) {
		CUgraph graph = NULL;
		cuStreamEndCapture(origin, &graph);
		if (graph)
			cuGraphDestroy(graph);
	}
	return result;
}

int weir_capture_begin(uintptr_t context, const uintptr_t *streams, size_t count, uintptr_t event) {
	WEIR_WITH(context, begin(streams, count, (CUevent)event));
}

static CUresult end(const uintptr_t *streams, size_t count, CUevent event, CUgraph *graph) {
	CUstream origin = (CUstream)streams[0];
	CUresult joined = CUDA_SUCCESS;
	for (size_t i = 1; i < count && joined == CUDA_SUCCESS; i++) {
		joined = cuEventRecord(event, (CUstream)streams[i]);
		if (joined == CUDA_SUCCESS)
			joined = cuStreamWaitEvent(origin, event, 0);
	}
	*graph = NULL;
	CUresult result = cuStreamEndCapture(origin, graph);
	if (joined != CUDA_SUCCESS)
		result = joined;
	if (result != CUDA_SUCCESS && *graph) {
		cuGraphDestroy(*graph);
		*graph = NULL;
	}
	return result;
}

int weir_capture_end(uintptr_t context, const uintptr_t *streams, size_t count, uintptr_t event, uintptr_t *graph) {
	WEIR_WITH(context, end(streams, count, (CUevent)event, (CUgraph *)graph));
}

int weir_graph_instantiate(uintptr_t context, uintptr_t graph, uintptr_t *exec) {
	WEIR_WITH(context, cuGraphInstantiateWithFlags((CUgraphExec *)exec, (CUgraph)graph, 0));
}

int weir_graph_destroy(uintptr_t context, uintptr_t graph) { WEIR_WITH(context, cuGraphDestroy((CUgraph)graph)); }

int weir_graph_launch(uintptr_t context, uintptr_t exec, uintptr_t stream) {
	WEIR_WITH(context, cuGraphLaunch((CUgraphExec)exec, (CUstream)stream));
}

int weir_graph_exec_destroy(uintptr_t context, uintptr_t exec) { WEIR_WITH(context, cuGraphExecDestroy((CUgraphExec)exec)); }
