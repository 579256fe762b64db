#include "capture.h"
#include "entry.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace simcuda {

namespace {

thread_local std::vector<ContextHandle> current;

constexpr std::size_t device_bytes = std::size_t{8} << 30;

long environment(const char *name, long otherwise) {
	const char *text = std::getenv(name);
	return text && *text ? std::strtol(text, nullptr, 10) : otherwise;
}

// visible_devices answers places as NVIDIA's driver does: CUDA_VISIBLE_DEVICES
// lists them in order, and the first that there is not ends the list. So does one
// that is there already, of which NVIDIA's documentation says nothing.
std::vector<long> visible_devices() {
	long there = environment("WEIR_SIM_DEVICES", 2);
	const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
	std::vector<long> visible;
	if (!list) {
		for (long place = 0; place < there; place++)
			visible.push_back(place);
		return visible;
	}
	for (char *end; *list; list = *end ? end + 1 : end) {
		long place = std::strtol(list, &end, 10);
		if (end == list || (*end && *end != ',') || place < 0 || place >= there ||
			std::find(visible.begin(), visible.end(), place) != visible.end())
			break;
		visible.push_back(place);
	}
	return visible;
}

std::shared_ptr<Context> find_context(ContextHandle handle) {
	auto context = simulator().contexts.find(handle);
	require(context != nullptr, invalid_context);
	return context;
}

std::shared_ptr<Context> new_context(Device &device, bool primary) {
	auto context = std::make_shared<Context>(Context{device, primary});
	context->handle = simulator().contexts.add(context);
	return context;
}

std::shared_ptr<Context> stream_context() {
	auto context = simulator().contexts.find(current.empty() ? nullptr : current.back());
	require(context != nullptr, invalid_context);
	return context;
}

int attribute_of(const Device &device, int attribute) {
	switch (attribute) {
	case max_threads_per_block:
	case max_block_dim_x:
	case max_block_dim_y:
		return 1024;
	case max_block_dim_z:
		return 64;
	case max_grid_dim_x:
		return 2147483647;
	case max_grid_dim_y:
	case max_grid_dim_z:
		return 65535;
	case max_shared_memory_per_block:
		return 48 << 10;
	case max_shared_memory_per_block_optin:
		return 227 << 10;
	case max_shared_memory_per_multiprocessor:
		return 228 << 10;
	case total_constant_memory:
	case max_registers_per_block:
		return 64 << 10;
	case warp_size:
		return 32;
	case multiprocessor_count:
		return 4;
	case max_threads_per_multiprocessor:
		return 2048;
	case async_engine_count:
		return 2;
	case compute_capability_major:
		return 9;
	case compute_capability_minor:
	case pci_device_id:
	case pci_domain_id:
		return 0;
	case pci_bus_id:
		return device.place + 1;
	case gpu_overlap:
	case can_map_host_memory:
	case concurrent_kernels:
	case unified_addressing:
	case stream_priorities_supported:
	case cooperative_launch:
	case host_register_supported:
		return 1;
	case memory_pools_supported:
		return environment("WEIR_SIM_POOLS", 1) != 0;
	default:
		return 0;
	}
}

} // namespace

std::shared_ptr<Context> current_context() {
	auto context = stream_context();
	context->device.require_alive();
	return context;
}

Result planned_failure(int error) {
	auto result = static_cast<Result>(error);
	auto context = simulator().contexts.find(current.empty() ? nullptr : current.back());
	if (fatal(result) && context)
		context->device.die(result);
	return result;
}

StreamPtr find_stream(StreamHandle handle) {
	auto context = stream_context();
	if (!handle || handle == legacy_stream || handle == per_thread_stream) {
		if (!context->default_stream)
			context->default_stream = std::make_shared<Stream>(context, stream_default, least_priority);
		context->device.require_alive();
		if (handle != per_thread_stream)
			require_legacy_usable(*context);
		return context->default_stream;
	}
	auto stream = simulator().streams.find(handle);
	if (!stream)
		misuse(format("%p is no stream", static_cast<void *>(handle)));
	require(stream != nullptr, invalid_handle);
	stream->device.require_alive();
	return stream;
}

} // namespace simcuda

