#include "handle.h"

namespace simcuda::blas {

namespace {

HandleTable<BlasHandle, Handle> &handles() {
	static auto &table = *new HandleTable<BlasHandle, Handle>;
	return table;
}

void count() { simulator().library_handles["cublas"] = static_cast<long long>(handles().size()); }

} // namespace

std::shared_ptr<Handle> find(BlasHandle handle) {
	auto found = handles().find(handle);
	if (!found)
		misuse(format("%p is no handle of cuBLAS", static_cast<void *>(handle)));
	require(found != nullptr, invalid_handle);
	return found;
}

} // namespace simcuda::blas

using namespace simcuda;
using namespace simcuda::blas;

SIM_API Status cublasCreate_v2(BlasHandle *handle) {
	return call("cublasCreate_v2", [&](Lock &) {
		require(handle != nullptr, invalid_value);
		auto made = std::make_shared<Handle>();
		made->context = current_context();
		*handle = handles().add(std::move(made));
		count();
	});
}

// It waits for the device, as NVIDIA's does.
SIM_API Status cublasDestroy_v2(BlasHandle handle) {
	return call("cublasDestroy_v2", [&](Lock &lock) {
		auto found = find(handle);
		handles().remove(handle);
		count();
		found->context->device.quiesce(lock);
	});
}

SIM_API Status cublasGetVersion_v2(BlasHandle, int *value) {
	return call("cublasGetVersion_v2", [&](Lock &) { answer(value, version); });
}

// A new stream takes the user's workspace away, as NVIDIA documents.
SIM_API Status cublasSetStream_v2(BlasHandle handle, StreamHandle stream) {
	return call("cublasSetStream_v2", [&](Lock &) {
		auto found = find(handle);
		found->stream = stream;
		found->workspace = {};
	});
}

SIM_API Status cublasGetStream_v2(BlasHandle handle, StreamHandle *stream) {
	return call("cublasGetStream_v2", [&](Lock &) { answer(stream, find(handle)->stream); });
}

SIM_API Status cublasSetWorkspace_v2(BlasHandle handle, void *workspace, std::size_t bytes) {
	return call("cublasSetWorkspace_v2", [&](Lock &) {
		auto address = reinterpret_cast<DevicePtr>(workspace);
		require(address % 256 == 0 && (workspace || bytes == 0), invalid_value);
		find(handle)->workspace = {address, bytes};
	});
}

SIM_API Status cublasSetMathMode(BlasHandle handle, int mode) {
	return call("cublasSetMathMode", [&](Lock &) {
		int plain = mode & ~math_mode_flags;
		require(plain >= math_default && plain <= math_tf32, invalid_value);
		find(handle)->math_mode = mode;
	});
}

SIM_API Status cublasGetMathMode(BlasHandle handle, int *mode) {
	return call("cublasGetMathMode", [&](Lock &) { answer(mode, find(handle)->math_mode); });
}

SIM_API Status cublasSetPointerMode_v2(BlasHandle handle, PointerMode mode) {
	return call("cublasSetPointerMode_v2", [&](Lock &) {
		require(mode == pointer_mode_host || mode == pointer_mode_device, invalid_value);
		find(handle)->pointer_mode = mode;
	});
}

SIM_API Status cublasGetPointerMode_v2(BlasHandle handle, PointerMode *mode) {
	return call("cublasGetPointerMode_v2", [&](Lock &) { answer(mode, find(handle)->pointer_mode); });
}

SIM_API Status cublasSetAtomicsMode(BlasHandle handle, AtomicsMode mode) {
	return call("cublasSetAtomicsMode", [&](Lock &) { find(handle)->atomics = mode; });
}

SIM_API Status cublasGetAtomicsMode(BlasHandle handle, AtomicsMode *mode) {
	return call("cublasGetAtomicsMode", [&](Lock &) { answer(mode, find(handle)->atomics); });
}

SIM_API Status cublasSetSmCountTarget(BlasHandle handle, int target) {
	return call("cublasSetSmCountTarget", [&](Lock &) {
		require(target >= 0, invalid_value);
		find(handle)->sm_count_target = target;
	});
}

SIM_API Status cublasGetSmCountTarget(BlasHandle handle, int *target) {
	return call("cublasGetSmCountTarget", [&](Lock &) { answer(target, find(handle)->sm_count_target); });
}
