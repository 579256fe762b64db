#include "handle.h"

namespace simcuda::solver {

namespace {

HandleTable<SolverHandle, LibraryHandle> &handles() {
	static auto &table = *new HandleTable<SolverHandle, LibraryHandle>;
	return table;
}

// Params are the parameters of functions with sizes of 64 bits; none is looked at.
struct Params {};

HandleTable<ParamsHandle, Params> &params() {
	static auto &table = *new HandleTable<ParamsHandle, Params>;
	return table;
}

void count() { simulator().library_handles["cusolver"] = static_cast<long long>(handles().size() + params().size()); }

} // namespace

std::shared_ptr<LibraryHandle> find(SolverHandle handle) {
	auto found = handles().find(handle);
	if (!found)
		misuse(format("%p is no handle of cuSOLVER", static_cast<void *>(handle)));
	require(found != nullptr, invalid_handle);
	return found;
}

void require_params(ParamsHandle handle) {
	auto found = params().find(handle);
	if (!found)
		misuse(format("%p is no parameters of cuSOLVER", static_cast<void *>(handle)));
	require(found != nullptr, invalid_value);
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

SIM_API Status cusolverDnCreateParams(ParamsHandle *handle) {
	return call("cusolverDnCreateParams", [&](Lock &) {
		require(handle != nullptr, invalid_value);
		*handle = params().add(std::make_shared<Params>());
		count();
	});
}

SIM_API Status cusolverDnDestroyParams(ParamsHandle handle) {
	return call("cusolverDnDestroyParams", [&](Lock &) {
		require_params(handle);
		params().remove(handle);
		count();
	});
}

SIM_API Status cusolverDnSetStream(SolverHandle handle, StreamHandle stream) {
	return call("cusolverDnSetStream", [&](Lock &) { find(handle)->stream = stream; });
}

SIM_API Status cusolverDnGetStream(SolverHandle handle, StreamHandle *stream) {
	return call("cusolverDnGetStream", [&](Lock &) { answer(stream, find(handle)->stream); });
}
