// Compiled with NVIDIA's headers, where there are any: the simulator's numbers
// and structures are NVIDIA's.
#include "../blas/abi.h"
#include "../driver/abi.h"
#include "../solver/abi.h"

#include <cublas_v2.h>
#include <cuda.h>
#include <cusolverDn.h>

#define SAME(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))

namespace driver {
using namespace simcuda;

SAME(success, CUDA_SUCCESS);
SAME(invalid_value, CUDA_ERROR_INVALID_VALUE);
SAME(out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(not_initialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(no_device, CUDA_ERROR_NO_DEVICE);
SAME(invalid_device, CUDA_ERROR_INVALID_DEVICE);
SAME(invalid_image, CUDA_ERROR_INVALID_IMAGE);
SAME(invalid_context, CUDA_ERROR_INVALID_CONTEXT);
SAME(ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
SAME(nvlink_uncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(invalid_handle, CUDA_ERROR_INVALID_HANDLE);
SAME(not_found, CUDA_ERROR_NOT_FOUND);
SAME(not_ready, CUDA_ERROR_NOT_READY);
SAME(illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(peer_access_not_enabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME(context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(device_assert, CUDA_ERROR_ASSERT);
SAME(host_memory_already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(host_memory_not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME(hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(invalid_pc, CUDA_ERROR_INVALID_PC);
SAME(launch_failed, CUDA_ERROR_LAUNCH_FAILED);
SAME(not_permitted, CUDA_ERROR_NOT_PERMITTED);
SAME(not_supported, CUDA_ERROR_NOT_SUPPORTED);
SAME(illegal_state, CUDA_ERROR_ILLEGAL_STATE);
SAME(stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(stream_capture_merge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
SAME(stream_capture_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(stream_capture_unjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SAME(stream_capture_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME(stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(captured_event, CUDA_ERROR_CAPTURED_EVENT);
SAME(stream_capture_wrong_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(graph_exec_update_failure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
SAME(unknown, CUDA_ERROR_UNKNOWN);

SAME(stream_non_blocking, CU_STREAM_NON_BLOCKING);
SAME(event_blocking_sync, CU_EVENT_BLOCKING_SYNC);
SAME(event_disable_timing, CU_EVENT_DISABLE_TIMING);
SAME(event_interprocess, CU_EVENT_INTERPROCESS);
SAME(memory_type_host, CU_MEMORYTYPE_HOST);
SAME(memory_type_device, CU_MEMORYTYPE_DEVICE);

SAME(reuse_follow_event_dependencies, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME(reuse_allow_opportunistic, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME(reuse_allow_internal_dependencies, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME(release_threshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(reserved_current, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(reserved_high, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(used_current, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(used_high, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(allocation_pinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(location_device, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(access_none, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME(access_read, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME(access_read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

SAME(pointer_context, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(pointer_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(pointer_device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME(pointer_host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME(pointer_is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(pointer_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(pointer_range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(pointer_range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(pointer_mapped, CU_POINTER_ATTRIBUTE_MAPPED);
SAME(pointer_pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);

SAME(max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(max_block_dim_x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME(max_block_dim_y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
SAME(max_block_dim_z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME(max_grid_dim_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(max_grid_dim_y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SAME(max_grid_dim_z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME(max_shared_memory_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(total_constant_memory, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
SAME(warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(max_registers_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME(gpu_overlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP);
SAME(multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(can_map_host_memory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
SAME(concurrent_kernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
SAME(pci_bus_id, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME(pci_device_id, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
SAME(max_threads_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(async_engine_count, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME(unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME(pci_domain_id, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
SAME(compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(stream_priorities_supported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
SAME(max_shared_memory_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(cooperative_launch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME(max_shared_memory_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(host_register_supported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
SAME(memory_pools_supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);

SAME(sizeof(PoolProperties), sizeof(CUmemPoolProps));
SAME(offsetof(PoolProperties, location), offsetof(CUmemPoolProps, location));
SAME(offsetof(PoolProperties, maximum_size), offsetof(CUmemPoolProps, maxSize));
SAME(sizeof(AccessDescription), sizeof(CUmemAccessDesc));
SAME(sizeof(Uuid), sizeof(CUuuid));
SAME(sizeof(DevicePtr), sizeof(CUdeviceptr));

SAME(capture_global, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(capture_thread_local, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(capture_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(capture_none, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(capture_active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(capture_invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(node_kernel, CU_GRAPH_NODE_TYPE_KERNEL);
SAME(node_memcpy, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME(node_memset, CU_GRAPH_NODE_TYPE_MEMSET);
SAME(node_host, CU_GRAPH_NODE_TYPE_HOST);
SAME(instantiate_auto_free, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
SAME(instantiate_node_priority, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
SAME(update_success, CU_GRAPH_EXEC_UPDATE_SUCCESS);
SAME(update_error, CU_GRAPH_EXEC_UPDATE_ERROR);
SAME(update_topology_changed, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
SAME(update_node_type_changed, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
SAME(sizeof(KernelNodeParams), sizeof(CUDA_KERNEL_NODE_PARAMS));
SAME(offsetof(KernelNodeParams, parameters), offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
SAME(sizeof(UpdateInfo), sizeof(CUgraphExecUpdateResultInfo));
SAME(offsetof(UpdateInfo, node), offsetof(CUgraphExecUpdateResultInfo, errorNode));
} // namespace driver

namespace cublas {
using namespace simcuda::blas;

SAME(status_success, CUBLAS_STATUS_SUCCESS);
SAME(status_not_initialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(status_alloc_failed, CUBLAS_STATUS_ALLOC_FAILED);
SAME(status_invalid_value, CUBLAS_STATUS_INVALID_VALUE);
SAME(status_arch_mismatch, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(status_mapping_error, CUBLAS_STATUS_MAPPING_ERROR);
SAME(status_execution_failed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(status_internal_error, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(status_not_supported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(status_license_error, CUBLAS_STATUS_LICENSE_ERROR);
SAME(no_trans, CUBLAS_OP_N);
SAME(trans, CUBLAS_OP_T);
SAME(conj_trans, CUBLAS_OP_C);
SAME(pointer_mode_host, CUBLAS_POINTER_MODE_HOST);
SAME(pointer_mode_device, CUBLAS_POINTER_MODE_DEVICE);
SAME(atomics_not_allowed, CUBLAS_ATOMICS_NOT_ALLOWED);
SAME(atomics_allowed, CUBLAS_ATOMICS_ALLOWED);
SAME(math_default, CUBLAS_DEFAULT_MATH);
SAME(math_pedantic, CUBLAS_PEDANTIC_MATH);
SAME(math_tf32, CUBLAS_TF32_TENSOR_OP_MATH);
SAME(math_mode_flags, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
SAME(r32f, CUDA_R_32F);
SAME(r64f, CUDA_R_64F);
SAME(r16f, CUDA_R_16F);
SAME(r16bf, CUDA_R_16BF);
SAME(c32f, CUDA_C_32F);
SAME(c64f, CUDA_C_64F);
SAME(compute_16f, CUBLAS_COMPUTE_16F);
SAME(compute_16f_pedantic, CUBLAS_COMPUTE_16F_PEDANTIC);
SAME(compute_32f, CUBLAS_COMPUTE_32F);
SAME(compute_32f_pedantic, CUBLAS_COMPUTE_32F_PEDANTIC);
SAME(compute_64f, CUBLAS_COMPUTE_64F);
SAME(compute_64f_pedantic, CUBLAS_COMPUTE_64F_PEDANTIC);
SAME(compute_32f_fast_16f, CUBLAS_COMPUTE_32F_FAST_16F);
SAME(compute_32f_fast_16bf, CUBLAS_COMPUTE_32F_FAST_16BF);
SAME(compute_32f_fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
} // namespace cublas

namespace cusolver {
using namespace simcuda::solver;

SAME(status_success, CUSOLVER_STATUS_SUCCESS);
SAME(status_not_initialized, CUSOLVER_STATUS_NOT_INITIALIZED);
SAME(status_alloc_failed, CUSOLVER_STATUS_ALLOC_FAILED);
SAME(status_invalid_value, CUSOLVER_STATUS_INVALID_VALUE);
SAME(status_execution_failed, CUSOLVER_STATUS_EXECUTION_FAILED);
SAME(status_internal_error, CUSOLVER_STATUS_INTERNAL_ERROR);
SAME(status_not_supported, CUSOLVER_STATUS_NOT_SUPPORTED);
SAME(r32f, CUDA_R_32F);
SAME(r64f, CUDA_R_64F);
SAME(c32f, CUDA_C_32F);
SAME(c64f, CUDA_C_64F);
} // namespace cusolver
