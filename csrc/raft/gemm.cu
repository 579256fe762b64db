#include "leaf.hpp"

#include <raft/linalg/gemm.cuh>

namespace weirraft {
namespace {

// operand is a matrix as BLAS reads it.
template <class T> struct operand {
	T *data;
	int rows, cols, ld;
	bool transposed;
};

// matrix answers a view's operand. Of a result, columns alone may lie contiguous.
template <class T> operand<T> matrix(const rr_view *view, const char *name, int64_t rows, int64_t cols, bool result) {
	using raftrkt::detail::refuse;
	raftrkt::detail::require_bound(view, name);
	if (view->rank != 2) refuse(name, "expected rank 2, got " + std::to_string(view->rank));
	if (view->dtype != raftrkt::dtype_code<T>)
		refuse(name, "expected " + raftrkt::dtype_name(raftrkt::dtype_code<T>) + ", got " + raftrkt::dtype_name(view->dtype));
	const auto m = view->shape[0], n = view->shape[1];
	if (m < 1 || n < 1 || !view->data) refuse(name, "expected elements, got " + raftrkt::detail::shape_text(*view));
	if (rows != raftrkt::any_extent && m != rows) refuse(name, "expected " + raftrkt::detail::counted(rows, "row") + ", got " + std::to_string(m));
	if (cols != raftrkt::any_extent && n != cols) refuse(name, "expected " + raftrkt::detail::counted(cols, "column") + ", got " + std::to_string(n));
	for (const bool transposed : {false, true}) {
		if (transposed && result) break;
		const auto unit = view->strides[transposed], step = view->strides[!transposed];
		const auto extent = view->shape[transposed], steps = view->shape[!transposed];
		if (unit != 1 && extent > 1 || step < extent && steps > 1) continue;
		const auto ld = steps > 1 ? step : extent;
		if (!std::in_range<int>(m) || !std::in_range<int>(n) || !std::in_range<int>(ld))
			refuse(name, raftrkt::detail::shape_text(*view) + " with a leading dimension of " + std::to_string(ld) + " do not fit RAFT's index of 32 bits");
		return {static_cast<T *>(view->data), static_cast<int>(m), static_cast<int>(n), static_cast<int>(ld), transposed};
	}
	refuse(name, "expected a stride of 1 and one past the extent, got strides " + raftrkt::detail::strides_text(*view));
}

template <class T>
void gemm(raft::handle_t &handle, double alpha, const rr_view *va, const rr_view *vb, double beta, const rr_view *vc) {
	const auto c = matrix<T>(vc, "c", raftrkt::any_extent, raftrkt::any_extent, true);
	const auto a = matrix<T>(va, "a", c.rows, raftrkt::any_extent, false);
	const auto b = matrix<T>(vb, "b", a.cols, c.cols, false);
	const T factor = static_cast<T>(alpha), keep = static_cast<T>(beta);
	raft::linalg::gemm<T, T, T, T>(handle, a.transposed, b.transposed, c.rows, c.cols, a.cols, &factor, a.data, a.ld, b.data,
	                               b.ld, &keep, c.data, c.ld, handle.get_stream().get());
}

} // namespace
} // namespace weirraft

int wr_gemm(void *handle, void *stream, const double *alpha, const rr_view *a, const rr_view *b, const double *beta,
            const rr_view *c) {
	return weirraft::leaf(handle, stream, {{"a", a}, {"b", b}, {"c", c}}, [&](raft::handle_t &h) {
		raftrkt::require(alpha, "alpha");
		raftrkt::require(beta, "beta");
		weirraft::typed(c, "c", [&](auto t) { weirraft::gemm<decltype(t)>(h, *alpha, a, b, *beta, c); });
	});
}
