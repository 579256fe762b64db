// What every leaf begins with.
#pragma once

#include "raftrkt/error.hpp"
#include "raftrkt/view.hpp"
#include "weirraft.h"

#include <raft/core/resource/cuda_stream.hpp>

namespace weirraft {

extern thread_local raftrkt::error_slot slot;

// leaf runs fn(handle) with the handle's device current and its work on the stream,
// and answers a status. The views must be of the handle's device.
template <class Fn>
int leaf(void *handle, void *stream, std::initializer_list<std::pair<const char *, const rr_view *>> views, Fn &&fn) {
	return raftrkt::translate_exceptions(slot, [&] {
		auto &h = raftrkt::handle_of(handle);
		const int device = raftrkt::device_of(h);
		raftrkt::require_on_device(device, views);
		raftrkt::device_scope scope(device);
		if (const cuda::stream_ref s(static_cast<cudaStream_t>(stream)); h.get_stream().get() != s.get())
			raft::resource::set_cuda_stream(h, s);
		fn(h);
	});
}

// typed calls fn with a value of the element type of the view.
template <class Fn> void typed(const rr_view *view, const char *name, Fn &&fn) {
	raftrkt::require(view, name);
	switch (view->dtype) {
	case RR_DTYPE_FLOAT32: return fn(float{});
	case RR_DTYPE_FLOAT64: return fn(double{});
	}
	raftrkt::detail::refuse(name, "expected float32 or float64, got " + raftrkt::dtype_name(view->dtype));
}

} // namespace weirraft
