// Events and the places in streams that they mark.
#pragma once

#include "abi.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace simcuda {

struct Capture;
struct Context;
struct Device;

// Known says up to which place of each stream, by the stream's number, earlier
// work is known to be done before whatever comes next.
using Known = std::map<std::uint64_t, std::uint64_t>;

// Record is one place in a stream: everything submitted up to it. What waits
// for an event holds the record, not the event, so that a later record or the
// event's destruction changes nothing. The simulator's mutex guards it.
struct Record {
	Device *device;
	std::uint64_t stream; // the stream's number
	std::uint64_t place;  // how many operations it had been given
	Known known;          // what was done before that place
	bool done = false;
	bool abandoned = false; // the device died first
	std::chrono::steady_clock::time_point when{};

	// over says whether a wait for the record ends.
	bool over() const;
};
using RecordPtr = std::shared_ptr<Record>;

// CapturedRecord is one place in a capture: behind these nodes of its graph.
struct CapturedRecord {
	std::shared_ptr<Capture> capture;
	std::vector<std::size_t> after;
};

struct Event {
	std::shared_ptr<Context> context;
	unsigned flags;
	RecordPtr last; // null until it is recorded, and while its last record is captured
	std::shared_ptr<const CapturedRecord> captured{}; // the last record, if that was captured
};

} // namespace simcuda
