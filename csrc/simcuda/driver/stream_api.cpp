#include "capture.h"
#include "entry.h"

#include <algorithm>

using namespace simcuda;

namespace {

void create(StreamHandle *handle, unsigned flags, int priority) {
	auto context = current_context();
	require(handle && (flags == stream_default || flags == stream_non_blocking), invalid_value);
	*handle = simulator().streams.add(std::make_shared<Stream>(context, flags, priority));
}

} // namespace

SIM_API Result cuStreamCreate(StreamHandle *handle, unsigned flags) {
	return api("cuStreamCreate", [&](Lock &) { create(handle, flags, 0); });
}

SIM_API Result cuStreamCreateWithPriority(StreamHandle *handle, unsigned flags, int priority) {
	return api("cuStreamCreateWithPriority",
		[&](Lock &) { create(handle, flags, std::clamp(priority, greatest_priority, least_priority)); });
}

SIM_API Result cuStreamDestroy_v2(StreamHandle handle) {
	return api("cuStreamDestroy_v2", [&](Lock &) {
		auto stream = simulator().streams.remove(handle);
		if (!stream)
			misuse(format("cuStreamDestroy: %p is no stream", static_cast<void *>(handle)));
		require(stream != nullptr, invalid_handle);
		if (stream->capture) {
			misuse(format("cuStreamDestroy: %p is capturing", static_cast<void *>(handle)));
			stream->capture->leave(*stream);
		}
		stream->close();
		stream->device.require_alive();
	});
}

SIM_API Result cuStreamQuery(StreamHandle handle) {
	return api("cuStreamQuery", [&](Lock &) {
		auto stream = find_stream(handle);
		stream->require_not_capturing();
		require(stream->idle(), not_ready);
	});
}

SIM_API Result cuStreamSynchronize(StreamHandle handle) {
	return api("cuStreamSynchronize", [&](Lock &lock) {
		auto stream = find_stream(handle);
		stream->synchronize(lock);
		stream->device.synchronized_pools();
	});
}

SIM_API Result cuStreamWaitEvent(StreamHandle handle, EventHandle event, unsigned flags) {
	return api("cuStreamWaitEvent", [&](Lock &) {
		auto stream = find_stream(handle);
		auto found = find_event(event);
		require(flags == 0, invalid_value);
		if (stream->capture || found->captured)
			return wait_captured(stream, *found);
		auto last = found->last;
		if (last && !(last->stream == stream->number))
			stream->wait("cuStreamWaitEvent", last);
	});
}

SIM_API Result cuStreamGetPriority(StreamHandle handle, int *priority) {
	return api("cuStreamGetPriority", [&](Lock &) { answer(priority, find_stream(handle)->priority); });
}

SIM_API Result cuStreamGetFlags(StreamHandle handle, unsigned *flags) {
	return api("cuStreamGetFlags", [&](Lock &) { answer(flags, find_stream(handle)->flags); });
}

SIM_API Result cuStreamGetCtx(StreamHandle handle, ContextHandle *context) {
	return api("cuStreamGetCtx", [&](Lock &) { answer(context, find_stream(handle)->context->handle); });
}

SIM_API Result cuStreamGetId(StreamHandle handle, unsigned long long *id) {
	return api("cuStreamGetId", [&](Lock &) { answer(id, find_stream(handle)->number); });
}
