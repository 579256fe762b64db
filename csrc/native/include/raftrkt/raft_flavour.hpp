// The RAFT flavour: raft::handle_t, CUDA devices, memory by RMM. It is compiled as
// CUDA or, without device code, by the host's compiler.
#pragma once

#include "raftrkt/flavour.hpp"

#include <cuda/std/version>
#include <cuda/stream>
#include <cuda_runtime_api.h>
#include <raft/core/cublas_macros.hpp>
#include <raft/core/cusolver_macros.hpp>
#include <raft/core/cusparse_macros.hpp>
#include <raft/core/error.hpp>
#include <raft/core/handle.hpp>
#include <raft/core/resource/resource_types.hpp>
#include <raft/util/cuda_rt_essentials.hpp>
#include <raft/version_config.hpp>
#include <rmm/error.hpp>
#include <rmm/version_config.hpp>
#include <thrust/system/cuda/error.h>
#include <thrust/system_error.h>

#include <cstring>

#define RAFTRKT_RAFT 1

namespace raftrkt {

using handle_t = raft::handle_t;
using stream_t = cudaStream_t;

namespace flavour {

inline constexpr int out_of_memory = cudaErrorMemoryAllocation;
inline constexpr int32_t own_memory = RR_MEMORY_DEVICE;

inline std::string error_text(int status) {
	const auto error = static_cast<cudaError_t>(status);
	return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

// answered takes a refusal off the runtime's own record, so that no later call finds
// it there, and answers it.
inline int answered(cudaError_t status) noexcept {
	if (status != cudaSuccess) (void)cudaGetLastError();
	return status;
}

inline int get_device(int &device) noexcept { return answered(cudaGetDevice(&device)); }
inline int set_device(int device) noexcept { return answered(cudaSetDevice(device)); }

inline int device_of(const raft::handle_t &handle) { return handle.get_device(); }
inline cudaStream_t stream_of(const raft::handle_t &handle) { return handle.get_stream().get(); }
inline int synchronize(cudaStream_t stream) noexcept { return answered(cudaStreamSynchronize(stream)); }

inline int place_of(const void *data, place &out) noexcept {
	cudaPointerAttributes attributes{};
	if (const int status = answered(cudaPointerGetAttributes(&attributes, data)); status != 0) return status;
	switch (attributes.type) {
	case cudaMemoryTypeDevice: out = {RR_MEMORY_DEVICE, attributes.device}; break;
	case cudaMemoryTypeManaged: out = {RR_MEMORY_MANAGED, attributes.device}; break;
	case cudaMemoryTypeHost: out = {RR_MEMORY_PINNED, attributes.device}; break;
	default: out = {RR_MEMORY_HOST, -1};
	}
	return 0;
}
inline bool usable(int32_t memory) noexcept { return memory == RR_MEMORY_DEVICE || memory == RR_MEMORY_MANAGED; }

// reason answers what a message of RAFT's macros gives as the reason, which has the
// status, as a number or by name; the exceptions themselves do not have it.
inline const char *reason(const std::exception &error) noexcept {
	const char *found = "";
	for (const char *at = error.what(); (at = std::strstr(at, "Reason=")) != nullptr;) found = at += std::strlen("Reason=");
	return found;
}

inline int32_t kind_of(const std::exception &error) noexcept {
	const auto cuda = [](bool memory) { return memory ? RR_KIND_OUT_OF_MEMORY : RR_KIND_CUDA; };
	const auto begins = [](const char *text, const char *with) { return std::strncmp(text, with, std::strlen(with)) == 0; };
	static_assert(CUBLAS_STATUS_ALLOC_FAILED == 3 && CUSOLVER_STATUS_ALLOC_FAILED == 2 && CUSPARSE_STATUS_ALLOC_FAILED == 2);
	if (dynamic_cast<const raft::cuda_error *>(&error)) return cuda(begins(reason(error), "cudaErrorMemoryAllocation:"));
	if (dynamic_cast<const raft::cublas_error *>(&error)) return cuda(begins(reason(error), "3:"));
	if (dynamic_cast<const raft::cusolver_error *>(&error)) return cuda(begins(reason(error), "2:"));
	if (dynamic_cast<const raft::cusparse_error *>(&error)) return cuda(begins(reason(error), "2:"));
	if (dynamic_cast<const rmm::cuda_error *>(&error))
		return cuda(std::strstr(error.what(), ": cudaErrorMemoryAllocation ") != nullptr);
	if (const auto *e = dynamic_cast<const ::cuda::cuda_error *>(&error))
		return cuda(e->status() == cudaErrorMemoryAllocation);
	if (const auto *e = dynamic_cast<const thrust::system_error *>(&error); e && e->code().category() == thrust::cuda_category())
		return cuda(e->code().value() == cudaErrorMemoryAllocation);
	if (dynamic_cast<const raft::logic_error *>(&error)) return RR_KIND_LOGIC;
	return -1;
}

inline constexpr int32_t raft_version[3] = {RAFT_VERSION_MAJOR, RAFT_VERSION_MINOR, RAFT_VERSION_PATCH};
inline constexpr int32_t rmm_version[3] = {RMM_VERSION_MAJOR, RMM_VERSION_MINOR, RMM_VERSION_PATCH};
inline constexpr int32_t cccl_version[3] = {CCCL_MAJOR_VERSION, CCCL_MINOR_VERSION, CCCL_PATCH_VERSION};
inline constexpr int32_t cuda_runtime = CUDART_VERSION;
inline constexpr int32_t resource_types = raft::resource::resource_type::LAST_KEY;

} // namespace flavour
} // namespace raftrkt
