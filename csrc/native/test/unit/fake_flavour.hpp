// A flavour of four devices that are not there: the tests see which is current, say
// where memory lies, and how a stream is synchronised.
#pragma once

#include "raftrkt/flavour.hpp"

#include <stdexcept>

namespace raftrkt {

struct fake_stream {
	int status = 0; // what a synchronisation answers
	int synchronized = 0;
};

struct fake_handle {
	fake_stream *stream;
	int device;
	int padding[5];
};

using handle_t = fake_handle;
using stream_t = fake_stream *;

namespace fake {
inline thread_local int current = 0;
inline thread_local int selections = 0;
inline thread_local int refused = -1; // a device that cannot be selected
inline thread_local flavour::place memory{RR_MEMORY_DEVICE, 0};
inline thread_local int lookup = 0; // what a look-up of memory answers

struct library_error : std::runtime_error {
	using std::runtime_error::runtime_error;
};
} // namespace fake

namespace flavour {

inline constexpr int out_of_memory = 2;
inline constexpr int32_t own_memory = RR_MEMORY_DEVICE;
inline std::string error_text(int status) { return "fake error " + std::to_string(status); }
inline int get_device(int &device) noexcept {
	device = fake::current;
	return 0;
}
inline int set_device(int device) noexcept {
	if (device < 0 || device > 3 || device == fake::refused) return 101;
	fake::current = device;
	fake::selections++;
	return 0;
}
inline int device_of(const fake_handle &handle) { return handle.device; }
inline fake_stream *stream_of(const fake_handle &handle) { return handle.stream; }
inline int synchronize(fake_stream *stream) {
	stream->synchronized++;
	return stream->status;
}
inline int place_of(const void *, place &out) noexcept {
	out = fake::memory;
	return fake::lookup;
}
inline bool usable(int32_t memory) noexcept { return memory == RR_MEMORY_DEVICE || memory == RR_MEMORY_MANAGED; }
inline int32_t kind_of(const std::exception &error) noexcept {
	return dynamic_cast<const fake::library_error *>(&error) ? RR_KIND_CUDA : -1;
}
inline constexpr int32_t raft_version[3] = {26, 10, 0}, rmm_version[3] = {26, 10, 0}, cccl_version[3] = {3, 2, 1};
inline constexpr int32_t cuda_runtime = 13000, resource_types = 40;

} // namespace flavour
} // namespace raftrkt
