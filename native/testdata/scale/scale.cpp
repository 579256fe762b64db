#include <raftrkt/c_api.h>
#include <raftrkt/job.hpp>
#include <raftrkt/view.hpp>

#define SC_API extern "C" __attribute__((visibility("default")))

static raftrkt::error_slot &slot() {
	static thread_local raftrkt::error_slot of_this_thread;
	return of_this_thread;
}

SC_API const char *sc_last_error(void) { return slot().message; }
SC_API int sc_last_error_kind(void) { return slot().kind; }
SC_API int sc_check_abi(const rr_abi_tag *loaded) {
	return raftrkt::translate_exceptions(slot(), [&] { raftrkt::require_abi(loaded); });
}

// sc_scale multiplies the elements of x, a vector of float32, and answers their sum.
SC_API int sc_scale(void *handle, const rr_view *x, double factor, double *sum) {
	return raftrkt::translate_exceptions(slot(), [&] {
		const auto &on = raftrkt::handle_of(handle);
		raftrkt::device_scope device(raftrkt::device_of(on));
		raftrkt::require_on_device(raftrkt::device_of(on), {{"x", x}});
		raftrkt::sync_guard guard(on);
		auto *data = raftrkt::vector_data<float, int64_t>(x, "x");
		raftrkt::require(sum, "sum");
		*sum = 0;
		for (int64_t i = 0; i < x->shape[0]; i++) *sum += data[i] *= static_cast<float>(factor);
		guard.finish();
	});
}
SC_API void sc_scale_job(void *args, size_t args_len, rr_job_outcome *outcome) {
	raftrkt::run_job<&sc_scale>(args, args_len, outcome, slot());
}
