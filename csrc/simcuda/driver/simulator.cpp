#include "simulator.h"

namespace simcuda {

Simulator &simulator() {
	static auto &instance = *new Simulator;
	return instance;
}

Device &device_at(DeviceOrdinal ordinal) {
	auto &devices = simulator().devices;
	require(ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices.size(), invalid_device);
	return *devices[static_cast<std::size_t>(ordinal)];
}

Device *device_of(DevicePtr address) {
	for (const auto &device : simulator().devices)
		if (device->arena.contains(address))
			return device.get();
	return nullptr;
}

BlockPtr find_block(Range range) {
	if (const auto *device = device_of(range.address))
		return device->find(range);
	auto block = simulator().host.find(range.address);
	return block && range.bytes <= block->bytes - (range.address - block->address) ? block : nullptr;
}

bool reachable(const Context &context, const Block &block) {
	if (!block.device || block.device == &context.device)
		return true;
	return block.pool ? block.pool->allows(context.device.ordinal) : context.peers.contains(block.context);
}

} // namespace simcuda
