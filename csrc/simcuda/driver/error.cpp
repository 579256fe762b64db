// Names and texts of errors. Both functions may be called anywhere.
#include "abi.h"

#include <map>
#include <utility>

using namespace simcuda;

namespace {

struct Names {
	const char *name, *text;
};

const std::map<int, Names> names{
	{success, {"CUDA_SUCCESS", "no error"}},
	{invalid_value, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
	{out_of_memory, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
	{not_initialized, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
	{no_device, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
	{invalid_device, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
	{invalid_image, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
	{invalid_context, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
	{ecc_uncorrectable, {"CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"}},
	{peer_access_unsupported, {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"}},
	{nvlink_uncorrectable, {"CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution"}},
	{invalid_handle, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
	{illegal_state, {"CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"}},
	{not_found, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
	{not_ready, {"CUDA_ERROR_NOT_READY", "device not ready"}},
	{illegal_address, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
	{launch_out_of_resources, {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}},
	{launch_timeout, {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"}},
	{peer_access_already_enabled, {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"}},
	{peer_access_not_enabled, {"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"}},
	{context_is_destroyed, {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"}},
	{device_assert, {"CUDA_ERROR_ASSERT", "device-side assert triggered"}},
	{host_memory_already_registered,
		{"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"}},
	{host_memory_not_registered, {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"}},
	{hardware_stack_error, {"CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"}},
	{illegal_instruction, {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"}},
	{misaligned_address, {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"}},
	{invalid_address_space, {"CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"}},
	{invalid_pc, {"CUDA_ERROR_INVALID_PC", "invalid program counter"}},
	{launch_failed, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
	{not_permitted, {"CUDA_ERROR_NOT_PERMITTED", "operation not permitted"}},
	{not_supported, {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"}},
	{stream_capture_unsupported, {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"}},
	{stream_capture_invalidated,
		{"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"}},
	{stream_capture_merge, {"CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"}},
	{stream_capture_unmatched, {"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"}},
	{stream_capture_unjoined, {"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"}},
	{stream_capture_isolation,
		{"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"}},
	{stream_capture_implicit,
		{"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"}},
	{captured_event, {"CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"}},
	{stream_capture_wrong_thread,
		{"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"}},
	{graph_exec_update_failure,
		{"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed because it included changes which violated constraints"}},
	{unknown, {"CUDA_ERROR_UNKNOWN", "unknown error"}},
};

Result look_up(Result error, const char **text, const char *Names::*which) {
	auto at = names.find(error);
	if (!text || at == names.end()) {
		if (text)
			*text = nullptr;
		return invalid_value;
	}
	*text = at->second.*which;
	return success;
}

} // namespace

SIM_API Result cuGetErrorName(Result error, const char **name) { return look_up(error, name, &Names::name); }

SIM_API Result cuGetErrorString(Result error, const char **text) { return look_up(error, text, &Names::text); }
