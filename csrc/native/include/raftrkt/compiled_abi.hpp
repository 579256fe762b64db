// The tag of the headers being compiled. abi.h includes it in C++20.
#pragma once

#include "raftrkt/abi.h"
#include "raftrkt/error.hpp"

namespace raftrkt {

// compiled_abi is hidden: two libraries in one process, each with an inline function
// of this name, must not come to share one.
[[gnu::visibility("hidden")]] inline rr_abi_tag compiled_abi() noexcept {
	using namespace flavour;
	return {.abi_version = RR_ABI_VERSION,
	        .raft_major = raft_version[0],
	        .raft_minor = raft_version[1],
	        .raft_patch = raft_version[2],
	        .rmm_major = rmm_version[0],
	        .rmm_minor = rmm_version[1],
	        .rmm_patch = rmm_version[2],
	        .cccl_major = cccl_version[0],
	        .cccl_minor = cccl_version[1],
	        .cccl_patch = cccl_version[2],
	        .cuda_runtime = cuda_runtime,
	        .resource_types = resource_types,
	        .handle_size = sizeof(handle_t)};
}

// require_abi throws unless loaded, libraftrkt's tag, is that of these headers.
[[gnu::visibility("hidden")]] inline void require_abi(const rr_abi_tag *loaded) {
	const auto built = compiled_abi();
	char why[256];
	if (rr_abi_compare(&built, loaded, why, sizeof why)) throw logic_error(why);
}

} // namespace raftrkt
