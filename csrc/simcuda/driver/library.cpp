#include "library.h"

namespace simcuda {

int code_of(const Codes &codes, Result result) {
	if (fatal(result))
		return codes.execution_failed;
	switch (result) {
	case out_of_memory:
		return codes.alloc_failed;
	case invalid_value:
		return codes.invalid_value;
	case not_initialized:
	case invalid_context:
	case invalid_handle:
		return codes.not_initialized;
	case not_supported:
		return codes.not_supported;
	default:
		return codes.internal_error;
	}
}

StreamPtr stream_of(const char *function, const LibraryHandle &handle) {
	auto current = current_context();
	auto stream = find_stream(handle.stream);
	if (handle.context != current || stream->context != current)
		misuse(format("%s: a handle of device %d works on a stream of device %d while device %d is current", function,
			handle.context->device.ordinal, stream->device.ordinal, current->device.ordinal));
	require(handle.context == current && stream->context == current, invalid_value);
	return stream;
}

std::byte *live_memory(const Context &context, Range range) {
	if (range.bytes == 0)
		return nullptr;
	auto &sim = simulator();
	Lock lock(sim.mutex);
	const auto *device = device_of(range.address);
	auto block = device ? device->find_live(range) : find_block(range);
	if (!block || !reachable(context, *block))
		misuse(format("%zu bytes at %#llx, which a kernel found, are not allocated memory that device %d can use", range.bytes,
			range.address, context.device.ordinal));
	require(block && reachable(context, *block), illegal_address);
	return block->at + (range.address - block->address);
}

} // namespace simcuda
