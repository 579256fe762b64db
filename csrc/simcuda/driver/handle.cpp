#include "handle.h"

#include <sys/mman.h>

namespace simcuda {

std::uintptr_t new_handle() {
	constexpr std::size_t reserved = std::size_t{1} << 35, step = 16;
	static const auto base = [] {
		void *at = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		require(at != MAP_FAILED, out_of_memory);
		return reinterpret_cast<std::uintptr_t>(at);
	}();
	static std::size_t used = 0;
	require(used < reserved, out_of_memory);
	used += step;
	return base + used - step;
}

} // namespace simcuda