using namespace simcuda;

SIM_API Result cuInit(unsigned flags) {
	return api("cuInit", [&](Lock &) {
		require(flags == 0, invalid_value);
		auto &sim = simulator();
		if (!sim.initialized)
			for (long place : visible_devices())
				sim.devices.push_back(std::make_unique<Device>(static_cast<int>(sim.devices.size()), static_cast<int>(place), device_bytes));
		require(!sim.devices.empty(), no_device);
		sim.initialized = true;
	});
}

SIM_API Result cuDriverGetVersion(int *version) {
	// This one works before cuInit.
	if (!version)
		return invalid_value;
	*version = static_cast<int>(environment("WEIR_SIM_DRIVER_VERSION", 13000));
	return success;
}

SIM_API Result cuDeviceGetCount(int *count) {
	return api("cuDeviceGetCount", [&](Lock &) { answer(count, simulator().devices.size()); });
}

SIM_API Result cuDeviceGet(DeviceOrdinal *device, int ordinal) {
	return api("cuDeviceGet", [&](Lock &) { answer(device, device_at(ordinal).ordinal); });
}

SIM_API Result cuDeviceGetName(char *name, int length, DeviceOrdinal ordinal) {
	return api("cuDeviceGetName", [&](Lock &) {
		device_at(ordinal);
		require(name && length > 0, invalid_value);
		std::strncpy(name, "simulated GPU", static_cast<std::size_t>(length));
		name[length - 1] = '\0';
	});
}

static Result uuid(const char *function, Uuid *uuid, DeviceOrdinal ordinal) {
	return api(function, [&](Lock &) {
		Uuid value{{'s', 'i', 'm', 'u', 'l', 'a', 't', 'e', 'd', ' ', 'G', 'P', 'U', ' ', ' '}};
		value.bytes[15] = static_cast<char>('0' + device_at(ordinal).place);
		answer(uuid, value);
	});
}

SIM_API Result cuDeviceGetUuid(Uuid *value, DeviceOrdinal ordinal) { return uuid("cuDeviceGetUuid", value, ordinal); }
SIM_API Result cuDeviceGetUuid_v2(Uuid *value, DeviceOrdinal ordinal) { return uuid("cuDeviceGetUuid_v2", value, ordinal); }

SIM_API Result cuDeviceGetPCIBusId(char *name, int length, DeviceOrdinal ordinal) {
	return api("cuDeviceGetPCIBusId", [&](Lock &) {
		auto text = format("0000:%02x:00.0", static_cast<unsigned>(attribute_of(device_at(ordinal), pci_bus_id)));
		require(name && length > static_cast<int>(text.size()), invalid_value);
		std::memcpy(name, text.c_str(), text.size() + 1);
	});
}

SIM_API Result cuDeviceTotalMem_v2(std::size_t *bytes, DeviceOrdinal ordinal) {
	return api("cuDeviceTotalMem_v2", [&](Lock &) { answer(bytes, device_at(ordinal).arena.bytes()); });
}

SIM_API Result cuDeviceGetAttribute(int *value, DeviceAttribute attribute, DeviceOrdinal ordinal) {
	return api("cuDeviceGetAttribute", [&](Lock &) { answer(value, attribute_of(device_at(ordinal), attribute)); });
}

SIM_API Result cuDeviceCanAccessPeer(int *can, DeviceOrdinal ordinal, DeviceOrdinal peer) {
	return api("cuDeviceCanAccessPeer", [&](Lock &) { answer(can, &device_at(ordinal) != &device_at(peer)); });
}

SIM_API Result cuDevicePrimaryCtxRetain(ContextHandle *handle, DeviceOrdinal ordinal) {
	return api("cuDevicePrimaryCtxRetain", [&](Lock &) {
		auto &device = device_at(ordinal);
		device.require_alive();
		if (!device.primary)
			device.primary = new_context(device, true);
		answer(handle, device.primary->handle);
		device.retained++;
	});
}

