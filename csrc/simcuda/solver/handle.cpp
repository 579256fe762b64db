#include "handle.h"

namespace simcuda::solver {

namespace {

HandleTable<SolverHandle, LibraryHandle> &handles() {
	static auto &table = *new HandleTable<SolverHandle, LibraryHandle>;
	return table;
}

void count() { simulator().library_handles["cusolver"] = static_cast<long long>(handles().size()); }

} // namespace

std::shared_ptr<LibraryHandle> find(SolverHandle handle) {
	auto found = handles().find(handle);
	if (!found)
		misuse(format("%p is no handle of cuSOLVER", static_cast<void *>(handle)));
	require(found != nullptr, invalid_handle);
	return found;
}

} // namespace simcuda::solver

using namespace simcuda;
using namespace simcuda::solver;

SIM_API Status cusolverGetVersion(int *value) {
	return call("cusolverGetVersion", [&](Lock &) { answer(value, version); });
}

SIM_API Status cusolverDnCreate(SolverHandle *handle) {
	return call("cusolverDnCreate", [&](Lock &) {
		require(handle != nullptr, invalid_value);
		*handle = handles().add(std::make_shared<LibraryHandle>(LibraryHandle{current_context()}));
		count();
	});
}

// It waits for the device, as NVIDIA's does.
SIM_API Status cusolverDnDestroy(SolverHandle handle) {
	return call("cusolverDnDestroy", [&](Lock &lock) {
		auto found = find(handle);
		handles().remove(handle);
		count();
		found->context->device.quiesce(lock);
	});
}

SIM_API Status cusolverDnSetStream(SolverHandle handle, StreamHandle stream) {
	return call("cusolverDnSetStream", [&](Lock &) { find(handle)->stream = stream; });
}

SIM_API Status cusolverDnGetStream(SolverHandle handle, StreamHandle *stream) {
	return call("cusolverDnGetStream", [&](Lock &) { answer(stream, find(handle)->stream); });
}
