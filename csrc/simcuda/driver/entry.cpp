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
	return planned;
}

} // namespace simcuda
