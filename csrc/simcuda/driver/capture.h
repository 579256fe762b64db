// Capture: what is submitted to a stream becomes a graph and is not done.
//
// A wait for an event that was recorded in a capture takes the waiting stream into
// it. The rules, and what each violation is answered with, are CUDA's; README.md
// says what of them is not documented.
#pragma once

#include "simulator.h"

#include <thread>

namespace simcuda {

// Capture is one sequence. The simulator's mutex guards it.
struct Capture {
	GraphPtr graph;
	GraphHandle handle;
	std::uint64_t id;
	const Stream *origin;
	CaptureMode mode;
	std::thread::id thread; // that began it
	std::vector<StreamPtr> streams{}; // that are in it, origin among them
	bool invalidated = false;
	bool ended = false;

	// fail makes the capture invalid and refuses.
	[[noreturn]] void fail(Result why);
	void require_valid() const { require(!invalidated, stream_capture_invalidated); }

	void add(Stream &stream, Operation operation, BadMemory bad);
	void join(const StreamPtr &stream, const std::vector<std::size_t> &after);
	// joined says whether all that was captured comes before the origin's end.
	bool joined() const;
	// leave takes a stream that ends out of the capture, which cannot be ended well.
	void leave(Stream &stream);
	// end takes all streams out of the capture.
	void end();
};

// wait_captured makes the stream wait for the event, where either is in a capture.
void wait_captured(const StreamPtr &stream, const Event &event);

// require_safe refuses what is potentially unsafe while somebody captures, and
// makes those captures invalid.
void require_safe();
// require_none_captures refuses to wait for a context that a capture is in.
void require_none_captures(const Context &context);
// require_legacy_usable refuses the legacy stream beside blocking ones that capture.
void require_legacy_usable(const Context &context);

// forget_graphs ends the captures of a context and forgets its graphs.
void forget_graphs(const Context &context);

} // namespace simcuda
