#include "resources.hpp"

#include "last_error.hpp"
#include "raftrkt/deposit.h"

#include <atomic>

using raftrkt::require;
using raftrkt::library::entry;

int rr_resources_create(int32_t device, void *stream, void *cublas, void *cusolver, rr_resources **out) {
	return entry([&] {
		require(out, "out");
		*out = nullptr;
		raftrkt::device_scope scope(device);
		*out = new rr_resources{device, raftrkt::library::make_handle(device, stream, cublas, cusolver)};
	});
}

int rr_resources_handle(rr_resources *resources, void **out) {
	return entry([&] {
		require(out, "out");
		*out = nullptr;
		require(resources, "resources");
		*out = resources->handle.get();
	});
}

int rr_resources_synchronize(rr_resources *resources) {
	return entry([&] {
		require(resources, "resources");
		raftrkt::device_scope scope(resources->device);
		raftrkt::sync_guard(*resources->handle).finish();
	});
}

int rr_resources_job(rr_resources *resources, rr_job_fn fn, void *args, size_t args_len, rr_job_outcome *outcome,
                     int done_fd) {
	return entry([&] {
		require(resources, "resources");
		require(reinterpret_cast<const void *>(fn), "entry");
		require(outcome, "outcome");
		resources->worker.submit({fn, args, args_len, outcome, done_fd});
	});
}

int rr_resources_release(rr_resources *resources) {
	return entry([&] {
		if (!resources) return;
		if (resources->worker.current()) throw raftrkt::logic_error("resources: released by a job that runs on them");
		resources->worker.finish();
		raftrkt::device_scope scope(resources->device);
		delete resources;
	});
}

int rr_deposit_release(rr_resources *resources, rr_deposit *deposit) {
	return entry([&] {
		require(resources, "resources");
		require(deposit, "deposit");
		if (deposit->handle != resources->handle.get())
			throw raftrkt::logic_error("deposit: on resources other than the call's");
		raftrkt::device_scope scope(resources->device);
		const std::atomic_ref<int32_t> state(deposit->state);
		if (state.exchange(RR_DEPOSIT_CLOSED, std::memory_order_acq_rel) == RR_DEPOSIT_FILLED)
			deposit->release(deposit->owner);
	});
}
