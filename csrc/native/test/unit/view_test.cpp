#include "expect.hpp"

#include "raftrkt/view.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace {

using raftrkt::layout;
using raftrkt::matrix_data;
using raftrkt::vector_data;

double memory[1200];

rr_view view(int32_t dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
	rr_view v{};
	v.data = memory;
	v.dtype = dtype;
	v.memory = RR_MEMORY_DEVICE;
	v.device = 0;
	v.rank = static_cast<int32_t>(shape.size());
	std::copy(shape.begin(), shape.end(), v.shape);
	std::copy(strides.begin(), strides.end(), v.strides);
	return v;
}
rr_view rows(int64_t n, int64_t d, int32_t dtype = RR_DTYPE_FLOAT32) { return view(dtype, {n, d}, {d, 1}); }
rr_view columns(int64_t n, int64_t d) { return view(RR_DTYPE_FLOAT32, {n, d}, {1, n}); }

template <class T = float, class Index = int64_t>
std::string matrix(const rr_view &v, layout l = layout::row_major, int64_t n = raftrkt::any_extent,
                   int64_t d = raftrkt::any_extent) {
	return message_of([&] { matrix_data<T, Index>(&v, "X", l, n, d); });
}
template <class T = float, class Index = int64_t>
std::string vector(const rr_view &v, int64_t n = raftrkt::any_extent) {
	return message_of([&] { vector_data<T, Index>(&v, "y", n); });
}

TEST(View, AFittingViewGivesItsPointer) {
	const auto x = rows(300, 2), f = columns(300, 2);
	EXPECT_EQ((matrix_data<float, int>(&x, "X", layout::row_major)), static_cast<void *>(memory));
	EXPECT_EQ((matrix_data<const float, int>(&x, "X", layout::row_major, 300, 2)), static_cast<void *>(memory));
	EXPECT_EQ((matrix_data<float, int64_t>(&f, "X", layout::col_major)), static_cast<void *>(memory));
	const auto y = view(RR_DTYPE_INT32, {300}, {1});
	EXPECT_EQ((vector_data<int32_t, int>(&y, "y", 300)), static_cast<void *>(memory));
	auto managed = x;
	managed.memory = RR_MEMORY_MANAGED;
	EXPECT_EQ((matrix_data<float>(&managed, "X", layout::row_major)), static_cast<void *>(memory));
}

TEST(View, NullAndUnboundAreRefused) {
	EXPECT_EQ(message_of([] { matrix_data<float>(nullptr, "X", layout::row_major); }), "X is NULL");
	EXPECT_EQ(message_of([] { vector_data<float>(nullptr, "weights"); }), "weights is NULL");
	auto cleared = rows(300, 2);
	cleared.data = nullptr;
	cleared.memory = cleared.device = -1;
	EXPECT_EQ(matrix(cleared), "X: not a view bound to device memory");
	cleared = rows(0, 2);
	cleared.memory = cleared.device = -1;
	EXPECT_EQ(matrix(cleared), "X: not a view bound to device memory");
	auto part = rows(300, 2);
	part.data = nullptr;
	EXPECT_EQ(matrix(part), "X: not a view bound to device memory");
	part = rows(300, 2);
	part.device = -1;
	EXPECT_EQ(matrix(part), "X: not a view bound to device memory");
	for (int32_t kind : {RR_MEMORY_HOST, RR_MEMORY_PINNED, 7}) {
		auto elsewhere = rows(300, 2);
		elsewhere.memory = kind;
		const std::string name = kind == RR_MEMORY_HOST ? "host" : kind == RR_MEMORY_PINNED ? "pinned host" : "unknown";
		EXPECT_EQ(matrix(elsewhere), "X: bound to " + name + " memory, which the call cannot use");
	}
}

TEST(View, AnotherRankIsRefused) {
	EXPECT_EQ(matrix(view(0, {300}, {1})), "X: expected rank 2, got 1");
	EXPECT_EQ(matrix(view(0, {3, 3, 3}, {9, 3, 1})), "X: expected rank 2, got 3");
	EXPECT_EQ(vector(rows(3, 3)), "y: expected rank 1, got 2");
	auto strange = rows(3, 3);
	strange.rank = 1 << 30;
	EXPECT_EQ(matrix(strange), "X: expected rank 2, got 1073741824");
}

