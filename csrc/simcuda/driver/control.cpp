#include "../weir_sim.h"

#include "simulator.h"

#include <cstring>

namespace simcuda {

namespace {

// device_with answers the device, or null.
Device *device_with(int ordinal) {
	auto &devices = simulator().devices;
	return ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices.size() ? devices[static_cast<std::size_t>(ordinal)].get()
										   : nullptr;
}

void revive(Device &device, Lock &lock) {
	auto &sim = simulator();
	device.die(context_is_destroyed);
	for (const auto &[_, stall] : sim.stalls)
		*stall = true;
	std::vector<std::shared_ptr<Context>> contexts;
	for (const auto &[_, context] : sim.contexts)
		if (&context->device == &device)
			contexts.push_back(context);
	device.quiesce(lock);
	for (const auto &context : contexts)
		destroy_context(context);
	if (device.host_caller)
		device.host_caller->close();
	sim.progress.wait(lock, [&] { return device.streams.empty() && (!device.host_caller || device.host_caller->idle()); });

	// What is left is of pools, some of which may have been destroyed before.
	device.primary = nullptr;
	device.retained = 0;
	std::set<PoolPtr> pools;
	for (const auto &[_, block] : device.blocks)
		pools.insert(block->pool);
	for (const auto &block : device.freed)
		pools.insert(block->pool);
	for (const auto &[_, pool] : sim.pools)
		if (&pool->device == &device)
			pools.insert(pool);
	for (const auto &pool : pools)
		pool->abandon();
	device.blocks.clear();
	device.freed.clear();
	sim.pools.remove_if([&](const Pool &pool) { return &pool.device == &device; });
	device.default_pool = device.current_pool = nullptr;
	device.error = success;
}

template <class Table> long long size_of(const Table &table) { return static_cast<long long>(table.size()); }

long long live(const std::string &kind) {
	const auto &sim = simulator();
	if (kind == "context")
		return size_of(sim.contexts);
	if (kind == "stream")
		return size_of(sim.streams);
	if (kind == "event")
		return size_of(sim.events);
	if (kind == "pool")
		return size_of(sim.pools);
	if (kind == "module")
		return size_of(sim.modules);
	if (kind == "function")
		return size_of(sim.functions);
	if (kind == "graph")
		return size_of(sim.graphs);
	if (kind == "graph-exec")
		return size_of(sim.executables);
	if (kind == "host-allocation")
		return static_cast<long long>(sim.host.count());
	if (kind == "thread")
		return static_cast<long long>(sim.threads);
	if (kind == "cublas" || kind == "cusolver") {
		auto at = sim.library_handles.find(kind);
		return at == sim.library_handles.end() ? 0 : at->second;
	}
	long long blocks = 0, bytes = 0;
	for (const auto &device : sim.devices) {
		blocks += size_of(device->blocks);
		bytes += static_cast<long long>(device->arena.used());
	}
	return kind == "allocation" ? blocks : kind == "byte" ? bytes : -1;
}

} // namespace

} // namespace simcuda

using namespace simcuda;

#define SIM_CONTROL __attribute__((visibility("default")))

SIM_CONTROL void weir_sim_kill(int ordinal, int error) {
	Lock lock(simulator().mutex);
	if (auto device = device_with(ordinal))
		device->die(static_cast<Result>(error));
}

SIM_CONTROL void weir_sim_drop_callbacks(long long count) {
	Lock lock(simulator().mutex);
	simulator().faults.drop_callbacks(count);
}

SIM_CONTROL unsigned long long weir_sim_stall(void *handle) {
	auto &sim = simulator();
	Lock lock(sim.mutex);
	auto stream = sim.streams.find(static_cast<StreamHandle>(handle));
	if (!stream || stream->device.error != success || stream->capture)
		return 0;
	auto released = std::make_shared<bool>(false);
	stream->submit({.what = "weir_sim_stall", .ready = [released] { return *released; }});
	sim.stalls.emplace(++sim.last_stall, released);
	return sim.last_stall;
}

SIM_CONTROL void weir_sim_release(unsigned long long ticket) {
	auto &sim = simulator();
	Lock lock(sim.mutex);
	if (auto stall = sim.stalls.extract(ticket)) {
		*stall.mapped() = true;
		sim.progress.notify_all();
	}
}

SIM_CONTROL void weir_sim_slow(void *handle, long long microseconds) {
	Lock lock(simulator().mutex);
	if (auto stream = simulator().streams.find(static_cast<StreamHandle>(handle)))
		stream->delay = std::chrono::microseconds(microseconds);
}

SIM_CONTROL void weir_sim_fail(const char *function, long long nth, int error) {
	Lock lock(simulator().mutex);
	simulator().faults.fail(function, nth, error);
}

SIM_CONTROL long long weir_sim_count(const char *function) {
	Lock lock(simulator().mutex);
	return simulator().faults.count(function);
}

SIM_CONTROL long long weir_sim_misuse(char *text, size_t size) {
	Lock lock(simulator().mutex);
	const auto &log = simulator().misuses;
	if (text && size) {
		std::string all;
		for (const auto &line : log.texts())
			all += line + '\n';
		auto length = std::min(all.size(), size - 1);
		std::memcpy(text, all.data(), length);
		text[length] = '\0';
	}
	return static_cast<long long>(log.count());
}

SIM_CONTROL long long weir_sim_live(const char *kind) {
	Lock lock(simulator().mutex);
	return live(kind);
}

SIM_CONTROL void weir_sim_revive(void) {
	Lock lock(simulator().mutex);
	for (const auto &device : simulator().devices)
		if (device->error != success)
			revive(*device, lock);
}

SIM_CONTROL void weir_sim_reset(void) {
	auto &sim = simulator();
	Lock lock(sim.mutex);
	for (const auto &device : sim.devices)
		revive(*device, lock);
	sim.misuses.clear();
	sim.faults.clear();
	sim.stalls.clear();
}
