// Plain allocations, page-locked memory, and what pointers point to.
#include "entry.h"

using namespace simcuda;

namespace {

Result allocate_host(const char *function, void **memory, std::size_t bytes) {
	return api(function, [&](Lock &) {
		auto context = current_context();
		require(memory && bytes > 0, invalid_value);
		*memory = simulator().host.allocate(context.get(), bytes)->at;
	});
}

void describe(void *value, int attribute, const Block &block, DevicePtr address) {
	auto context = block.context ? block.context->handle : nullptr;
	switch (attribute) {
	case pointer_context:
		return answer(static_cast<ContextHandle *>(value), context);
	case pointer_memory_type:
		return answer(static_cast<unsigned *>(value), block.device ? memory_type_device : memory_type_host);
	case pointer_device_pointer:
		return answer(static_cast<DevicePtr *>(value), address);
	case pointer_host_pointer:
		require(!block.device, invalid_value);
		return answer(static_cast<DevicePtr *>(value), address);
	case pointer_is_managed:
		return answer(static_cast<bool *>(value), false);
	case pointer_device_ordinal:
		return answer(static_cast<int *>(value), block.device ? block.device->ordinal : block.context->device.ordinal);
	case pointer_range_start:
		return answer(static_cast<DevicePtr *>(value), block.address);
	case pointer_range_size:
		return answer(static_cast<std::size_t *>(value), block.bytes);
	case pointer_mapped:
		return answer(static_cast<bool *>(value), true);
	case pointer_pool:
		for (const auto &[handle, pool] : simulator().pools)
			if (pool == block.pool)
				return answer(static_cast<PoolHandle *>(value), handle);
		return answer(static_cast<PoolHandle *>(value), nullptr);
	default:
		refuse(not_supported);
	}
}

// find_host answers the page-locked block that starts there.
BlockPtr find_host(const char *function, void *memory) {
	auto address = reinterpret_cast<DevicePtr>(memory);
	auto block = simulator().host.find(address);
	if (!block || block->address != address)
		misuse(format("%s: %p is no page-locked memory, or was freed before", function, memory));
	require(block && block->address == address, invalid_value);
	return block;
}

} // namespace

SIM_API Result cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
	return api("cuMemGetInfo_v2", [&](Lock &) {
		const auto &arena = current_context()->device.arena;
		answer(free, arena.bytes() - arena.used());
		answer(total, arena.bytes());
	});
}

SIM_API Result cuMemAlloc_v2(DevicePtr *address, std::size_t bytes) {
	return api("cuMemAlloc_v2", [&](Lock &) {
		auto context = current_context();
		require(address && bytes > 0, invalid_value);
		*address = context->device.allocate(context.get(), bytes)->address;
	});
}

SIM_API Result cuMemFree_v2(DevicePtr address) {
	return api("cuMemFree_v2", [&](Lock &lock) {
		current_context();
		auto find = [&] {
			auto block = find_block({address, 1});
			if (!block || block->address != address || !block->device)
				misuse(format("cuMemFree: %#llx is no allocation, or was freed before", address));
			require(block && block->address == address && block->device, invalid_value);
			return block;
		};
		auto device = find()->device;
		device->drain(lock);
		auto block = find(); // again: the wait let others in
		if (block->pool)
			block->pool->free_now(block);
		else
			device->release(block);
	});
}

SIM_API Result cuMemAllocHost_v2(void **memory, std::size_t bytes) { return allocate_host("cuMemAllocHost_v2", memory, bytes); }

SIM_API Result cuMemHostAlloc(void **memory, std::size_t bytes, unsigned) {
	return allocate_host("cuMemHostAlloc", memory, bytes);
}

SIM_API Result cuMemFreeHost(void *memory) {
	return api("cuMemFreeHost", [&](Lock &lock) {
		current_context();
		auto block = find_host("cuMemFreeHost", memory);
		require(simulator().host.allocated(block->address), invalid_value);
		if (block->pending)
			misuse(format("cuMemFreeHost: %p is freed while %d operations use it", memory, block->pending));
		simulator().progress.wait(lock, [&] { return block->pending == 0; });
		simulator().host.release(find_host("cuMemFreeHost", memory));
	});
}

SIM_API Result cuMemHostRegister_v2(void *memory, std::size_t bytes, unsigned) {
	return api("cuMemHostRegister_v2", [&](Lock &) {
		auto context = current_context();
		require(memory && bytes > 0, invalid_value);
		simulator().host.adopt(context.get(), memory, bytes);
	});
}

SIM_API Result cuMemHostUnregister(void *memory) {
	return api("cuMemHostUnregister", [&](Lock &lock) {
		current_context();
		auto block = simulator().host.find(reinterpret_cast<DevicePtr>(memory));
		require(block && block->at == memory && !simulator().host.allocated(block->address), host_memory_not_registered);
		simulator().progress.wait(lock, [&] { return block->pending == 0; });
		simulator().host.release(block);
	});
}

SIM_API Result cuMemHostGetDevicePointer_v2(DevicePtr *address, void *memory, unsigned) {
	return api("cuMemHostGetDevicePointer_v2", [&](Lock &) {
		current_context();
		require(simulator().host.find(reinterpret_cast<DevicePtr>(memory)) != nullptr, invalid_value);
		answer(address, reinterpret_cast<DevicePtr>(memory));
	});
}

SIM_API Result cuPointerGetAttribute(void *value, PointerAttribute attribute, DevicePtr address) {
	return api("cuPointerGetAttribute", [&](Lock &) {
		auto block = find_block({address, 1});
		require(block != nullptr, invalid_value);
		describe(value, attribute, *block, address);
	});
}

SIM_API Result cuMemGetAddressRange_v2(DevicePtr *start, std::size_t *bytes, DevicePtr address) {
	return api("cuMemGetAddressRange_v2", [&](Lock &) {
		current_context();
		auto block = find_block({address, 1});
		require(block != nullptr, invalid_value);
		if (start)
			*start = block->address;
		if (bytes)
			*bytes = block->bytes;
	});
}
