// What a view may show of a buffer.
#include "raftrkt/memory.h"

#include "last_error.hpp"
#include "raftrkt/view.hpp"

struct rr_buffer {
	void *data;
	int64_t bytes;
	int32_t memory;
	int32_t device;
};

namespace {

using raftrkt::detail::refuse;
using std::to_string;

rr_buffer wrap(void *data, uint64_t bytes, int32_t memory, int32_t device) {
	if (bytes > INT64_MAX) refuse("buffer", "expected at most 2^63-1 bytes, got " + to_string(bytes));
	if (!data && bytes) refuse("buffer", "no data for " + to_string(bytes) + " bytes");
	if (memory < RR_MEMORY_HOST || memory > RR_MEMORY_MANAGED)
		refuse("buffer", "expected a memory kind of 0 to 3, got " + to_string(memory));
	if (device < 0) refuse("buffer", "expected a device, got " + to_string(device));
	return {data, static_cast<int64_t>(bytes), memory, device};
}

// place answers where in the buffer the view's first element lies, if all lie in it.
void *place(const rr_buffer &buffer, uint64_t offset, const rr_view &view) {
	const auto size = raftrkt::dtype_size(view.dtype);
	if (size == 0) refuse("view", "expected float32, float64, int32 or int64, got " + raftrkt::dtype_name(view.dtype));
	if (view.rank < 0 || view.rank > RR_MAX_RANK)
		refuse("view", "expected a rank of 0 to " + to_string(RR_MAX_RANK) + ", got " + to_string(view.rank));
	for (int32_t axis = 0; axis < view.rank; axis++)
		if (view.shape[axis] < 0)
			refuse("view", "expected no negative extent, got " + raftrkt::detail::shape_text(view));
	int64_t elements;
	if (!raftrkt::detail::element_count(view, elements))
		refuse("view", "the elements of " + raftrkt::detail::shape_text(view) + " overflow");

	// The elements lie from low to high, in elements from the first.
	int64_t low = 0, high = 0;
	bool fits = true;
	for (int32_t axis = 0; elements && axis < view.rank; axis++) {
		int64_t reach;
		auto &end = view.strides[axis] < 0 ? low : high;
		fits = fits && !__builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &reach) &&
		       !__builtin_add_overflow(end, reach, &end);
	}
	if (!fits) refuse("view", "the strides " + raftrkt::detail::strides_text(view) + " overflow");

	if (offset > static_cast<uint64_t>(buffer.bytes))
		refuse("view", "offset " + to_string(offset) + " is past the buffer's " + to_string(buffer.bytes) + " bytes");
	const auto start = static_cast<int64_t>(offset);
	if ((reinterpret_cast<uintptr_t>(buffer.data) + offset) % static_cast<uint64_t>(size) != 0)
		refuse("view", "offset " + to_string(offset) + " is misaligned for " + raftrkt::dtype_name(view.dtype));
	int64_t first, last, end;
	if (elements && (__builtin_mul_overflow(low, size, &first) || __builtin_add_overflow(first, start, &first) ||
	                 __builtin_mul_overflow(high, size, &last) || __builtin_add_overflow(last, start + size, &end) ||
	                 first < 0 || end > buffer.bytes))
		refuse("view", raftrkt::detail::shape_text(view) + " " + raftrkt::dtype_name(view.dtype) + " with strides " +
		                   raftrkt::detail::strides_text(view) + " at offset " + to_string(offset) +
		                   " leaves the buffer's " + to_string(buffer.bytes) + " bytes");
	return buffer.data ? static_cast<char *>(buffer.data) + offset : nullptr;
}

void bind(const rr_buffer &buffer, uint64_t offset, rr_view &view) {
	view.data = place(buffer, offset, view);
	view.memory = buffer.memory;
	view.device = buffer.device;
}

void unbind(rr_view *view) noexcept {
	if (!view) return;
	view->data = nullptr;
	view->memory = view->device = -1;
}

} // namespace

int rr_buffer_wrap(void *data, uint64_t bytes, int32_t memory, int32_t device, rr_buffer **out) {
	return raftrkt::library::entry([&] {
		raftrkt::require(out, "out");
		*out = nullptr;
		*out = new rr_buffer(wrap(data, bytes, memory, device));
	});
}

int rr_buffer_free(rr_buffer *buffer) {
	return raftrkt::library::entry([&] { delete buffer; });
}

int rr_buffer_view(const rr_buffer *buffer, uint64_t offset, rr_view *view) {
	return raftrkt::library::entry([&] {
		unbind(view);
		raftrkt::require(buffer, "buffer");
		raftrkt::require(view, "view");
		bind(*buffer, offset, *view);
	});
}

int rr_view_bind(void *data, uint64_t bytes, int32_t memory, int32_t device, uint64_t offset, rr_view *view) {
	return raftrkt::library::entry([&] {
		unbind(view);
		raftrkt::require(view, "view");
		bind(wrap(data, bytes, memory, device), offset, *view);
	});
}
