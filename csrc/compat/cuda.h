/*
 * The driver's header as gorgonia.org/cu v0.9.6 expects it.
 *
 * CUDA 13 gave these names the prototypes of later versions; the driver still
 * exports the first ones. This header stands before NVIDIA's in the include
 * path, takes it in, and gives the names their first versions back. With CUDA
 * 12 and older headers it changes nothing.
 *
 * cuEventElapsedTime would compile as it is. Its second version came with the
 * driver of CUDA 12.8, and what is built with CUDA 13 also runs on older ones.
 */
#ifndef WEIR_COMPAT_CUDA_H
#define WEIR_COMPAT_CUDA_H

#include_next <cuda.h>

#if CUDA_VERSION >= 13000

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "Weir's cuda.h has no per-thread default stream; name the stream in each call"
#endif

#undef cuCtxCreate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuEventElapsedTime
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
#undef cuGraphGetEdges
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes

#ifdef __cplusplus
extern "C" {
#endif

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
#define cuCtxCreate cuCtxCreate_v2

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream);
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies, size_t *count);
CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *dependents, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
#endif
