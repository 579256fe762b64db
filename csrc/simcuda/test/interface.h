// What the tests call, declared as NVIDIA's headers would.
#pragma once

#include "../blas/abi.h"
#include "../driver/abi.h"
#include "../solver/abi.h"
#include "../weir_sim.h"

#include <complex>

using namespace simcuda;

extern "C" {
Result cuInit(unsigned);
Result cuDriverGetVersion(int *);
Result cuDeviceGetCount(int *);
Result cuDeviceGetName(char *, int, DeviceOrdinal);
Result cuDeviceGetAttribute(int *, DeviceAttribute, DeviceOrdinal);
Result cuDevicePrimaryCtxRetain(ContextHandle *, DeviceOrdinal);
Result cuDevicePrimaryCtxRelease_v2(DeviceOrdinal);
Result cuCtxCreate_v2(ContextHandle *, unsigned, DeviceOrdinal);
Result cuCtxDestroy_v2(ContextHandle);
Result cuCtxPushCurrent_v2(ContextHandle);
Result cuCtxPopCurrent_v2(ContextHandle *);
Result cuCtxSetCurrent(ContextHandle);
Result cuCtxGetCurrent(ContextHandle *);
Result cuCtxSynchronize();
Result cuCtxEnablePeerAccess(ContextHandle, unsigned);
Result cuCtxDisablePeerAccess(ContextHandle);
Result cuDeviceCanAccessPeer(int *, DeviceOrdinal, DeviceOrdinal);
Result cuStreamCreateWithPriority(StreamHandle *, unsigned, int);
Result cuStreamDestroy_v2(StreamHandle);
Result cuStreamQuery(StreamHandle);
Result cuStreamSynchronize(StreamHandle);
Result cuStreamWaitEvent(StreamHandle, EventHandle, unsigned);
Result cuEventCreate(EventHandle *, unsigned);
Result cuEventDestroy_v2(EventHandle);
Result cuEventRecord(EventHandle, StreamHandle);
Result cuEventQuery(EventHandle);
Result cuEventSynchronize(EventHandle);
Result cuEventElapsedTime(float *, EventHandle, EventHandle);
Result cuLaunchHostFunc(StreamHandle, HostFunction, void *);
Result cuMemGetInfo_v2(std::size_t *, std::size_t *);
Result cuMemAlloc_v2(DevicePtr *, std::size_t);
Result cuMemFree_v2(DevicePtr);
Result cuMemHostAlloc(void **, std::size_t, unsigned);
Result cuMemFreeHost(void *);
Result cuMemcpyAsync(DevicePtr, DevicePtr, std::size_t, StreamHandle);
Result cuMemcpyPeerAsync(DevicePtr, ContextHandle, DevicePtr, ContextHandle, std::size_t, StreamHandle);
Result cuMemcpyHtoDAsync_v2(DevicePtr, const void *, std::size_t, StreamHandle);
Result cuMemcpyDtoHAsync_v2(void *, DevicePtr, std::size_t, StreamHandle);
Result cuMemsetD8Async(DevicePtr, unsigned char, std::size_t, StreamHandle);
Result cuMemPoolCreate(PoolHandle *, const PoolProperties *);
Result cuMemPoolDestroy(PoolHandle);
Result cuMemPoolTrimTo(PoolHandle, std::size_t);
Result cuMemPoolGetAttribute(PoolHandle, PoolAttribute, void *);
Result cuMemPoolSetAttribute(PoolHandle, PoolAttribute, const void *);
Result cuMemPoolSetAccess(PoolHandle, const AccessDescription *, std::size_t);
Result cuMemAllocFromPoolAsync(DevicePtr *, std::size_t, PoolHandle, StreamHandle);
Result cuMemFreeAsync(DevicePtr, StreamHandle);
Result cuPointerGetAttribute(void *, PointerAttribute, DevicePtr);
Result cuModuleLoadData(ModuleHandle *, const void *);
Result cuModuleGetFunction(FunctionHandle *, ModuleHandle, const char *);
Result cuStreamBeginCapture_v2(StreamHandle, CaptureMode);
Result cuStreamEndCapture(StreamHandle, GraphHandle *);
Result cuStreamIsCapturing(StreamHandle, CaptureStatus *);
Result cuStreamGetCaptureInfo_v2(StreamHandle, CaptureStatus *, std::uint64_t *, GraphHandle *, const GraphNodeHandle **, std::size_t *);
Result cuThreadExchangeStreamCaptureMode(CaptureMode *);
Result cuGraphDestroy(GraphHandle);
Result cuGraphGetNodes(GraphHandle, GraphNodeHandle *, std::size_t *);
Result cuGraphNodeGetType(GraphNodeHandle, NodeType *);
Result cuGraphNodeGetDependencies(GraphNodeHandle, GraphNodeHandle *, std::size_t *);
Result cuGraphKernelNodeGetParams_v2(GraphNodeHandle, KernelNodeParams *);
Result cuGraphInstantiateWithFlags(GraphExecHandle *, GraphHandle, unsigned long long);
Result cuGraphExecDestroy(GraphExecHandle);
Result cuGraphExecKernelNodeSetParams_v2(GraphExecHandle, GraphNodeHandle, const KernelNodeParams *);
Result cuGraphExecUpdate_v2(GraphExecHandle, GraphHandle, UpdateInfo *);
Result cuGraphUpload(GraphExecHandle, StreamHandle);
Result cuGraphLaunch(GraphExecHandle, StreamHandle);
Result cuLaunchKernel(FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle, void **, void **);

blas::Status cublasCreate_v2(blas::BlasHandle *);
blas::Status cublasDestroy_v2(blas::BlasHandle);
blas::Status cublasSetStream_v2(blas::BlasHandle, StreamHandle);
blas::Status cublasSetWorkspace_v2(blas::BlasHandle, void *, std::size_t);
blas::Status cublasSetMathMode(blas::BlasHandle, int);
blas::Status cublasSetPointerMode_v2(blas::BlasHandle, blas::PointerMode);
blas::Status cublasDgemm_v2(blas::BlasHandle, blas::Transpose, blas::Transpose, int, int, int, const double *, const double *, int,
	const double *, int, const double *, double *, int);
blas::Status cublasSgemm_v2_64(blas::BlasHandle, blas::Transpose, blas::Transpose, std::int64_t, std::int64_t, std::int64_t, const float *,
	const float *, std::int64_t, const float *, std::int64_t, const float *, float *, std::int64_t);
blas::Status cublasZgemmStridedBatched(blas::BlasHandle, blas::Transpose, blas::Transpose, int, int, int, const std::complex<double> *,
	const std::complex<double> *, int, long long, const std::complex<double> *, int, long long, const std::complex<double> *,
	std::complex<double> *, int, long long, int);
blas::Status cublasDgemmBatched(blas::BlasHandle, blas::Transpose, blas::Transpose, int, int, int, const double *, const double *const[], int,
	const double *const[], int, const double *, double *const[], int, int);
blas::Status cublasDgemmGroupedBatched(blas::BlasHandle, const blas::Transpose[], const blas::Transpose[], const int[], const int[],
	const int[], const double[], const double *const[], const int[], const double *const[], const int[], const double[], double *const[],
	const int[], int, const int[]);
blas::Status cublasGemmGroupedBatchedEx_64(blas::BlasHandle, const blas::Transpose[], const blas::Transpose[], const std::int64_t[],
	const std::int64_t[], const std::int64_t[], const void *, const void *const[], blas::DataType, const std::int64_t[], const void *const[],
	blas::DataType, const std::int64_t[], const void *, void *const[], blas::DataType, const std::int64_t[], std::int64_t,
	const std::int64_t[], blas::ComputeType);
blas::Status cublasGemmEx(blas::BlasHandle, blas::Transpose, blas::Transpose, int, int, int, const void *, const void *, blas::DataType, int,
	const void *, blas::DataType, int, const void *, void *, blas::DataType, int, blas::ComputeType, int);

solver::Status cusolverDnCreate(solver::SolverHandle *);
solver::Status cusolverDnDestroy(solver::SolverHandle);
solver::Status cusolverDnSetStream(solver::SolverHandle, StreamHandle);
solver::Status cusolverDnCreateParams(solver::ParamsHandle *);
solver::Status cusolverDnDestroyParams(solver::ParamsHandle);
solver::Status cusolverDnXgesvd_bufferSize(solver::SolverHandle, solver::ParamsHandle, signed char, signed char, std::int64_t, std::int64_t,
	solver::DataType, const void *, std::int64_t, solver::DataType, const void *, solver::DataType, const void *, std::int64_t,
	solver::DataType, const void *, std::int64_t, solver::DataType, std::size_t *, std::size_t *);
solver::Status cusolverDnXgesvd(solver::SolverHandle, solver::ParamsHandle, signed char, signed char, std::int64_t, std::int64_t,
	solver::DataType, void *, std::int64_t, solver::DataType, void *, solver::DataType, void *, std::int64_t, solver::DataType, void *,
	std::int64_t, solver::DataType, void *, std::size_t, void *, std::size_t, int *);
}
