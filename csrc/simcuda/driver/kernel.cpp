#include "entry.h"

namespace simcuda {

namespace {

// parameter_of copies the parameter, as cuLaunchKernel does before it returns.
std::vector<std::byte> parameter_of(const Kernel &kernel, void **parameters, void **extra) {
	require((parameters != nullptr) != (extra != nullptr), invalid_value);
	const void *at = parameters ? *parameters : nullptr;
	std::size_t bytes = kernel.parameter_bytes;
	for (; extra && *extra != launch_parameter_end; extra += 2) {
		if (*extra == launch_parameter_buffer)
			at = extra[1];
		else if (*extra == launch_parameter_size)
			bytes = *static_cast<const std::size_t *>(extra[1]);
		else
			refuse(invalid_value);
	}
	require(at && bytes == kernel.parameter_bytes, invalid_value);
	auto first = static_cast<const std::byte *>(at);
	return {first, first + bytes};
}

std::shared_ptr<Function> find_function(FunctionHandle handle) {
	auto function = simulator().functions.find(handle);
	if (!function)
		misuse(format("%p is no kernel", static_cast<void *>(handle)));
	require(function != nullptr, invalid_handle);
	return function;
}

void load(ModuleHandle *handle, const void *image) {
	auto context = current_context();
	require(handle && image, invalid_value);
	*handle = simulator().modules.add(std::make_shared<Module>(Module{context}));
}

} // namespace

Operation launch_operation(const std::shared_ptr<Context> &context, const KernelNodeParams &p) {
	auto function = find_function(p.function);
	require(function->context == context, invalid_handle);
	auto [grid_x, grid_y, grid_z] = p.grid;
	auto [block_x, block_y, block_z] = p.block;
	require(grid_x && grid_y && grid_z && block_x && block_y && block_z, invalid_value);
	require(grid_y <= 65535 && grid_z <= 65535 && block_x <= 1024 && block_y <= 1024 && block_z <= 64, invalid_value);
	require(std::uint64_t{block_x} * block_y * block_z <= 1024 && p.shared_bytes <= 227u << 10, invalid_value);
	auto launch = std::make_shared<Launch>(Launch{p.function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, p.shared_bytes,
		parameter_of(*function->kernel, p.parameters, p.extra), nullptr});
	launch->first = launch->parameter.data();
	auto plan = function->kernel->plan(launch->parameter);
	return {.what = function->kernel->name.c_str(), .launch = launch, .ranges = std::move(plan.ranges), .work = std::move(plan.work)};
}

} // namespace simcuda

using namespace simcuda;

// The image is not looked at: every module has every twin.
SIM_API Result cuModuleLoadData(ModuleHandle *handle, const void *image) {
	return api("cuModuleLoadData", [&](Lock &) { load(handle, image); });
}

SIM_API Result cuModuleLoadDataEx(ModuleHandle *handle, const void *image, unsigned, int *, void **) {
	return api("cuModuleLoadDataEx", [&](Lock &) { load(handle, image); });
}

SIM_API Result cuModuleLoadFatBinary(ModuleHandle *handle, const void *image) {
	return api("cuModuleLoadFatBinary", [&](Lock &) { load(handle, image); });
}

SIM_API Result cuModuleUnload(ModuleHandle handle) {
	return api("cuModuleUnload", [&](Lock &) {
		current_context();
		auto &sim = simulator();
		require(sim.modules.remove(handle) != nullptr, invalid_handle);
		sim.functions.remove_if([&](const Function &function) { return function.module == handle; });
	});
}

SIM_API Result cuModuleGetFunction(FunctionHandle *handle, ModuleHandle module_handle, const char *name) {
	return api("cuModuleGetFunction", [&](Lock &) {
		auto module = simulator().modules.find(module_handle);
		require(module != nullptr, invalid_handle);
		require(handle && name, invalid_value);
		auto kernel = find_kernel(name);
		require(kernel != nullptr, not_found);
		*handle = simulator().functions.add(std::make_shared<Function>(Function{module->context, module_handle, kernel}));
	});
}

SIM_API Result cuFuncGetAttribute(int *value, int attribute, FunctionHandle handle) {
	return api("cuFuncGetAttribute", [&](Lock &) {
		constexpr int function_max_threads_per_block = 0;
		find_function(handle);
		answer(value, attribute == function_max_threads_per_block ? 1024 : 0);
	});
}

SIM_API Result cuFuncSetAttribute(FunctionHandle handle, int, int) {
	return api("cuFuncSetAttribute", [&](Lock &) { find_function(handle); });
}

SIM_API Result cuLaunchKernel(FunctionHandle handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
	unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream_handle, void **parameters, void **extra) {
	return api("cuLaunchKernel", [&](Lock &) {
		auto context = current_context();
		auto function = find_function(handle);
		auto stream = find_stream(stream_handle);
		if (stream->context != context || function->context != context)
			misuse(format("cuLaunchKernel: %s of device %d is launched on a stream of device %d while device %d is current",
				function->kernel->name.c_str(), function->context->device.ordinal, stream->device.ordinal,
				context->device.ordinal));
		require(stream->context == context && function->context == context, invalid_handle);
		stream->submit(launch_operation(context, {handle, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
								 parameters, extra, nullptr, nullptr}),
			BadMemory::fault);
	});
}
