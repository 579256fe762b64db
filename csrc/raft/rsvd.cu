#include "leaf.hpp"

#include <limits>
#include <raft/core/device_mdarray.hpp>
#include <raft/linalg/gemm.cuh>
#include <raft/linalg/map_reduce.cuh>
#include <raft/linalg/qr.cuh>
#include <raft/linalg/svd.cuh>
#include <raft/random/rng.cuh>

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

// projection is a column-major m×n matrix, and what l random dimensions keep of it.
// RAFT's randomized_svd is cuSOLVER's, whose singular values are off by some 1600 units
// in the last place; an orthonormal basis after each product is as exact as the products.
template <class T> struct projection {
	raft::handle_t &handle;
	const T *a;
	int m, n, l;

	rmm::device_uvector<T> scratch(int64_t elements) const {
		return rmm::device_uvector<T>(static_cast<size_t>(elements), handle.get_stream(), raft::resource::get_workspace_resource_ref(handle));
	}

	// product answers rows×cols = op(x)·op(y), whose inner extent is inner.
	void product(bool turn_x, const T *x, int ldx, bool turn_y, const T *y, int ldy, int rows, int cols, int inner, T *to) const {
		const T one{1}, zero{};
		raft::linalg::gemm<T, T, T, T>(handle, turn_x, turn_y, rows, cols, inner, &one, const_cast<T *>(x), ldx,
		                               const_cast<T *>(y), ldy, &zero, to, rows, handle.get_stream().get());
	}

	// range writes an orthonormal basis, m×l, of a·x, or n×l of aᵀ·x.
	void range(bool turn, const T *x, T *to) const {
		const int rows = turn ? n : m, inner = turn ? m : n;
		auto y = scratch(int64_t{rows} * l);
		product(turn, a, m, false, x, inner, rows, l, inner, y.data());
		raft::linalg::qrGetQ(handle, y.data(), to, rows, l, handle.get_stream().get());
	}

	void decompose(int k, int64_t iterations, T *u, T *s, T *v) const {
		auto left = scratch(int64_t{m} * l), right = scratch(int64_t{n} * l); // bases
		raft::random::RngState seed(0); // the same dimensions in every call
		raft::random::normal(handle, seed, raft::make_device_vector_view<T, int64_t>(right.data(), int64_t{n} * l), T{}, T{1});
		range(false, right.data(), left.data());
		for (int64_t i = 0; i < iterations; i++) {
			range(true, left.data(), right.data());
			range(false, right.data(), left.data());
		}
		// a ≈ left·small, whose transpose is tall, as cuSOLVER wants it.
		auto small = scratch(int64_t{n} * l), vectors = scratch(int64_t{n} * l), turn = scratch(int64_t{l} * l), values = scratch(l);
		product(true, a, m, false, left.data(), m, n, l, m, small.data());
		raft::linalg::svdQR(handle, small.data(), n, l, values.data(), vectors.data(), turn.data(), false, true, true,
		                    handle.get_stream().get());
		product(false, left.data(), m, true, turn.data(), l, m, k, l, u);
		raft::copy(s, values.data(), k, handle.get_stream().get());
		raft::copy(v, vectors.data(), static_cast<size_t>(n) * k, handle.get_stream().get());
	}
};

template <class T>
void rsvd(raft::handle_t &handle, const rr_view *va, const rr_view *vu, const rr_view *vs, const rr_view *vv,
          int64_t oversampling, int64_t iterations) {
	using raftrkt::detail::refuse;
	constexpr auto columns = raftrkt::layout::col_major;
	const auto *a = raftrkt::matrix_data<const T>(va, "a", columns);
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
	const auto l = k + oversampling;
	if (std::max(m, n) > std::numeric_limits<int>::max() / l)
		refuse("a", raftrkt::detail::shape_text(*va) + " projected onto " + raftrkt::detail::counted(l, "dimension") +
		                " does not fit RAFT's index of 32 bits");

	if (!finite(handle, a, m * n)) {
		const auto nan = [&](T *at, int64_t count) { // all bits set
			raftrkt::cuda_check(cudaMemsetAsync(at, 0xff, count * sizeof(T), handle.get_stream().get()), "cudaMemsetAsync");
		};
		nan(u, m * k);
		nan(s, k);
		nan(v, n * k);
		return;
	}
	projection<T>{handle, a, static_cast<int>(m), static_cast<int>(n), static_cast<int>(l)}.decompose(static_cast<int>(k), iterations, u, s, v);
}

} // namespace
} // namespace weirraft

int wr_rsvd(void *handle, void *stream, const rr_view *a, const rr_view *u, const rr_view *s, const rr_view *v,
            int64_t oversampling, int64_t iterations) {
	return weirraft::leaf(handle, stream, {{"a", a}, {"u", u}, {"s", s}, {"v", v}}, [&](raft::handle_t &h) {
		weirraft::typed(a, "a", [&](auto t) { weirraft::rsvd<decltype(t)>(h, a, u, s, v, oversampling, iterations); });
	});
}
