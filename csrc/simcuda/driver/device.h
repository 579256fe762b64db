// Devices and contexts.
#pragma once

#include "host_function.h"
#include "pool.h"

#include <set>

namespace simcuda {

struct Device;

// Context is what a device's streams, events and memory belong to.
struct Context {
	Device &device;
	bool primary;
	ContextHandle handle = nullptr;
	std::set<const Context *> peers{}; // whose memory it may use
	StreamPtr default_stream{};
	bool destroyed = false;
};

// Device is one simulated GPU. The simulator's mutex guards it.
struct Device {
	Device(int ordinal, int place, std::size_t memory) : ordinal(ordinal), place(place), arena(memory) {}

	const int ordinal;
	const int place; // among all devices, also those that are not visible
	Arena arena;
	Result error = success; // what the device died of

	// blocks is the memory that calls may name now, by address. freed is what
	// they may not, while the free has not been reached by its stream.
	std::map<DevicePtr, BlockPtr> blocks;
	std::vector<BlockPtr> freed;

	std::vector<StreamPtr> streams; // that have a thread
	std::shared_ptr<Context> primary;
	int retained = 0;
	PoolPtr default_pool, current_pool;
	std::unique_ptr<HostCaller> host_caller;

	// call gives the function to the thread that calls them.
	void call(std::shared_ptr<HostCall> call);
	void require_alive() const { require(error == success, error); }
	// die ends all work of the device, and with it that of every other, as the real
	// driver does; the first error stays.
	void die(Result why);
	// quiesce waits until everything submitted to the device is over; what a
	// dead device was given is over soon. drain also refuses on a dead device.
	SIM_SHARED void quiesce(Lock &lock);
	void drain(Lock &lock);
	void synchronized_pools();

	BlockPtr allocate(Context *context, std::size_t bytes);
	// release gives back a plain allocation that nothing uses.
	void release(const BlockPtr &block);
	// find answers the nameable block that the range lies in, or null.
	BlockPtr find(Range range) const;
	// find_live answers the block that holds the range at this moment.
	BlockPtr find_live(Range range) const;
};

// fatal says whether an error ends the context.
bool fatal(Result error);

// destroy_context ends the context's streams and forgets all that is its own.
void destroy_context(const std::shared_ptr<Context> &context);

} // namespace simcuda
