// Views to typed pointers. Each function takes the argument's name for its messages
// and throws logic_error.
#pragma once

#include "raftrkt/error.hpp"

#include <concepts>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <utility>

#ifdef RAFTRKT_RAFT
#include <raft/core/device_mdspan.hpp>
#endif

namespace raftrkt {

enum class layout { row_major, col_major };

inline constexpr int64_t any_extent = -1;

template <class T>
concept element_type = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int32_t> ||
                       std::same_as<T, int64_t>;

// dtype_code is the RR_DTYPE_* of an element type, const or not.
template <class T>
	requires element_type<std::remove_const_t<T>>
inline constexpr int32_t dtype_code = dtype_code<std::remove_const_t<T>>;
template <> inline constexpr int32_t dtype_code<float> = RR_DTYPE_FLOAT32;
template <> inline constexpr int32_t dtype_code<double> = RR_DTYPE_FLOAT64;
template <> inline constexpr int32_t dtype_code<int32_t> = RR_DTYPE_INT32;
template <> inline constexpr int32_t dtype_code<int64_t> = RR_DTYPE_INT64;

inline std::string dtype_name(int32_t code) {
	switch (code) {
	case RR_DTYPE_FLOAT32: return "float32";
	case RR_DTYPE_FLOAT64: return "float64";
	case RR_DTYPE_INT32: return "int32";
	case RR_DTYPE_INT64: return "int64";
	default: return "dtype " + std::to_string(code);
	}
}

// dtype_size is the bytes of an element, 0 if there is no such type.
constexpr int64_t dtype_size(int32_t code) noexcept {
	switch (code) {
	case RR_DTYPE_FLOAT32:
	case RR_DTYPE_INT32: return 4;
	case RR_DTYPE_FLOAT64:
	case RR_DTYPE_INT64: return 8;
	default: return 0;
	}
}

namespace detail {

[[noreturn]] inline void refuse(const char *name, const std::string &why) {
	throw logic_error(std::string(name) + ": " + why);
}

// element_count answers whether the product of the extents, which are not negative,
// fits. With an extent of 0 it is 0, whatever the others are.
inline bool element_count(const rr_view &view, int64_t &count) noexcept {
	count = 1;
	for (int32_t axis = 0; axis < view.rank; axis++)
		if (view.shape[axis] == 0) {
			count = 0;
			return true;
		}
	for (int32_t axis = 0; axis < view.rank; axis++)
		if (__builtin_mul_overflow(count, view.shape[axis], &count)) return false;
	return true;
}

// shape_text writes 300x2, and strides_text (2, 1).
inline std::string shape_text(const rr_view &view) {
	std::string text;
	for (int32_t axis = 0; axis < view.rank; axis++) text += (axis ? "x" : "") + std::to_string(view.shape[axis]);
	return text;
}
inline std::string strides_text(const rr_view &view) {
	std::string text = "(";
	for (int32_t axis = 0; axis < view.rank; axis++) text += (axis ? ", " : "") + std::to_string(view.strides[axis]);
	return text + ")";
}

// counted writes '1 row' and '2 rows'.
inline std::string counted(int64_t n, const char *unit) {
	return std::to_string(n) + " " + unit + (n == 1 ? "" : "s");
}

} // namespace detail

// has_layout says whether the elements lie without gaps, the last axis or the first
// varying fastest. An axis of extent 1, and a view without elements, fit either.
inline bool has_layout(const rr_view &view, layout l) noexcept {
	if (view.rank < 0 || view.rank > RR_MAX_RANK) return false;
	int64_t elements;
	if (detail::element_count(view, elements) && elements == 0) return true;
	int64_t stride = 1;
	bool representable = true;
	for (int32_t i = 0; i < view.rank; i++) {
		const auto axis = l == layout::col_major ? i : view.rank - 1 - i;
		if (view.shape[axis] == 1) continue;
		if (!representable || view.strides[axis] != stride) return false;
		representable = !__builtin_mul_overflow(stride, view.shape[axis], &stride);
	}
	return true;
}
inline bool has_layout(const rr_view *view, layout l) noexcept { return view && has_layout(*view, l); }

namespace detail {

inline const char *layout_name(layout l) { return l == layout::row_major ? "row-major" : "col-major"; }

// require_bound refuses views that were never bound, or were cleared.
inline void require_bound(const rr_view *view, const char *name) {
	require(view, name);
	if (view->memory < 0 || view->device < 0) refuse(name, "not a view bound to device memory");
	if (!flavour::usable(view->memory)) {
		static constexpr const char *kinds[] = {"host", "pinned host", "device", "managed"};
		const auto kind = view->memory <= RR_MEMORY_MANAGED ? kinds[view->memory] : "unknown";
		refuse(name, std::string("bound to ") + kind + " memory, which the call cannot use");
	}
}

// checked does the checks that all shapes have in common, of a view whose axes have
// these units.
template <class T, class Index>
T *checked(const rr_view *view, const char *name, layout l, std::initializer_list<const char *> units,
           std::initializer_list<int64_t> extents) {
	static_assert(std::integral<Index>);
	require_bound(view, name);
	const auto rank = static_cast<int32_t>(units.size());
	if (view->rank != rank)
		refuse(name, "expected rank " + std::to_string(rank) + ", got " + std::to_string(view->rank));
	if (view->dtype != dtype_code<T>)
		refuse(name, "expected " + dtype_name(dtype_code<T>) + ", got " + dtype_name(view->dtype));
	for (int32_t axis = 0; axis < rank; axis++)
		if (view->shape[axis] < 0)
			refuse(name, "expected no negative extent, got " + counted(view->shape[axis], units.begin()[axis]));

	int64_t elements;
	const bool countable = element_count(*view, elements);
	if (!view->data && !(countable && elements == 0)) refuse(name, "not a view bound to device memory");
	if (!has_layout(*view, l)) {
		if (rank == 1)
			refuse(name, "expected a contiguous vector, got stride " + std::to_string(view->strides[0]));
		const auto other = l == layout::row_major ? layout::col_major : layout::row_major;
		refuse(name, std::string("expected ") + layout_name(l) + ", got " +
		                 (has_layout(*view, other) ? layout_name(other) : "strides " + strides_text(*view)) + " " +
		                 shape_text(*view));
	}
	for (int32_t axis = 0; axis < rank; axis++)
		if (const auto wanted = extents.begin()[axis]; wanted != any_extent && view->shape[axis] != wanted)
			refuse(name, "expected " + counted(wanted, units.begin()[axis]) + ", got " +
			                 std::to_string(view->shape[axis]));
	for (int32_t axis = 0; axis < rank; axis++)
		if (!std::in_range<Index>(view->shape[axis]))
			refuse(name, counted(view->shape[axis], units.begin()[axis]) + " do not fit an index of " +
			                 std::to_string(std::numeric_limits<Index>::digits + std::signed_integral<Index>) + " bits");
	if (!countable || !std::in_range<Index>(elements))
		refuse(name, shape_text(*view) + " elements do not fit an index of " +
		                 std::to_string(std::numeric_limits<Index>::digits + std::signed_integral<Index>) + " bits");
	return static_cast<T *>(view->data);
}

} // namespace detail

// matrix_data answers the elements of a rank-2 view in the layout, of the extents
// asked for. It refuses, in this order: NULL, an unbound view, another rank, another
// element type than T, negative extents, another layout, other extents, and extents
// or a count of elements that Index cannot hold. Without elements the pointer may be
// NULL.
template <class T, class Index = int64_t>
T *matrix_data(const rr_view *view, const char *name, layout l, int64_t rows = any_extent, int64_t cols = any_extent) {
	return detail::checked<T, Index>(view, name, l, {"row", "column"}, {rows, cols});
}

// vector_data does the same for a contiguous rank-1 view.
template <class T, class Index = int64_t> T *vector_data(const rr_view *view, const char *name, int64_t n = any_extent) {
	return detail::checked<T, Index>(view, name, layout::row_major, {"element"}, {n});
}

#ifdef RAFTRKT_RAFT

// matrix_view and vector_view do the same and answer RAFT's views; Layout is
// raft::row_major or raft::col_major.
template <class T, class Layout = raft::row_major, class Index = int64_t>
raft::device_matrix_view<T, Index, Layout> matrix_view(const rr_view *view, const char *name, int64_t rows = any_extent,
                                                       int64_t cols = any_extent) {
	static_assert(std::same_as<Layout, raft::row_major> || std::same_as<Layout, raft::col_major>);
	constexpr auto l = std::same_as<Layout, raft::row_major> ? layout::row_major : layout::col_major;
	auto *data = matrix_data<T, Index>(view, name, l, rows, cols);
	return raft::make_device_matrix_view<T, Index, Layout>(data, static_cast<Index>(view->shape[0]),
	                                                       static_cast<Index>(view->shape[1]));
}
template <class T, class Index = int64_t>
raft::device_vector_view<T, Index> vector_view(const rr_view *view, const char *name, int64_t n = any_extent) {
	auto *data = vector_data<T, Index>(view, name, n);
	return raft::make_device_vector_view<T, Index>(data, static_cast<Index>(view->shape[0]));
}

#endif

// handle_of answers the handle that a pointer from the runtime stands for.
inline handle_t &handle_of(void *handle) {
	require(handle, "handle");
	return *static_cast<handle_t *>(handle);
}

inline int device_of(const handle_t &handle) { return flavour::device_of(handle); }

// require_on_device refuses a bound view on another device, by its name. NULL and
// unbound views are left to whoever reads them.
inline void require_on_device(int device, std::initializer_list<std::pair<const char *, const rr_view *>> views) {
	for (const auto &[name, view] : views)
		if (view && view->device >= 0 && view->device != device)
			detail::refuse(name, "on device " + std::to_string(view->device) + ", but the handle is on device " +
			                         std::to_string(device));
}

} // namespace raftrkt
