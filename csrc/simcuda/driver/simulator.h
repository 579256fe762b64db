// The state of the whole simulator, behind one mutex.
//
// One mutex is enough for a test double, and makes every transition (a record
// that is done, a device that dies, a handle that is destroyed) one step that
// nobody sees half of. It is not held while memory is copied, a kernel runs or
// a host function is called.
#pragma once

#include "device.h"
#include "fault.h"
#include "graph.h"
#include "handle.h"
#include "kernel.h"
#include "misuse.h"

namespace simcuda {

struct Simulator {
	std::mutex mutex;
	std::condition_variable progress; // something ended

	bool initialized = false;
	std::vector<std::unique_ptr<Device>> devices;
	HostMemory host;

	HandleTable<ContextHandle, Context> contexts;
	HandleTable<StreamHandle, Stream> streams;
	HandleTable<EventHandle, Event> events;
	HandleTable<PoolHandle, Pool> pools;
	HandleTable<ModuleHandle, Module> modules;
	HandleTable<FunctionHandle, Function> functions;
	HandleTable<GraphHandle, Graph> graphs;
	HandleTable<GraphNodeHandle, NodePlace> nodes;
	HandleTable<GraphExecHandle, Executable> executables;

	std::vector<std::shared_ptr<Capture>> captures; // under way
	std::uint64_t last_capture = 0;

	MisuseLog misuses;
	Faults faults;
	std::size_t threads = 0;
	std::uint64_t last_stream = 0;
	std::uint64_t last_stall = 0;
	std::map<std::uint64_t, std::shared_ptr<bool>> stalls; // by ticket: whether it was released
	std::map<std::string, long long> library_handles;      // of cuBLAS and cuSOLVER
};

// simulator is made on first use and never destroyed: threads may use it until
// the process ends.
SIM_SHARED Simulator &simulator();

// device_at refuses an ordinal that is not there: invalid_device.
Device &device_at(DeviceOrdinal ordinal);
// device_of answers the device that the address belongs to, or null.
Device *device_of(DevicePtr address);
// find_block answers the nameable block that the range lies in, or null.
BlockPtr find_block(Range range);
// reachable says whether work of the context may use the block.
bool reachable(const Context &context, const Block &block);

// Where the calling thread is.
SIM_SHARED std::shared_ptr<Context> current_context(); // refuses: invalid_context, or what the device died of
std::shared_ptr<Event> find_event(EventHandle handle);
SIM_SHARED StreamPtr find_stream(StreamHandle handle); // likewise, and invalid_handle

} // namespace simcuda