SIM_API Result cuDevicePrimaryCtxRelease_v2(DeviceOrdinal ordinal) {
	return api("cuDevicePrimaryCtxRelease_v2", [&](Lock &lock) {
		auto &device = device_at(ordinal);
		require(device.retained > 0, invalid_context);
		if (--device.retained > 0)
			return;
		device.quiesce(lock);
		// Meanwhile another thread may have retained it, and released it too.
		if (device.retained == 0 && device.primary)
			destroy_context(std::exchange(device.primary, nullptr));
	});
}

SIM_API Result cuDevicePrimaryCtxGetState(DeviceOrdinal ordinal, unsigned *flags, int *active) {
	return api("cuDevicePrimaryCtxGetState", [&](Lock &) {
		auto &device = device_at(ordinal);
		answer(flags, 0);
		answer(active, device.primary != nullptr);
	});
}

static Result create(const char *function, ContextHandle *handle, DeviceOrdinal ordinal) {
	return api(function, [&](Lock &) {
		auto &device = device_at(ordinal);
		device.require_alive();
		require(handle != nullptr, invalid_value);
		*handle = new_context(device, false)->handle;
		current.push_back(*handle);
	});
}

SIM_API Result cuCtxCreate_v2(ContextHandle *handle, unsigned, DeviceOrdinal ordinal) {
	return create("cuCtxCreate_v2", handle, ordinal);
}

SIM_API Result cuCtxCreate_v4(ContextHandle *handle, void *, unsigned, DeviceOrdinal ordinal) {
	return create("cuCtxCreate_v4", handle, ordinal);
}

SIM_API Result cuCtxDestroy_v2(ContextHandle handle) {
	return api("cuCtxDestroy_v2", [&](Lock &lock) {
		auto context = find_context(handle);
		require(!context->primary, invalid_context);
		context->device.quiesce(lock);
		destroy_context(context);
		if (!current.empty() && current.back() == handle)
			current.pop_back();
	});
}

SIM_API Result cuCtxPushCurrent_v2(ContextHandle handle) {
	return api("cuCtxPushCurrent_v2", [&](Lock &) {
		find_context(handle);
		current.push_back(handle);
	});
}

SIM_API Result cuCtxPopCurrent_v2(ContextHandle *handle) {
	return api("cuCtxPopCurrent_v2", [&](Lock &) {
		require(!current.empty(), invalid_context);
		if (handle)
			*handle = current.back();
		current.pop_back();
	});
}

SIM_API Result cuCtxSetCurrent(ContextHandle handle) {
	return api("cuCtxSetCurrent", [&](Lock &) {
		if (handle)
			find_context(handle);
		if (!current.empty())
			current.pop_back();
		if (handle)
			current.push_back(handle);
	});
}

SIM_API Result cuCtxGetCurrent(ContextHandle *handle) {
	return api("cuCtxGetCurrent", [&](Lock &) { answer(handle, current.empty() ? nullptr : current.back()); });
}

SIM_API Result cuCtxGetDevice(DeviceOrdinal *ordinal) {
	return api("cuCtxGetDevice", [&](Lock &) { answer(ordinal, current_context()->device.ordinal); });
}

SIM_API Result cuCtxSynchronize() {
	return api("cuCtxSynchronize", [&](Lock &lock) {
		auto context = current_context();
		require_none_captures(*context);
		context->device.drain(lock);
	});
}

SIM_API Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
	return api("cuCtxGetStreamPriorityRange", [&](Lock &) {
		current_context();
		if (least)
			*least = least_priority;
		if (greatest)
			*greatest = greatest_priority;
	});
}

SIM_API Result cuCtxEnablePeerAccess(ContextHandle handle, unsigned flags) {
	return api("cuCtxEnablePeerAccess", [&](Lock &) {
		auto context = current_context(), peer = find_context(handle);
		require(flags == 0, invalid_value);
		require(&context->device != &peer->device, invalid_device);
		require(context->peers.insert(peer.get()).second, peer_access_already_enabled);
	});
}

SIM_API Result cuCtxDisablePeerAccess(ContextHandle handle) {
	return api("cuCtxDisablePeerAccess", [&](Lock &) {
		auto context = current_context(), peer = find_context(handle);
		require(context->peers.erase(peer.get()) == 1, peer_access_not_enabled);
	});
}
