#include "capture.h"
#include "simulator.h"

namespace simcuda {

bool fatal(Result error) {
	switch (error) {
	case ecc_uncorrectable:
	case nvlink_uncorrectable:
	case illegal_address:
	case launch_timeout:
	case context_is_destroyed:
	case device_assert:
	case hardware_stack_error:
	case illegal_instruction:
	case misaligned_address:
	case invalid_address_space:
	case invalid_pc:
	case launch_failed:
		return true;
	default:
		return false;
	}
}

void Device::die(Result why) {
	if (error != success)
		return;
	for (const auto &device : simulator().devices)
		if (device->error == success)
			device->error = why;
	simulator().progress.notify_all();
}

void Device::call(std::shared_ptr<HostCall> call) {
	if (!host_caller)
		host_caller = std::make_unique<HostCaller>();
	host_caller->call(std::move(call));
}

void Device::quiesce(Lock &lock) {
	std::vector<std::pair<StreamPtr, std::uint64_t>> tails;
	for (const auto &stream : streams)
		tails.emplace_back(stream, stream->submitted);
	for (const auto &[stream, tail] : tails)
		simulator().progress.wait(lock, [&] { return stream->completed >= tail; });
}

void Device::drain(Lock &lock) {
	quiesce(lock);
	require_alive();
	synchronized_pools();
}

void Device::synchronized_pools() {
	if (default_pool)
		default_pool->synchronized();
	for (const auto &[_, pool] : simulator().pools)
		if (&pool->device == this && pool != default_pool)
			pool->synchronized();
}

BlockPtr Device::allocate(Context *context, std::size_t bytes) {
	auto address = arena.take(bytes);
	auto block = std::make_shared<Block>(Block{context, this, nullptr, address, bytes, arena.at(address)});
	arena.poison_fresh(address, bytes);
	blocks.emplace(address, block);
	return block;
}

void Device::release(const BlockPtr &block) {
	block->live = false;
	arena.give(block->address);
	blocks.erase(block->address);
}

BlockPtr Device::find(Range range) const {
	auto next = blocks.upper_bound(range.address);
	if (next == blocks.begin())
		return nullptr;
	const auto &block = std::prev(next)->second;
	auto offset = range.address - block->address;
	return offset < block->bytes && range.bytes <= block->bytes - offset ? block : nullptr;
}

BlockPtr Device::find_live(Range range) const {
	if (auto block = find(range); block && block->live)
		return block;
	for (const auto &block : freed) {
		auto offset = range.address - block->address;
		if (block->live && offset < block->bytes && range.bytes <= block->bytes - offset)
			return block;
	}
	return nullptr;
}

void destroy_context(const std::shared_ptr<Context> &context) {
	auto &sim = simulator();
	auto &device = context->device;
	context->destroyed = true;
	auto ours = [&](const auto &object) { return object.context == context; };
	for (const auto &stream : device.streams)
		if (stream->context == context)
			stream->close();
	for (const auto &[_, stream] : sim.streams)
		if (stream->context == context)
			stream->close();
	sim.streams.remove_if(ours);
	sim.events.remove_if(ours);
	sim.functions.remove_if(ours);
	sim.modules.remove_if(ours);
	std::vector<BlockPtr> gone;
	for (const auto &[_, block] : device.blocks)
		if (block->context == context.get())
			gone.push_back(block);
	for (const auto &block : gone)
		device.release(block);
	sim.host.release_all(context.get());
	forget_graphs(*context);
	context->default_stream = nullptr;
	sim.contexts.remove(context->handle);
}

} // namespace simcuda
