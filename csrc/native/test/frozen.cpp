// Prints what is frozen of the interface, as this compiler sees the headers. frozen.sh
// compares it with csrc/native/frozen.
//
// Not frozen, since no downstream library calls them, are the entry points between
// Weir's two sides, which are built together: rr_resources_create,
// rr_resources_synchronize, rr_resources_release, rr_resources_job, rr_buffer_wrap,
// rr_buffer_free, rr_view_bind, rr_deposit_release.
#include "raftrkt/c_api.h"
#include "raftrkt/deposit.hpp"
#include "raftrkt/error.hpp"
#include "raftrkt/job.hpp"
#include "raftrkt/view.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <string>
#include <typeinfo>

namespace {

template <class T> std::string type() {
	int status;
	char *text = abi::__cxa_demangle(typeid(T).name(), nullptr, nullptr, &status);
	std::string name = text;
	std::free(text);
	return name;
}

#define CONSTANT(name) std::printf("constant %s %lld\n", #name, static_cast<long long>(name))
#define RECORD(name) std::printf("record %s: %zu bytes, aligned %zu\n", #name, sizeof(name), alignof(name))
#define FIELD(record, field)                                                                                           \
	std::printf("field %s.%s: at %zu, %s\n", #record, #field, offsetof(record, field),                                 \
	            type<decltype(record::field)>().c_str())
#define FUNCTION(...) std::printf("function %s: %s\n", #__VA_ARGS__, type<decltype(&__VA_ARGS__)>().c_str())
#define TYPE(name) std::printf("type %s: %s\n", #name, type<name>().c_str())
#define CLASS(name, ...)                                                                                               \
	std::printf("class %s: made from %s; a %s\n", #name, #__VA_ARGS__,                                                 \
	            std::is_constructible_v<name, __VA_ARGS__> ? "constructor" : "GONE CONSTRUCTOR")
#define BASE(name, base) std::printf("class %s: %s %s\n", #name, std::is_base_of_v<base, name> ? "is a" : "IS NO", #base)
#define RULE(text) std::printf("rule: %s\n", text)

using raftrkt::handle_t;
using raftrkt::layout;

struct any_body {
	void operator()() const {}
};
struct any_owner {};
int any_job(void *, const rr_view *, rr_deposit *, int32_t, int64_t, uint64_t, float, double, int32_t *, int64_t *,
            uint64_t *, float *, double *) {
	return RR_OK;
}

} // namespace

