#include "capture.h"

#include "entry.h"

#include <algorithm>

namespace simcuda {

namespace {

thread_local CaptureMode thread_mode = capture_global;

void unite(std::vector<std::size_t> &places, const std::vector<std::size_t> &more) {
	places.insert(places.end(), more.begin(), more.end());
	std::sort(places.begin(), places.end());
	places.erase(std::unique(places.begin(), places.end()), places.end());
}

// occupies_legacy answers the capture of a blocking stream of the context, or null.
std::shared_ptr<Capture> occupies_legacy(const Context &context) {
	for (const auto &capture : simulator().captures)
		for (const auto &stream : capture->streams)
			if (stream->context.get() == &context && stream->flags == stream_default)
				return capture;
	return nullptr;
}

} // namespace

void Capture::fail(Result why) {
	invalidated = true;
	refuse(why);
}

void Capture::add(Stream &stream, Operation operation, BadMemory bad) {
	require_valid();
	for (const auto &range : operation.ranges)
		if (bad == BadMemory::refuse && range.bytes && !find_block(range)) {
			misuse(format("%s: %zu bytes at %#llx are not allocated memory that device %d can use", operation.what, range.bytes,
				range.address, stream.device.ordinal));
			refuse(invalid_value);
		}
	stream.after = {add_node(graph, std::move(operation), stream.after)};
}

void Capture::join(const StreamPtr &stream, const std::vector<std::size_t> &after) {
	require_valid();
	if (!stream->capture) {
		if (stream == stream->context->default_stream)
			fail(stream_capture_implicit);
		if (stream->context != graph->context)
			fail(not_supported); // by the simulator
		stream->capture = origin->capture;
		streams.push_back(stream);
	}
	unite(stream->after, after);
}

bool Capture::joined() const {
	std::vector<bool> before(graph->nodes.size());
	for (auto place : origin->after)
		before[place] = true;
	for (auto place = graph->nodes.size(); place-- > 0;)
		if (before[place])
			for (auto earlier : graph->nodes[place].after)
				before[earlier] = true;
	return std::all_of(before.begin(), before.end(), [](bool b) { return b; });
}

void Capture::leave(Stream &stream) {
	auto self = stream.capture; // which may be the last to hold it
	invalidated = true;
	if (&stream == origin) {
		end();
		remove_graph(handle);
		return;
	}
	stream.capture = nullptr;
	stream.after.clear();
	std::erase_if(streams, [&](const auto &other) { return other.get() == &stream; });
}

void Capture::end() {
	auto self = origin->capture;
	ended = true;
	for (const auto &stream : streams) {
		stream->capture = nullptr;
		stream->after.clear();
	}
	streams.clear();
	std::erase(simulator().captures, self);
}

void wait_captured(const StreamPtr &stream, const Event &event) {
	if (!event.captured) {
		stream->capture->require_valid();
		if (event.last)
			stream->capture->fail(stream_capture_isolation);
		return; // it was never recorded
	}
	const auto &capture = event.captured->capture;
	if (stream->capture && stream->capture != capture) {
		capture->invalidated = true;
		stream->capture->fail(capture->ended ? captured_event : stream_capture_merge);
	}
	require(!capture->ended, captured_event);
	capture->join(stream, event.captured->after);
}

void require_safe() {
	bool safe = true;
	for (const auto &capture : simulator().captures) {
		bool own = capture->thread == std::this_thread::get_id();
		bool heeded = own ? capture->mode != capture_relaxed : thread_mode == capture_global && capture->mode == capture_global;
		if (thread_mode == capture_relaxed || !heeded)
			continue;
		capture->invalidated = true;
		safe = false;
	}
	require(safe, stream_capture_unsupported);
}

void require_none_captures(const Context &context) {
	for (const auto &capture : simulator().captures)
		if (capture->graph->context.get() == &context)
			capture->fail(stream_capture_unsupported);
}

void require_legacy_usable(const Context &context) {
	if (auto capture = occupies_legacy(context))
		capture->fail(stream_capture_implicit);
}

void forget_graphs(const Context &context) {
	auto &sim = simulator();
	for (const auto &capture : std::vector(sim.captures))
		if (capture->graph->context.get() == &context)
			capture->end();
	auto ours = [&](const auto &object) { return object.context.get() == &context; };
	sim.nodes.remove_if([&](const NodePlace &node) { return ours(*node.graph); });
	sim.graphs.remove_if(ours);
	sim.executables.remove_if(ours);
}

namespace {

// describe answers a stream's capture; places may be null.
void describe(StreamHandle handle, CaptureStatus *status, std::uint64_t *id, GraphHandle *graph, const GraphNodeHandle **nodes,
	std::size_t *count) {
	bool legacy = !handle || handle == legacy_stream;
	require(!legacy || !occupies_legacy(*current_context()), stream_capture_implicit);
	auto stream = find_stream(handle);
	const auto &capture = stream->capture;
	answer(status, !capture ? capture_none : capture->invalidated ? capture_invalidated : capture_active);
	if (*status != capture_active)
		return;
	stream->reported.clear();
	for (auto place : stream->after)
		stream->reported.push_back(capture->graph->handles[place]);
	if (id)
		*id = capture->id;
	if (graph)
		*graph = capture->handle;
	if (nodes)
		*nodes = stream->reported.data();
	if (count)
		*count = stream->reported.size();
}

} // namespace

} // namespace simcuda

