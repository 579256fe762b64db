#include "capture.h"
#include "entry.h"

namespace simcuda {

int enter(const char *function) {
	auto &sim = simulator();
	int planned = sim.faults.called(function);
	if (HostCaller::calling()) {
		misuse(format("%s was called in a host function", function));
		refuse(not_permitted);
	}
	require(sim.initialized || std::string(function) == "cuInit", not_initialized);
	// CUDA has no list of what is potentially unsafe while a stream is capturing.
	static const std::set<std::string> unsafe{"cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemFreeHost",
		"cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemcpy", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2",
		"cuMemPoolTrimTo", "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleUnload", "cublasCreate_v2",
		"cublasDestroy_v2", "cusolverDnCreate", "cusolverDnDestroy"};
	if (!sim.captures.empty() && unsafe.contains(function))
		require_safe();
	return planned;
}

} // namespace simcuda