int main() {
	CONSTANT(RR_ABI_VERSION);

	CONSTANT(RR_OK);
	CONSTANT(RR_ERROR);
	CONSTANT(RR_BUFFER_TOO_SMALL);
	CONSTANT(RR_KIND_GENERIC);
	CONSTANT(RR_KIND_OUT_OF_MEMORY);
	CONSTANT(RR_KIND_CUDA);
	CONSTANT(RR_KIND_LOGIC);
	FUNCTION(rr_last_error);
	FUNCTION(rr_last_error_kind);
	FUNCTION(rr_resources_handle);

	CONSTANT(RR_MAX_RANK);
	CONSTANT(RR_RANK_ABSENT);
	CONSTANT(RR_DTYPE_FLOAT32);
	CONSTANT(RR_DTYPE_FLOAT64);
	CONSTANT(RR_DTYPE_INT32);
	CONSTANT(RR_DTYPE_INT64);
	CONSTANT(RR_MEMORY_HOST);
	CONSTANT(RR_MEMORY_PINNED);
	CONSTANT(RR_MEMORY_DEVICE);
	CONSTANT(RR_MEMORY_MANAGED);
	RECORD(rr_view);
	FIELD(rr_view, data);
	FIELD(rr_view, dtype);
	FIELD(rr_view, memory);
	FIELD(rr_view, device);
	FIELD(rr_view, rank);
	FIELD(rr_view, shape);
	FIELD(rr_view, strides);
	FUNCTION(rr_buffer_view);

	RECORD(rr_abi_tag);
	FIELD(rr_abi_tag, abi_version);
	FIELD(rr_abi_tag, raft_major);
	FIELD(rr_abi_tag, raft_minor);
	FIELD(rr_abi_tag, raft_patch);
	FIELD(rr_abi_tag, rmm_major);
	FIELD(rr_abi_tag, rmm_minor);
	FIELD(rr_abi_tag, rmm_patch);
	FIELD(rr_abi_tag, cccl_major);
	FIELD(rr_abi_tag, cccl_minor);
	FIELD(rr_abi_tag, cccl_patch);
	FIELD(rr_abi_tag, cuda_runtime);
	FIELD(rr_abi_tag, resource_types);
	FIELD(rr_abi_tag, handle_size);
	FUNCTION(rr_abi);
	FUNCTION(rr_abi_compare);
	FUNCTION(raftrkt::compiled_abi);
	FUNCTION(raftrkt::require_abi);

	RECORD(raftrkt::error_slot);
	FIELD(raftrkt::error_slot, message);
	FIELD(raftrkt::error_slot, kind);
	FUNCTION(raftrkt::error_slot::clear);
	FUNCTION(raftrkt::error_slot::record);
	FUNCTION(raftrkt::translate_exceptions<any_body>);
	FUNCTION(raftrkt::classify);
	BASE(raftrkt::logic_error, std::logic_error);
	CLASS(raftrkt::logic_error, std::string);
	BASE(raftrkt::cuda_error, std::runtime_error);
	CLASS(raftrkt::cuda_error, int, std::string);
	FUNCTION(raftrkt::cuda_error::status);
	FUNCTION(raftrkt::cuda_check);
	FUNCTION(raftrkt::require);
	CLASS(raftrkt::device_scope, int);
	CLASS(raftrkt::sync_guard, raftrkt::stream_t);
	CLASS(raftrkt::sync_guard, const handle_t &);
	FUNCTION(raftrkt::sync_guard::finish);

	CONSTANT(layout::row_major);
	CONSTANT(layout::col_major);
	CONSTANT(raftrkt::any_extent);
	CONSTANT(raftrkt::dtype_code<float>);
	CONSTANT(raftrkt::dtype_code<const double>);
	CONSTANT(raftrkt::dtype_code<int32_t>);
	CONSTANT(raftrkt::dtype_code<const int64_t>);
	FUNCTION(raftrkt::dtype_name);
	FUNCTION(raftrkt::matrix_data<const float, int>);
	FUNCTION(raftrkt::vector_data<double, int64_t>);
	std::printf("function raftrkt::has_layout: %s\n",
	            type<decltype(static_cast<bool (*)(const rr_view *, layout) noexcept>(raftrkt::has_layout))>().c_str());
	FUNCTION(raftrkt::handle_of);
	FUNCTION(raftrkt::device_of);
	FUNCTION(raftrkt::require_on_device);

	CONSTANT(RR_MAX_REGIONS);
	CONSTANT(RR_DEPOSIT_OPEN);
	CONSTANT(RR_DEPOSIT_FILLING);
	CONSTANT(RR_DEPOSIT_FILLED);
	CONSTANT(RR_DEPOSIT_CLOSED);
	TYPE(rr_release_fn);
	RECORD(rr_deposit);
	FIELD(rr_deposit, handle);
	FIELD(rr_deposit, device);
	FIELD(rr_deposit, state);
	FIELD(rr_deposit, owner);
	FIELD(rr_deposit, release);
	FIELD(rr_deposit, count);
	FIELD(rr_deposit, reserved);
	FIELD(rr_deposit, regions);
	FUNCTION(raftrkt::deposit<any_owner, std::default_delete<any_owner>>);
	std::printf("function raftrkt::region: %s, %s\n",
	            type<decltype(static_cast<rr_view (*)(float *, int64_t) noexcept>(raftrkt::region<float>))>().c_str(),
	            type<decltype(static_cast<rr_view (*)(float *, int64_t, int64_t, layout) noexcept>(
		            raftrkt::region<float>))>().c_str());

	CONSTANT(RR_JOB_MESSAGE_BYTES);
	TYPE(rr_job_fn);
	RECORD(rr_job_outcome);
	FIELD(rr_job_outcome, status);
	FIELD(rr_job_outcome, kind);
	FIELD(rr_job_outcome, message);
	FUNCTION(raftrkt::run_job<&any_job>);
	std::printf("block of %s:", type<decltype(&any_job)>().c_str());
	for (auto offset : raftrkt::detail::block_of<&any_job>::offsets) std::printf(" %zu", offset);
	std::printf("\n");

	RULE("an entry point runs inside translate_exceptions");
	RULE("it selects the handle's device");
	RULE("it refuses arrays on another device");
	RULE("it reads arrays only through view.hpp");
	RULE("it synchronises the handle's stream on every exit");
	RULE("one that can run long is a job");
}
