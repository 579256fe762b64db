#include "capture.h"
#include "entry.h"

namespace simcuda {

bool Record::over() const { return done || abandoned || device->error != success; }

std::shared_ptr<Event> find_event(EventHandle handle) {
	auto event = simulator().events.find(handle);
	if (!event)
		misuse(format("%p is no event", static_cast<void *>(handle)));
	require(event != nullptr, invalid_handle);
	event->context->device.require_alive();
	return event;
}

namespace {

// find_queued answers an event whose state may be asked for: not a captured one.
std::shared_ptr<Event> find_queued(EventHandle handle) {
	auto event = find_event(handle);
	if (event->captured)
		event->captured->capture->fail(captured_event);
	return event;
}

Result record(const char *function, EventHandle handle, StreamHandle stream_handle, unsigned flags) {
	return api(function, [&](Lock &) {
		auto event = find_event(handle);
		auto stream = find_stream(stream_handle);
		require(flags == 0, invalid_value);
		if (event->context != stream->context)
			misuse(format("%s: an event of device %d is recorded on a stream of device %d", function,
				event->context->device.ordinal, stream->device.ordinal));
		require(event->context == stream->context, invalid_handle);
		if (const auto &capture = stream->capture) {
			capture->require_valid();
			event->last = nullptr;
			event->captured = std::make_shared<CapturedRecord>(CapturedRecord{capture, stream->after});
			return;
		}
		event->last = stream->record(function);
		event->captured = nullptr;
	});
}

} // namespace

} // namespace simcuda

using namespace simcuda;

SIM_API Result cuEventCreate(EventHandle *handle, unsigned flags) {
	return api("cuEventCreate", [&](Lock &) {
		auto context = current_context();
		require(handle && !(flags & ~(event_blocking_sync | event_disable_timing)), invalid_value);
		*handle = simulator().events.add(std::make_shared<Event>(Event{context, flags, nullptr}));
	});
}

SIM_API Result cuEventDestroy_v2(EventHandle handle) {
	return api("cuEventDestroy_v2", [&](Lock &) {
		auto event = simulator().events.remove(handle);
		if (!event)
			misuse(format("cuEventDestroy: %p is no event", static_cast<void *>(handle)));
		require(event != nullptr, invalid_handle);
		event->context->device.require_alive();
	});
}

SIM_API Result cuEventRecord(EventHandle event, StreamHandle stream) { return record("cuEventRecord", event, stream, 0); }

SIM_API Result cuEventRecordWithFlags(EventHandle event, StreamHandle stream, unsigned flags) {
	return record("cuEventRecordWithFlags", event, stream, flags);
}

SIM_API Result cuEventQuery(EventHandle handle) {
	return api("cuEventQuery", [&](Lock &) {
		auto last = find_queued(handle)->last;
		require_safe();
		require(!last || last->done, not_ready);
	});
}

SIM_API Result cuEventSynchronize(EventHandle handle) {
	return api("cuEventSynchronize", [&](Lock &lock) {
		auto event = find_queued(handle);
		require_safe();
		auto &device = event->context->device;
		if (auto last = event->last) {
			simulator().progress.wait(lock, [&] { return last->over(); });
			device.require_alive();
			require(last->done, context_is_destroyed);
		}
		device.synchronized_pools();
	});
}

static Result elapsed(const char *function, float *milliseconds, EventHandle from, EventHandle to) {
	return api(function, [&](Lock &) {
		auto start = find_queued(from), end = find_queued(to);
		require(milliseconds != nullptr, invalid_value);
		for (const auto &event : {start, end})
			require(event->last && !(event->flags & event_disable_timing), invalid_handle);
		require(start->context == end->context, invalid_handle);
		require(start->last->done && end->last->done, not_ready);
		*milliseconds = std::chrono::duration<float, std::milli>(end->last->when - start->last->when).count();
	});
}

SIM_API Result cuEventElapsedTime(float *milliseconds, EventHandle start, EventHandle end) {
	return elapsed("cuEventElapsedTime", milliseconds, start, end);
}

SIM_API Result cuEventElapsedTime_v2(float *milliseconds, EventHandle start, EventHandle end) {
	return elapsed("cuEventElapsedTime_v2", milliseconds, start, end);
}
