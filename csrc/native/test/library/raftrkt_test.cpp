#include "raftrkt_test.h"

#include "raftrkt/deposit.hpp"
#include "raftrkt/job.hpp"

#include <atomic>
#include <cerrno>
#include <numeric>
#include <unistd.h>
#include <vector>

#ifdef RAFTRKT_RAFT
#include <raft/util/cudart_utils.hpp>
#include <rmm/device_uvector.hpp>
#endif

namespace {

raftrkt::error_slot &slot() {
	static thread_local raftrkt::error_slot slot;
	return slot;
}

template <class Body> int entry(Body &&body) { return raftrkt::translate_exceptions(slot(), std::forward<Body>(body)); }

void throw_of_library(int32_t which);

#ifdef RAFTRKT_RAFT
void throw_of_library(int32_t which) {
	switch (which) {
	case RT_RMM_OUT_OF_MEMORY: throw rmm::out_of_memory("an out_of_memory of rmm");
	case RT_RMM_BAD_ALLOC: throw rmm::bad_alloc("a bad_alloc of rmm");
	case RT_RMM_CUDA: throw rmm::cuda_error("a cuda_error of rmm");
	case RT_RMM_LOGIC: throw rmm::logic_error("a logic_error of rmm");
	case RT_RAFT_LOGIC: throw raft::logic_error("a logic_error of raft");
	case RT_RAFT_CUDA: RAFT_CUDA_TRY(cudaErrorIllegalAddress); break;
	case RT_RAFT_CUDA_OUT_OF_MEMORY: RAFT_CUDA_TRY(cudaErrorMemoryAllocation); break;
	case RT_RAFT_CUBLAS: RAFT_CUBLAS_TRY(CUBLAS_STATUS_EXECUTION_FAILED); break;
	case RT_RAFT_CUBLAS_OUT_OF_MEMORY: RAFT_CUBLAS_TRY(CUBLAS_STATUS_ALLOC_FAILED); break;
	case RT_RAFT_CUSOLVER: RAFT_CUSOLVER_TRY(CUSOLVER_STATUS_EXECUTION_FAILED); break;
	case RT_RAFT_CUSOLVER_OUT_OF_MEMORY: RAFT_CUSOLVER_TRY(CUSOLVER_STATUS_ALLOC_FAILED); break;
	case RT_RAFT_CUSPARSE: RAFT_CUSPARSE_TRY(CUSPARSE_STATUS_EXECUTION_FAILED); break;
	case RT_RAFT_CUSPARSE_OUT_OF_MEMORY: RAFT_CUSPARSE_TRY(CUSPARSE_STATUS_ALLOC_FAILED); break;
	case RT_RAFT_EXCEPTION: {
		struct other : raft::exception {
			using raft::exception::exception;
		};
		throw other("another exception of raft");
	}
	default: break;
	}
	throw raftrkt::logic_error("nothing is thrown for " + std::to_string(which));
}
#else
void throw_of_library(int32_t which) {
	throw raftrkt::logic_error("nothing is thrown for " + std::to_string(which));
}
#endif

[[noreturn]] void throw_nested() {
	try {
		throw std::logic_error("inner");
	} catch (...) {
		std::throw_with_nested(std::runtime_error("outer"));
	}
}

std::string euros() {
	std::string text;
	for (int i = 0; i < 2000; i++) text += "\xe2\x82\xac";
	return text;
}

std::atomic<int32_t> waiting{0};
std::atomic<int64_t> owners{0}, releases{0};

void transfer(ssize_t (*move)(int, char *), int fd, const char *name) {
	char byte = 1;
	if (fd < 0) return;
	ssize_t moved;
	while ((moved = move(fd, &byte)) < 0 && errno == EINTR) {
	}
	if (moved != 1) throw std::runtime_error(std::string(name) + ": no byte can be moved");
}

// upload and download copy between the host and the flavour's memory.
#ifdef RAFTRKT_RAFT
void upload(const raftrkt::handle_t &on, double *to, const double *from, std::size_t n) {
	raft::copy(to, from, n, raftrkt::flavour::stream_of(on));
}
template <class T> void add(const raftrkt::handle_t &on, T *data, int64_t n, int32_t value) {
	std::vector<T> there(static_cast<std::size_t>(n));
	raft::copy(there.data(), data, there.size(), raftrkt::flavour::stream_of(on));
	raftrkt::sync_guard(on).finish();
	for (auto &element : there) element += static_cast<T>(value);
	raft::copy(data, there.data(), there.size(), raftrkt::flavour::stream_of(on));
	raftrkt::sync_guard(on).finish();
}
using memory = rmm::device_uvector<double>;
memory allocate(const raftrkt::handle_t &on, std::size_t n) { return memory(n, raftrkt::flavour::stream_of(on)); }
#else
void upload(const raftrkt::handle_t &, double *to, const double *from, std::size_t n) { std::copy_n(from, n, to); }
template <class T> void add(const raftrkt::handle_t &, T *data, int64_t n, int32_t value) {
	for (int64_t i = 0; i < n; i++) data[i] += static_cast<T>(value);
}
using memory = std::vector<double>;
memory allocate(const raftrkt::handle_t &, std::size_t n) { return memory(n); }
#endif

struct owner {
	owner() { owners++; }
	~owner() {
		owners--;
		releases++;
	}
	owner(const owner &) = delete;
	owner &operator=(const owner &) = delete;
	std::vector<memory> vectors;
};

} // namespace

const char *rt_last_error(void) { return slot().message; }
int rt_last_error_kind(void) { return slot().kind; }