TEST(View, AnotherElementTypeIsRefused) {
	EXPECT_EQ(matrix<float>(rows(3, 2, RR_DTYPE_INT32)), "X: expected float32, got int32");
	EXPECT_EQ(matrix<const double>(rows(3, 2)), "X: expected float64, got float32");
	EXPECT_EQ(matrix<int64_t>(rows(3, 2, 9)), "X: expected int64, got dtype 9");
	EXPECT_EQ(vector<int32_t>(view(RR_DTYPE_INT64, {3}, {1})), "y: expected int32, got int64");
}

TEST(View, NegativeExtentsAreRefused) {
	EXPECT_EQ(matrix(rows(-3, 2)), "X: expected no negative extent, got -3 rows");
	EXPECT_EQ(matrix(rows(0, -1)), "X: expected no negative extent, got -1 columns");
	EXPECT_EQ(vector(view(0, {INT64_MIN}, {1})), "y: expected no negative extent, got -9223372036854775808 elements");
}

TEST(View, AnotherLayoutIsRefused) {
	EXPECT_EQ(matrix(columns(300, 2)), "X: expected row-major, got col-major 300x2");
	EXPECT_EQ(matrix(rows(300, 2), layout::col_major), "X: expected col-major, got row-major 300x2");
	EXPECT_EQ(matrix(view(0, {300, 2}, {4, 1})), "X: expected row-major, got strides (4, 1) 300x2");
	EXPECT_EQ(matrix(view(0, {300, 2}, {-2, 1})), "X: expected row-major, got strides (-2, 1) 300x2");
	EXPECT_EQ(matrix(view(0, {300, 2}, {0, 1}), layout::col_major), "X: expected col-major, got strides (0, 1) 300x2");
	EXPECT_EQ(vector(view(0, {300}, {2})), "y: expected a contiguous vector, got stride 2");
	EXPECT_EQ(vector(view(0, {300}, {-1})), "y: expected a contiguous vector, got stride -1");
}

TEST(View, AnAxisOfOneFitsEitherLayout) {
	for (auto l : {layout::row_major, layout::col_major}) {
		for (const auto &v : {view(0, {1, 5}, {77, 1}), view(0, {5, 1}, {1, 77}), view(0, {1, 1}, {-7, 0})}) {
			EXPECT_TRUE(raftrkt::has_layout(&v, l));
			EXPECT_EQ((matrix_data<float, int>(&v, "X", l)), static_cast<void *>(memory));
		}
	}
	const auto y = view(0, {1}, {5});
	EXPECT_EQ((vector_data<float, int>(&y, "y")), static_cast<void *>(memory));
}

TEST(View, WithoutElementsNoDataIsNeeded) {
	for (auto v : {view(0, {0, 5}, {5, 1}), view(0, {5, 0}, {3, 8}), view(0, {0, INT64_MAX}, {INT64_MAX, 1})}) {
		v.data = nullptr;
		for (auto l : {layout::row_major, layout::col_major})
			EXPECT_EQ(matrix_data<float>(&v, "X", l), nullptr);
	}
	auto y = view(0, {0}, {1});
	y.data = nullptr;
	EXPECT_EQ(vector_data<float>(&y, "y"), nullptr);
}

TEST(View, OtherExtentsAreRefused) {
	EXPECT_EQ(matrix(rows(3, 5), layout::row_major, -1, 2), "X: expected 2 columns, got 5");
	EXPECT_EQ(matrix(rows(3, 5), layout::row_major, 4, 2), "X: expected 4 rows, got 3");
	EXPECT_EQ(matrix(rows(3, 5), layout::row_major, 1), "X: expected 1 row, got 3");
	EXPECT_EQ(vector(view(0, {3}, {1}), 300), "y: expected 300 elements, got 3");
	EXPECT_EQ(vector(view(0, {3}, {1}), 0), "y: expected 0 elements, got 3");
}

