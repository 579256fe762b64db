// Kernels. Those of Weir are compiled for the processor too, as twins that do a
// whole launch (csrc/kernels/twins.h); the simulator runs the twins.
//
// A launch is planned when it is submitted: the plan names the memory that the
// kernel will use, so that it can be checked, and the work that is done there.
#pragma once

#include "stream.h"

#include <string>

namespace simcuda {

// Plan is the work of one launch; see Operation.
struct Plan {
	std::vector<Range> ranges;
	std::function<void(std::span<std::byte *const>)> work;
};

// Kernel is one kernel, with one parameter of that size.
struct Kernel {
	std::string name;
	std::size_t parameter_bytes;
	std::function<Plan(std::vector<std::byte> parameter)> plan;
};

// find_kernel answers the kernel with that name, or null.
const Kernel *find_kernel(const std::string &name);

struct Module {
	std::shared_ptr<Context> context;
};

// Launch is how a kernel is launched: with what grid of what blocks, and the
// parameter. The simulator looks at the parameter alone.
struct Launch {
	FunctionHandle function;
	unsigned grid[3], block[3], shared_bytes;
	std::vector<std::byte> parameter;
	void *first; // where parameter is, for who asks for an array of parameters
};

// launch_operation is the work of a launch in that context. It refuses what no
// device can launch.
Operation launch_operation(const std::shared_ptr<Context> &context, const KernelNodeParams &parameters);

struct Function {
	std::shared_ptr<Context> context;
	ModuleHandle module;
	const Kernel *kernel;
};

} // namespace simcuda
