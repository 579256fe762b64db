// Copies and fills.
//
// A copy from memory that is not page-locked takes the bytes during the call,
// as if through a staging buffer; one to such memory returns when it is done. A
// captured copy does neither: it uses that memory whenever its graph runs.
//
// A device's copy reaches a pool of another only where that pool gave it access.
// cuMemcpyPeerAsync, which names both devices, needs none.
#include "entry.h"

#include <cstring>
#include <utility>

using namespace simcuda;

namespace {

enum class Side { anywhere, device, host, peer };

// on_device says whether the side is device memory whatever the address.
bool on_device(Side side) { return side == Side::device || side == Side::peer; }

// pageable says whether the simulator knows nothing of the address, so that it
// is the program's own memory.
bool pageable(DevicePtr address) {
	auto &host = simulator().host;
	return !device_of(address) && !host.find(address) && !host.allocated(address);
}

void copy(const char *function, Lock &lock, StreamHandle handle, DevicePtr to, Side to_side, DevicePtr from, Side from_side,
	std::size_t bytes) {
	auto stream = find_stream(handle);
	if (bytes == 0)
		return;
	require(to && from, invalid_value);
	bool out = !on_device(to_side) && pageable(to), in = !on_device(from_side) && pageable(from);
	for (auto [address, side] : {std::pair{to, to_side}, {from, from_side}}) {
		require(side != Side::host || !device_of(address), invalid_value);
		auto block = side == Side::peer ? nullptr : find_block({address, 1});
		require(!block || !block->pool || reachable(*stream->context, *block), invalid_value);
	}

	Operation operation{.what = function, .type = node_memcpy};
	operation.ranges = {out ? Range{} : Range{to, bytes}, in ? Range{} : Range{from, bytes}};
	auto target = out ? reinterpret_cast<std::byte *>(to) : nullptr;
	std::vector<std::byte> taken;
	auto source = reinterpret_cast<const std::byte *>(from);
	if (in && !stream->capture) {
		auto first = std::exchange(source, nullptr);
		taken.assign(first, first + bytes);
	}
	operation.work = [bytes, target, source, taken = std::move(taken)](std::span<std::byte *const> at) {
		std::memmove(target ? target : at[0], at[1] ? at[1] : source ? source : taken.data(), bytes);
	};
	stream->submit(std::move(operation));
	if (out && !stream->capture)
		stream->synchronize(lock);
}

// copy_and_wait is the form without a stream.
void copy_and_wait(const char *function, Lock &lock, DevicePtr to, Side to_side, DevicePtr from, Side from_side,
	std::size_t bytes) {
	copy(function, lock, nullptr, to, to_side, from, from_side, bytes);
	find_stream(nullptr)->synchronize(lock);
}

template <class Unit> void fill(const char *function, StreamHandle handle, DevicePtr to, Unit value, std::size_t count) {
	auto stream = find_stream(handle);
	if (count == 0)
		return;
	require(to % sizeof(Unit) == 0 && count <= SIZE_MAX / sizeof(Unit), invalid_value);
	stream->submit({
		.what = function,
		.type = node_memset,
		.ranges = {{to, count * sizeof(Unit)}},
		.work = [value, count](auto at) { std::fill_n(reinterpret_cast<Unit *>(at[0]), count, value); },
	});
}

DevicePtr address_of(const void *memory) { return reinterpret_cast<DevicePtr>(memory); }

} // namespace

SIM_API Result cuMemcpyAsync(DevicePtr to, DevicePtr from, std::size_t bytes, StreamHandle stream) {
	return api("cuMemcpyAsync",
		[&](Lock &lock) { copy("cuMemcpyAsync", lock, stream, to, Side::anywhere, from, Side::anywhere, bytes); });
}

SIM_API Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void *from, std::size_t bytes, StreamHandle stream) {
	return api("cuMemcpyHtoDAsync_v2", [&](Lock &lock) {
		copy("cuMemcpyHtoDAsync_v2", lock, stream, to, Side::device, address_of(from), Side::host, bytes);
	});
}

SIM_API Result cuMemcpyDtoHAsync_v2(void *to, DevicePtr from, std::size_t bytes, StreamHandle stream) {
	return api("cuMemcpyDtoHAsync_v2", [&](Lock &lock) {
		copy("cuMemcpyDtoHAsync_v2", lock, stream, address_of(to), Side::host, from, Side::device, bytes);
	});
}

SIM_API Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, std::size_t bytes, StreamHandle stream) {
	return api("cuMemcpyDtoDAsync_v2", [&](Lock &lock) {
		copy("cuMemcpyDtoDAsync_v2", lock, stream, to, Side::device, from, Side::device, bytes);
	});
}

SIM_API Result cuMemcpyPeerAsync(DevicePtr to, ContextHandle to_context, DevicePtr from, ContextHandle from_context,
	std::size_t bytes, StreamHandle stream) {
	return api("cuMemcpyPeerAsync", [&](Lock &lock) {
		for (auto [address, handle] : {std::pair{to, to_context}, {from, from_context}}) {
			auto context = simulator().contexts.find(handle);
			require(context != nullptr, invalid_context);
			if (device_of(address) != &context->device) {
				misuse(format("cuMemcpyPeerAsync: %#llx is not of device %d, which is named", address, context->device.ordinal));
				refuse(invalid_value);
			}
		}
		copy("cuMemcpyPeerAsync", lock, stream, to, Side::peer, from, Side::peer, bytes);
	});
}

SIM_API Result cuMemcpy(DevicePtr to, DevicePtr from, std::size_t bytes) {
	return api("cuMemcpy", [&](Lock &lock) { copy_and_wait("cuMemcpy", lock, to, Side::anywhere, from, Side::anywhere, bytes); });
}

SIM_API Result cuMemcpyHtoD_v2(DevicePtr to, const void *from, std::size_t bytes) {
	return api("cuMemcpyHtoD_v2", [&](Lock &lock) {
		copy_and_wait("cuMemcpyHtoD_v2", lock, to, Side::device, address_of(from), Side::host, bytes);
	});
}

SIM_API Result cuMemcpyDtoH_v2(void *to, DevicePtr from, std::size_t bytes) {
	return api("cuMemcpyDtoH_v2", [&](Lock &lock) {
		copy_and_wait("cuMemcpyDtoH_v2", lock, address_of(to), Side::host, from, Side::device, bytes);
	});
}

SIM_API Result cuMemcpyDtoD_v2(DevicePtr to, DevicePtr from, std::size_t bytes) {
	return api("cuMemcpyDtoD_v2", [&](Lock &lock) {
		copy_and_wait("cuMemcpyDtoD_v2", lock, to, Side::device, from, Side::device, bytes);
	});
}

SIM_API Result cuMemsetD8Async(DevicePtr to, unsigned char value, std::size_t count, StreamHandle stream) {
	return api("cuMemsetD8Async", [&](Lock &) { fill("cuMemsetD8Async", stream, to, value, count); });
}

SIM_API Result cuMemsetD16Async(DevicePtr to, unsigned short value, std::size_t count, StreamHandle stream) {
	return api("cuMemsetD16Async", [&](Lock &) { fill("cuMemsetD16Async", stream, to, value, count); });
}

SIM_API Result cuMemsetD32Async(DevicePtr to, unsigned value, std::size_t count, StreamHandle stream) {
	return api("cuMemsetD32Async", [&](Lock &) { fill("cuMemsetD32Async", stream, to, value, count); });
}