TEST(View, WhatAnIndexCannotHoldIsRefused) {
	const int64_t big = int64_t{1} << 31;
	EXPECT_EQ((matrix<float, int32_t>(rows(big, 1))), "X: 2147483648 rows do not fit an index of 32 bits");
	EXPECT_EQ((matrix<float, int32_t>(rows(1, big))), "X: 2147483648 columns do not fit an index of 32 bits");
	EXPECT_EQ((matrix<float, int32_t>(rows(65536, 32768))), "X: 65536x32768 elements do not fit an index of 32 bits");
	EXPECT_EQ((vector<float, int32_t>(view(0, {big}, {1}))), "y: 2147483648 elements do not fit an index of 32 bits");
	EXPECT_EQ((matrix<float, int64_t>(rows(big * 2, big * 2))),
	          "X: 4294967296x4294967296 elements do not fit an index of 64 bits");
	EXPECT_EQ((matrix<float, uint64_t>(rows(big * 2, big * 2))),
	          "X: 4294967296x4294967296 elements do not fit an index of 64 bits");
	const auto fits = rows(65535, 32768), wide = rows(65536, 65535);
	EXPECT_EQ((matrix_data<float, int32_t>(&fits, "X", layout::row_major)), static_cast<void *>(memory));
	EXPECT_EQ((matrix_data<float, uint32_t>(&wide, "X", layout::row_major)), static_cast<void *>(memory));
	EXPECT_EQ((vector<float, uint8_t>(view(0, {256}, {1}))), "y: 256 elements do not fit an index of 8 bits");
}

TEST(View, LayoutsOfOtherRanks) {
	const auto scalar = view(0, {}, {}), cube = view(0, {2, 3, 4}, {12, 4, 1}), f = view(0, {2, 3, 4}, {1, 2, 6});
	EXPECT_TRUE(raftrkt::has_layout(&scalar, layout::row_major));
	EXPECT_TRUE(raftrkt::has_layout(&cube, layout::row_major));
	EXPECT_FALSE(raftrkt::has_layout(&cube, layout::col_major));
	EXPECT_TRUE(raftrkt::has_layout(&f, layout::col_major));
	EXPECT_FALSE(raftrkt::has_layout(nullptr, layout::row_major));
	// A stride that overflows fits no axis, whatever it wraps to.
	const int64_t big = int64_t{1} << 32;
	const auto wraps = view(0, {2, big, big}, {0, big, 1});
	EXPECT_FALSE(raftrkt::has_layout(&wraps, layout::row_major));
	auto strange = cube;
	for (int32_t rank : {-1, 9}) {
		strange.rank = rank;
		EXPECT_FALSE(raftrkt::has_layout(&strange, layout::row_major));
	}
}

TEST(View, ElementTypes) {
	EXPECT_EQ(raftrkt::dtype_code<float>, 0);
	EXPECT_EQ(raftrkt::dtype_code<const double>, 1);
	EXPECT_EQ(raftrkt::dtype_code<int32_t>, 2);
	EXPECT_EQ(raftrkt::dtype_code<const int64_t>, 3);
	EXPECT_EQ(raftrkt::dtype_name(3), "int64");
	EXPECT_EQ(raftrkt::dtype_name(-1), "dtype -1");
	const int64_t sizes[] = {4, 8, 4, 8};
	for (int32_t code = 0; code < 4; code++) EXPECT_EQ(raftrkt::dtype_size(code), sizes[code]);
	EXPECT_EQ(raftrkt::dtype_size(4), 0);
}

TEST(View, TheHandleIsWhatThePointerIs) {
	raftrkt::fake_stream stream;
	raftrkt::fake_handle handle{&stream, 2, {}};
	EXPECT_EQ(&raftrkt::handle_of(&handle), &handle);
	EXPECT_EQ(raftrkt::device_of(handle), 2);
	EXPECT_EQ(message_of([] { raftrkt::handle_of(nullptr); }), "handle is NULL");
}

TEST(View, AnArrayOfAnotherDeviceIsRefused) {
	auto here = rows(3, 2), there = here, unbound = here;
	here.device = 2;
	there.device = 1;
	unbound.device = -1;
	raftrkt::require_on_device(2, {{"X", &here}, {"weights", nullptr}, {"centroids", &unbound}});
	EXPECT_EQ(message_of([&] { raftrkt::require_on_device(2, {{"X", &here}, {"centroids", &there}}); }),
	          "centroids: on device 1, but the handle is on device 2");
}

} // namespace
