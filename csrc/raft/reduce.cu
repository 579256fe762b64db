#include "leaf.hpp"

#include <limits>
#include <raft/core/device_mdarray.hpp>
#include <raft/core/resource/device_memory_resource.hpp>
#include <raft/linalg/map.cuh>
#include <raft/linalg/reduce.cuh>

namespace weirraft {
namespace {

// RAFT's own sum is compensated, which makes NaN of infinities; its minimum passes over
// NaN. So the operations are these.
struct plus {
	template <class T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
struct smaller {
	template <class T> __host__ __device__ T operator()(T a, T b) const { return a != a || a < b ? a : b; }
};
struct larger {
	template <class T> __host__ __device__ T operator()(T a, T b) const { return a != a || a > b ? a : b; }
};
struct element {
	template <class T, class I> __device__ auto operator()(T x, I) const { return x; }
};
struct wide {
	template <class T, class I> __device__ double operator()(T x, I) const { return static_cast<double>(x); }
};
struct square {
	template <class T, class I> __device__ double operator()(T x, I) const { return static_cast<double>(x) * static_cast<double>(x); }
};
struct same {
	template <class T, class... I> __device__ T operator()(T x, I...) const { return x; }
};
struct over {
	double n;
	template <class... I> __device__ double operator()(double x, I...) const { return x / n; }
};
struct root {
	template <class... I> __device__ double operator()(double x, I...) const { return ::sqrt(x); }
};

template <class T> using matrix = raft::device_matrix_view<const T, int64_t, raft::row_major>;
template <class T> using vector = raft::device_vector_view<T, int64_t>;

template <class T, class Out, class Main, class Reduce, class Final>
void rows(raft::handle_t &handle, matrix<T> a, vector<Out> out, Out init, Main main, Reduce reduce, Final final) {
	raft::linalg::reduce<raft::Apply::ALONG_ROWS, T, raft::row_major, Out, int64_t>(handle, a, out, init, false, main, reduce, final);
}

// sums reduces in double, and rounds once.
template <class T, class Main, class Final>
void sums(raft::handle_t &handle, matrix<T> a, vector<T> out, Main main, Final final) {
	if constexpr (std::is_same_v<T, double>) {
		rows(handle, a, out, 0.0, main, plus{}, final);
	} else {
		auto wide = raft::make_device_mdarray<double>(handle, raft::resource::get_workspace_resource_ref(handle),
		                                              raft::make_extents<int64_t>(out.extent(0)));
		rows(handle, a, wide.view(), 0.0, main, plus{}, final);
		raft::linalg::map(handle, out, [] __device__(double x) { return static_cast<T>(x); }, raft::make_const_mdspan(wide.view()));
	}
}

template <class T> void reduce(raft::handle_t &handle, int32_t operation, const rr_view *va, const rr_view *vout) {
	const auto a = raftrkt::matrix_view<const T>(va, "a");
	const auto out = raftrkt::vector_view<T>(vout, "out", a.extent(0));
	if (a.extent(0) == 0) return;
	constexpr T infinity = std::numeric_limits<T>::infinity();
	switch (operation) {
	case WR_SUM: return sums<T>(handle, a, out, wide{}, same{});
	case WR_MEAN: return sums<T>(handle, a, out, wide{}, over{static_cast<double>(a.extent(1))});
	case WR_NORM: return sums<T>(handle, a, out, square{}, root{});
	case WR_MIN: return rows(handle, a, out, infinity, element{}, smaller{}, same{});
	case WR_MAX: return rows(handle, a, out, -infinity, element{}, larger{}, same{});
	}
	raftrkt::detail::refuse("operation", "expected one of WR_SUM to WR_MAX, got " + std::to_string(operation));
}

} // namespace
} // namespace weirraft

int wr_reduce(void *handle, void *stream, int32_t operation, const rr_view *a, const rr_view *out) {
	return weirraft::leaf(handle, stream, {{"a", a}, {"out", out}}, [&](raft::handle_t &h) {
		weirraft::typed(a, "a", [&](auto t) { weirraft::reduce<decltype(t)>(h, operation, a, out); });
	});
}