int rt_check_abi(const rr_abi_tag *loaded) {
	return entry([&] { raftrkt::require_abi(loaded); });
}

int rt_throw(int32_t which) {
	return entry([&] {
		switch (which) {
		case RT_NOTHING: return;
		case RT_BAD_ALLOC: throw std::bad_alloc();
		case RT_STD_LOGIC: throw std::logic_error("a logic_error of std");
		case RT_LOGIC: throw raftrkt::logic_error("a logic_error of raftrkt");
		case RT_RUNTIME: throw std::runtime_error("a runtime_error");
		case RT_CUDA: throw raftrkt::cuda_error(700, "a cuda_error");
		case RT_CUDA_OUT_OF_MEMORY: throw raftrkt::cuda_error(2, "a cuda_error of memory");
		case RT_UNKNOWN: throw 42;
		case RT_NESTED: throw_nested();
		case RT_BAD_UTF8: throw std::runtime_error("bad \xff byte");
		case RT_LONG: throw std::runtime_error(euros());
		case RT_EMPTY: throw std::runtime_error("");
		default: throw_of_library(which);
		}
	});
}

int rt_fail(int32_t status, int32_t kind) {
	slot().record(kind, "failed as told");
	return status;
}

int rt_echo(int32_t a, int64_t b, uint64_t c, float d, double e, int32_t *out_a, int64_t *out_b, uint64_t *out_c,
            float *out_d, double *out_e) {
	return entry([&] {
		*out_a = a;
		*out_b = b;
		*out_c = c;
		*out_d = d;
		*out_e = e;
	});
}

int rt_wait(void *handle, int32_t started, int32_t proceed, int32_t *running) {
	return entry([&] {
		(void)raftrkt::handle_of(handle);
		struct turn {
			turn(int32_t &at_once) { at_once = ++waiting; }
			~turn() { waiting--; }
		} here(*running);
		transfer([](int fd, char *byte) { return write(fd, byte, 1); }, started, "started");
		transfer([](int fd, char *byte) { return read(fd, byte, 1); }, proceed, "proceed");
	});
}

int rt_fields(const rr_view *view, int64_t *fields) {
	return entry([&] {
		fields[4] = -1;
		if (!view) return;
		*fields++ = static_cast<int64_t>(reinterpret_cast<intptr_t>(view->data));
		for (int32_t field : {view->dtype, view->memory, view->device, view->rank}) *fields++ = field;
		for (int64_t extent : view->shape) *fields++ = extent;
		for (int64_t stride : view->strides) *fields++ = stride;
	});
}

int rt_rank(const rr_view *view, int32_t *rank) {
	return entry([&] { *rank = view ? view->rank : -1; });
}

int rt_add(void *handle, const rr_view *x, int32_t value) {
	return entry([&] {
		const auto &on = raftrkt::handle_of(handle);
		raftrkt::device_scope device(raftrkt::device_of(on));
		raftrkt::require_on_device(raftrkt::device_of(on), {{"x", x}});
		raftrkt::sync_guard guard(on);
		raftrkt::require(x, "x");
		const auto of = [&]<class T>(T) { add(on, raftrkt::vector_data<T>(x, "x"), x->shape[0], value); };
		switch (x->dtype) {
		case RR_DTYPE_FLOAT32: of(float()); break;
		case RR_DTYPE_FLOAT64: of(double()); break;
		case RR_DTYPE_INT32: of(int32_t()); break;
		default: of(int64_t());
		}
		guard.finish();
	});
}

int rt_deposit(void *handle, int32_t regions, int64_t n, rr_deposit *out) {
	return entry([&] {
		const auto &on = raftrkt::handle_of(handle);
		raftrkt::device_scope device(raftrkt::device_of(on));
		raftrkt::sync_guard guard(on);
		const auto size = static_cast<std::size_t>(n);
		auto mine = std::make_unique<owner>();
		std::vector<double> numbers(size + RR_MAX_REGIONS);
		std::iota(numbers.begin(), numbers.end(), 0.0);
		for (int32_t r = 0; r < regions && r < RR_MAX_REGIONS; r++) {
			mine->vectors.push_back(allocate(on, size));
			upload(on, mine->vectors.back().data(), &numbers[static_cast<std::size_t>(r)], size);
		}
		auto &v = mine->vectors;
		const auto region = [&](std::size_t r) { return raftrkt::region(v[r]); };
		switch (regions) {
		case 0: raftrkt::deposit(out, "out", on, std::move(mine), {}); break;
		case 1: raftrkt::deposit(out, "out", on, std::move(mine), {region(0)}); break;
		case 2: raftrkt::deposit(out, "out", on, std::move(mine), {region(0), region(1)}); break;
		case 8:
			raftrkt::deposit(out, "out", on, std::move(mine),
			                 {region(0), region(1), region(2), region(3), region(4), region(5), region(6), region(7)});
			break;
		default: throw raftrkt::logic_error("regions: expected 0, 1, 2 or 8, got " + std::to_string(regions));
		}
		guard.finish();
	});
}

int64_t rt_owners(void) { return owners; }
int64_t rt_releases(void) { return releases; }

#define RT_JOB(name)                                                                                                   \
	void name##_job(void *args, size_t args_len, rr_job_outcome *outcome) {                                            \
		raftrkt::run_job<&name>(args, args_len, outcome, slot());                                                      \
	}
RT_JOB(rt_throw)
RT_JOB(rt_fail)
RT_JOB(rt_echo)
RT_JOB(rt_wait)
RT_JOB(rt_rank)
RT_JOB(rt_add)
RT_JOB(rt_deposit)
