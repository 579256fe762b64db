// The host flavour: no CUDA, one device, 0, whose memory is the host's. It stands in
// for the RAFT whose versions its tag has; without a CUDA runtime in it, the tag
// differs from every tag of the RAFT flavour.
#pragma once

#include "raftrkt/flavour.hpp"

namespace raftrkt {

// host_stream is what a call waits for before it returns: nothing, unless somebody
// says how one waits. synchronize answers a cudaError_t.
struct host_stream {
	int (*synchronize)(void *context) = nullptr;
	void *context = nullptr;
};

// host_handle takes the place of raft::handle_t, and its size.
struct host_handle {
	host_stream stream{};
	int32_t device = 0;
	int32_t reserved[3]{};
};
static_assert(sizeof(host_handle) == 32);

using handle_t = host_handle;
using stream_t = host_stream;

namespace flavour {

inline constexpr int out_of_memory = 2, invalid_device = 101; // as CUDA has them

inline std::string error_text(int status) {
	switch (status) {
	case out_of_memory: return "out of memory";
	case invalid_device: return "invalid device ordinal";
	default: return "error " + std::to_string(status);
	}
}

inline int get_device(int &device) noexcept { return device = 0; }
inline int set_device(int device) noexcept { return device == 0 ? 0 : invalid_device; }

inline int device_of(const host_handle &handle) noexcept { return handle.device; }
inline host_stream stream_of(const host_handle &handle) noexcept { return handle.stream; }
inline int synchronize(const host_stream &stream) noexcept {
	return stream.synchronize ? stream.synchronize(stream.context) : 0;
}

inline constexpr int32_t own_memory = RR_MEMORY_HOST;

inline int place_of(const void *, place &out) noexcept {
	out = {RR_MEMORY_HOST, 0};
	return 0;
}
inline bool usable(int32_t memory) noexcept { return memory == RR_MEMORY_HOST || memory == RR_MEMORY_PINNED; }

inline int32_t kind_of(const std::exception &) noexcept { return -1; }

inline constexpr int32_t raft_version[3] = {26, 10, 0}, rmm_version[3] = {}, cccl_version[3] = {};
inline constexpr int32_t cuda_runtime = 0, resource_types = 0;

} // namespace flavour
} // namespace raftrkt
