#include "leaf.hpp"

#include <raft/core/device_mdarray.hpp>
#include <raft/linalg/map_reduce.cuh>
#include <raft/linalg/rsvd.cuh>

namespace weirraft {
namespace {

// finite waits for the stream. Zero times an element is zero unless that is NaN or
// infinite.
template <class T> bool finite(raft::handle_t &handle, const T *data, int64_t elements) {
	auto sum = raft::make_device_scalar<T>(handle, T{});
	raft::linalg::map_reduce(
		handle, raft::make_device_vector_view<const T, int64_t>(data, elements), sum.view(), T{},
		[] __device__(T x) { return x * T{}; }, raft::add_op{});
	T value{};
	raft::copy(&value, sum.data_handle(), 1, handle.get_stream().get());
	handle.sync_stream();
	return value == 0;
}

template <class T>
void rsvd(raft::handle_t &handle, const rr_view *va, const rr_view *vu, const rr_view *vs, const rr_view *vv,
          int64_t oversampling, int64_t iterations) {
	using raftrkt::detail::refuse;
	constexpr auto columns = raftrkt::layout::col_major;
	auto *a = raftrkt::matrix_data<T>(va, "a", columns);
	const auto m = va->shape[0], n = va->shape[1];
	auto *s = raftrkt::vector_data<T>(vs, "s");
	const auto k = vs->shape[0];
	auto *u = raftrkt::matrix_data<T>(vu, "u", columns, m, k);
	auto *v = raftrkt::matrix_data<T>(vv, "v", columns, n, k);
	const auto room = std::min(m, n) - k; // for the oversampling, and one more
	if (k < 1 || room < 1) refuse("s", "expected at least 1 element and fewer than a has rows and columns, got " + std::to_string(k));
	if (oversampling < 0 || oversampling >= room)
		refuse("oversampling", "expected 0 to " + std::to_string(room - 1) + ", got " + std::to_string(oversampling));
	if (iterations < 0) refuse("iterations", "expected 0 or more, got " + std::to_string(iterations));

	if (!finite(handle, a, m * n)) {
		const auto nan = [&](T *at, int64_t count) { // all bits set
			raftrkt::cuda_check(cudaMemsetAsync(at, 0xff, count * sizeof(T), handle.get_stream().get()), "cudaMemsetAsync");
		};
		nan(u, m * k);
		nan(s, k);
		nan(v, n * k);
		return;
	}
	// RAFT's views call V, which cuSOLVER writes as n×k, its transpose.
	using matrix = raft::device_matrix_view<T, int64_t, raft::col_major>;
	raft::linalg::randomized_svd<T, int64_t>(
		handle, raft::make_device_matrix_view<const T, int64_t, raft::col_major>(a, m, n),
		raft::make_device_vector_view<T, int64_t>(s, k),
		std::optional<matrix>(raft::make_device_matrix_view<T, int64_t, raft::col_major>(u, m, k)),
		std::optional<matrix>(raft::make_device_matrix_view<T, int64_t, raft::col_major>(v, k, n)),
		static_cast<size_t>(oversampling), static_cast<size_t>(iterations));
}

} // namespace
} // namespace weirraft

int wr_rsvd(void *handle, void *stream, const rr_view *a, const rr_view *u, const rr_view *s, const rr_view *v,
            int64_t oversampling, int64_t iterations) {
	return weirraft::leaf(handle, stream, {{"a", a}, {"u", u}, {"s", s}, {"v", v}}, [&](raft::handle_t &h) {
		weirraft::typed(a, "a", [&](auto t) { weirraft::rsvd<decltype(t)>(h, a, u, s, v, oversampling, iterations); });
	});
}