using namespace simcuda;

SIM_API Result cuStreamBeginCapture_v2(StreamHandle handle, CaptureMode mode) {
	return api("cuStreamBeginCapture_v2", [&](Lock &) {
		auto stream = find_stream(handle);
		require(mode == capture_global || mode == capture_thread_local || mode == capture_relaxed, invalid_value);
		require(stream != stream->context->default_stream, stream_capture_unsupported);
		require(!stream->capture, illegal_state);
		auto &sim = simulator();
		auto graph = std::make_shared<Graph>(Graph{stream->context});
		auto capture = std::make_shared<Capture>(
			Capture{graph, sim.graphs.add(graph), ++sim.last_capture, stream.get(), mode, std::this_thread::get_id()});
		capture->streams.push_back(stream);
		stream->capture = capture;
		sim.captures.push_back(capture);
	});
}

SIM_API Result cuStreamEndCapture(StreamHandle handle, GraphHandle *graph) {
	return api("cuStreamEndCapture", [&](Lock &) {
		require(graph != nullptr, invalid_value);
		*graph = nullptr;
		auto stream = find_stream(handle);
		auto capture = stream->capture;
		require(capture != nullptr, illegal_state);
		if (capture->origin != stream.get())
			capture->fail(stream_capture_unmatched);
		require(capture->mode == capture_relaxed || capture->thread == std::this_thread::get_id(), stream_capture_wrong_thread);
		bool joined = capture->joined();
		capture->end();
		if (capture->invalidated || !joined)
			remove_graph(capture->handle);
		capture->require_valid();
		require(joined, stream_capture_unjoined);
		*graph = capture->handle;
	});
}

SIM_API Result cuStreamIsCapturing(StreamHandle handle, CaptureStatus *status) {
	return api("cuStreamIsCapturing", [&](Lock &) { describe(handle, status, nullptr, nullptr, nullptr, nullptr); });
}

SIM_API Result cuStreamGetCaptureInfo_v2(StreamHandle handle, CaptureStatus *status, std::uint64_t *id, GraphHandle *graph,
	const GraphNodeHandle **nodes, std::size_t *count) {
	return api("cuStreamGetCaptureInfo_v2", [&](Lock &) { describe(handle, status, id, graph, nodes, count); });
}

// The edges of the third version carry data that captured ones never have.
SIM_API Result cuStreamGetCaptureInfo_v3(StreamHandle handle, CaptureStatus *status, std::uint64_t *id, GraphHandle *graph,
	const GraphNodeHandle **nodes, const void **edges, std::size_t *count) {
	return api("cuStreamGetCaptureInfo_v3", [&](Lock &) {
		describe(handle, status, id, graph, nodes, count);
		if (edges)
			*edges = nullptr;
	});
}

SIM_API Result cuThreadExchangeStreamCaptureMode(CaptureMode *mode) {
	return api("cuThreadExchangeStreamCaptureMode", [&](Lock &) {
		require(mode && *mode >= capture_global && *mode <= capture_relaxed, invalid_value);
		std::swap(*mode, thread_mode);
	});
}
