// Errors, and the memory of handles: a pool for each device, which RMM's resources
// lend to RAFT. RMM's own default would wait for the device at each allocation.
#include "leaf.hpp"

#include <map>
#include <mutex>
#include <raft/core/resource/device_memory_resource.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/per_device_resource.hpp>

namespace weirraft {

thread_local raftrkt::error_slot slot;

namespace {

// kept is how many bytes a pool keeps beyond what is in use: cuSOLVER's workspaces for
// matrices of some thousands.
constexpr uint64_t kept = 256 << 20;

// pool_of answers the pool of the current device, made at its first use; it stays.
cudaMemPool_t pool_of(int device) {
	static std::mutex mutex;
	static std::map<int, cudaMemPool_t> pools;
	const std::lock_guard lock(mutex);
	auto &pool = pools[device];
	if (pool) return pool;
	cudaMemPoolProps properties{};
	properties.allocType = cudaMemAllocationTypePinned;
	properties.location = {.type = cudaMemLocationTypeDevice, .id = device};
	cudaMemPool_t made = nullptr;
	raftrkt::cuda_check(cudaMemPoolCreate(&made, &properties), "cudaMemPoolCreate");
	uint64_t threshold = kept;
	raftrkt::cuda_check(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &threshold), "cudaMemPoolSetAttribute");
	// What somebody has set stays: there may be memory of it.
	const rmm::cuda_device_id id(device);
	if (rmm::mr::get_per_device_resource_ref(id) == rmm::device_async_resource_ref(rmm::mr::detail::initial_resource()))
		rmm::mr::set_per_device_resource(id, rmm::mr::cuda_async_view_memory_resource(made));
	return pool = made;
}

// with runs fn on a handle and its pool.
template <class Fn> int with(void *handle, Fn &&fn) {
	return raftrkt::translate_exceptions(slot, [&] {
		auto &h = raftrkt::handle_of(handle);
		const int device = raftrkt::device_of(h);
		raftrkt::device_scope scope(device);
		fn(h, pool_of(device));
	});
}

} // namespace
} // namespace weirraft

const char *wr_last_error(void) { return weirraft::slot.message; }
int wr_last_error_kind(void) { return weirraft::slot.kind; }

int wr_check_abi(const rr_abi_tag *loaded) {
	return raftrkt::translate_exceptions(weirraft::slot, [&] { raftrkt::require_abi(loaded); });
}

int wr_open(void *handle) {
	return weirraft::with(handle, [](raft::handle_t &h, cudaMemPool_t pool) {
		raft::resource::set_workspace_resource(h, rmm::mr::cuda_async_view_memory_resource(pool));
		raft::resource::set_large_workspace_resource(h, rmm::mr::cuda_async_view_memory_resource(pool));
	});
}

int wr_close(void *handle) {
	return weirraft::with(handle, [](raft::handle_t &, cudaMemPool_t pool) {
		raftrkt::cuda_check(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
	});
}
