// Streams: a queue of operations and a thread that runs them in order.
//
// The thread is started by the first operation and ends when the stream was
// destroyed and its queue is empty, or when the process ends. It sleeps and
// decides under the simulator's mutex and works without it.
#pragma once

#include "event.h"
#include "memory.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace simcuda {

struct Launch;

using Lock = std::unique_lock<std::mutex>;

// Operation is one thing that a stream does. Each part may be missing. What can be
// captured is submitted as often as its graph is launched: it keeps no state.
struct Operation {
	const char *what; // the function that submitted it
	NodeType type = node_kernel; // what a capture makes of it
	std::shared_ptr<const Launch> launch{}; // of a kernel that can be launched anew
	// ranges is the memory that work uses; work gets where to find each.
	std::vector<Range> ranges{};
	std::function<void(std::span<std::byte *const>)> work{}; // without the mutex
	// host is called before work, with its argument, by the device's HostCaller.
	HostFunction host{};
	void *argument{};

	// The rest runs with the mutex held. begin comes first; work starts when
	// ready holds; end follows work; abandon takes the place of end on a device
	// that died before.
	std::function<void()> begin{};
	std::function<bool()> ready{};
	std::function<void()> end{};
	std::function<void()> abandon{};
};

// BadMemory says what happens to an operation on memory that is not allocated:
// a copy or a fill is refused; a kernel faults on the device, also on memory of
// another device that it has no access to, as does whatever a graph does.
enum class BadMemory { refuse, fault };

inline constexpr int least_priority = 0, greatest_priority = -5;

struct Stream : std::enable_shared_from_this<Stream> {
	Stream(std::shared_ptr<Context> context, unsigned flags, int priority);

	const std::shared_ptr<Context> context;
	Device &device;
	const std::uint64_t number; // never used again
	const unsigned flags;
	const int priority;

	std::uint64_t submitted = 0;
	std::uint64_t completed = 0;
	Known known;
	std::chrono::microseconds delay{0}; // before each operation
	bool closed = false;                // takes no more work

	std::shared_ptr<Capture> capture{};        // that it is in, or null
	std::vector<std::size_t> after{};          // the nodes that the next captured one comes behind
	std::vector<GraphNodeHandle> reported{};   // their handles, as last asked for

	// submit queues the operation, or adds it to the capture.
	SIM_SHARED void submit(Operation operation, BadMemory bad = BadMemory::refuse);
	// record marks the stream's tail.
	RecordPtr record(const char *what);
	void wait(const char *what, RecordPtr record);
	// synchronize waits until everything submitted is over.
	SIM_SHARED void synchronize(Lock &lock);
	// idle says whether everything submitted is over.
	bool idle() const { return completed == submitted; }
	// require_not_capturing ends what a capture must not see: the capture is
	// invalid, and the call refused with stream_capture_unsupported.
	SIM_SHARED void require_not_capturing() const;
	// close lets the queue run empty and ends the thread.
	void close();

private:
	struct Queued {
		Operation operation;
		std::vector<BlockPtr> blocks;    // of each range; null without bytes
		std::vector<std::byte *> places; // likewise
		bool illegal = false;            // uses memory that is not allocated
	};
	void run(Lock &lock);
	void execute(Queued &queued, Lock &lock);
	void launch(Queued &queued, Lock &lock);

	std::condition_variable arrival_;
	std::deque<Queued> queue_;
	bool started_ = false;
};
using StreamPtr = std::shared_ptr<Stream>;

// start_thread runs body on a thread of its own that takes no signals, holds the
// simulator's mutex, as the caller does, and is counted until body ends.
void start_thread(std::function<void(Lock &)> body);

} // namespace simcuda
