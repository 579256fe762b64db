// rr_buffer_view's refusals, in their order, through both ways to bind a view.
#include "raftrkt/c_api.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

alignas(8) char memory[96];

rr_view view(int32_t dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
	rr_view v{};
	v.data = &v; // anything but what a refusal leaves
	v.memory = v.device = 55;
	v.dtype = dtype;
	v.rank = static_cast<int32_t>(shape.size());
	std::copy(shape.begin(), shape.end(), v.shape);
	std::copy(strides.begin(), strides.end(), v.strides);
	return v;
}

// bind answers the message of a refusal or "", and holds what the view has then.
std::string bind(rr_view v, uint64_t offset = 0, uint64_t bytes = 96, char *data = memory) {
	std::string text[2];
	for (int direct = 0; direct < 2; direct++) {
		auto bound = v;
		int status;
		if (direct) {
			status = rr_view_bind(data, bytes, RR_MEMORY_PINNED, 3, offset, &bound);
		} else {
			rr_buffer *buffer = nullptr;
			EXPECT_EQ(rr_buffer_wrap(data, bytes, RR_MEMORY_PINNED, 3, &buffer), RR_OK) << rr_last_error();
			status = rr_buffer_view(buffer, offset, &bound);
			const std::string kept = rr_last_error();
			const int kind = rr_last_error_kind();
			EXPECT_EQ(rr_buffer_free(buffer), RR_OK);
			if (status != RR_OK) {
				EXPECT_EQ(kind, RR_KIND_LOGIC);
				text[0] = kept;
			}
		}
		if (status != RR_OK) {
			if (direct) {
				EXPECT_EQ(rr_last_error_kind(), RR_KIND_LOGIC);
				text[1] = rr_last_error();
			}
			EXPECT_EQ(status, RR_ERROR);
			EXPECT_EQ(bound.data, nullptr);
			EXPECT_EQ(bound.memory, -1);
			EXPECT_EQ(bound.device, -1);
		} else {
			EXPECT_EQ(bound.data, data ? data + offset : nullptr);
			EXPECT_EQ(bound.memory, RR_MEMORY_PINNED);
			EXPECT_EQ(bound.device, 3);
		}
		EXPECT_EQ(bound.rank, v.rank);
	}
	EXPECT_EQ(text[0], text[1]);
	return text[0];
}

TEST(Buffer, ViewsThatFit) {
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {3, 4}, {4, 1})), "");
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {3, 4}, {1, 3})), "");
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT32, {24}, {1})), "");
	EXPECT_EQ(bind(view(RR_DTYPE_INT32, {23}, {1}), 4), "");
	EXPECT_EQ(bind(view(RR_DTYPE_INT64, {}, {}), 88), "");                      // a scalar
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {12}, {-1}), 88), "");                // backwards
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {3, 4}, {-4, -1}), 88), "");          // in both axes
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {3, 4}, {-4, 1}), 64), "");           // in one
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {1000000, 12}, {0, 1})), "");         // broadcast
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {6}, {2})), "");                      // every other
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {1, 12}, {INT64_MAX, 1})), "");       // a stride of no use
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {0, 5}, {INT64_MAX, INT64_MIN}), 96), ""); // no elements
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {0}, {1}), 0, 0, nullptr), "");       // nor memory
	EXPECT_EQ(bind(view(RR_DTYPE_INT32, {1, 1, 1, 1, 1, 1, 1, 24}, {1, 1, 1, 1, 1, 1, 1, 1})), "");
}

TEST(Buffer, ElementTypesAreChecked) {
	for (int32_t dtype : {-1, 4, INT32_MAX})
		EXPECT_EQ(bind(view(dtype, {3}, {1})),
		          "view: expected float32, float64, int32 or int64, got dtype " + std::to_string(dtype));
}

TEST(Buffer, RanksAreChecked) {
	for (int32_t rank : {-1, 9, INT32_MAX, INT32_MIN}) {
		auto v = view(0, {3}, {1});
		v.rank = rank;
		EXPECT_EQ(bind(v), "view: expected a rank of 0 to 8, got " + std::to_string(rank));
	}
}

TEST(Buffer, ExtentsAreChecked) {
	EXPECT_EQ(bind(view(0, {3, -1}, {1, 1})), "view: expected no negative extent, got 3x-1");
	EXPECT_EQ(bind(view(0, {0, INT64_MIN}, {1, 1})), "view: expected no negative extent, got 0x-9223372036854775808");
	EXPECT_EQ(bind(view(0, {int64_t{1} << 32, int64_t{1} << 31}, {0, 0})),
	          "view: the elements of 4294967296x2147483648 overflow");
}

TEST(Buffer, StridesAreChecked) {
	EXPECT_EQ(bind(view(0, {3}, {INT64_MAX})), "view: the strides (9223372036854775807) overflow");
	EXPECT_EQ(bind(view(0, {3}, {INT64_MIN})), "view: the strides (-9223372036854775808) overflow");
	EXPECT_EQ(bind(view(0, {2, 2}, {INT64_MAX, INT64_MAX})),
	          "view: the strides (9223372036854775807, 9223372036854775807) overflow");
}

TEST(Buffer, OffsetsAreChecked) {
	EXPECT_EQ(bind(view(0, {1}, {1}), 97), "view: offset 97 is past the buffer's 96 bytes");
	EXPECT_EQ(bind(view(0, {0}, {1}), 100), "view: offset 100 is past the buffer's 96 bytes");
	EXPECT_EQ(bind(view(0, {1}, {1}), UINT64_MAX), "view: offset 18446744073709551615 is past the buffer's 96 bytes");
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT64, {1}, {1}), 4), "view: offset 4 is misaligned for float64");
	EXPECT_EQ(bind(view(RR_DTYPE_INT32, {1}, {1}), 2), "view: offset 2 is misaligned for int32");
	EXPECT_EQ(bind(view(RR_DTYPE_FLOAT32, {1}, {1}), 0, 90, memory + 2), "view: offset 0 is misaligned for float32");
}

TEST(Buffer, EveryElementMustLieInIt) {
	const auto leaves = [](const std::string &what, const std::string &strides, const std::string &offset) {
		return "view: " + what + " with strides " + strides + " at offset " + offset + " leaves the buffer's 96 bytes";
	};
	EXPECT_EQ(bind(view(1, {13}, {1})), leaves("13 float64", "(1)", "0"));
	EXPECT_EQ(bind(view(1, {12}, {1}), 8), leaves("12 float64", "(1)", "8"));
	EXPECT_EQ(bind(view(1, {3, 4}, {5, 1})), leaves("3x4 float64", "(5, 1)", "0"));
	EXPECT_EQ(bind(view(1, {2}, {-1})), leaves("2 float64", "(-1)", "0"));
	EXPECT_EQ(bind(view(1, {12}, {-1}), 80), leaves("12 float64", "(-1)", "80"));
	EXPECT_EQ(bind(view(1, {}, {}), 96), leaves(" float64", "()", "96"));
	// What fits a count of elements may not fit one of bytes.
	EXPECT_EQ(bind(view(1, {2}, {INT64_MAX / 4})), leaves("2 float64", "(2305843009213693951)", "0"));
	EXPECT_EQ(bind(view(1, {2}, {INT64_MIN / 4})), leaves("2 float64", "(-2305843009213693952)", "0"));
	// A part in range must not hide one that is not.
	EXPECT_EQ(bind(view(1, {2, 2}, {-2, 1}), 8), leaves("2x2 float64", "(-2, 1)", "8"));
}

TEST(Buffer, ChecksComeInTheirOrder) {
	auto v = view(9, {-1}, {INT64_MAX});
	v.rank = 9;
	EXPECT_EQ(bind(v, 101), "view: expected float32, float64, int32 or int64, got dtype 9");
	v.dtype = 0;
	EXPECT_EQ(bind(v, 101), "view: expected a rank of 0 to 8, got 9");
	v.rank = 1;
	EXPECT_EQ(bind(v, 101), "view: expected no negative extent, got -1");
	v.shape[0] = 30;
	EXPECT_EQ(bind(v, 101), "view: the strides (9223372036854775807) overflow");
	v.strides[0] = 1;
	EXPECT_EQ(bind(v, 101), "view: offset 101 is past the buffer's 96 bytes");
	EXPECT_EQ(bind(v, 2), "view: offset 2 is misaligned for float32");
	EXPECT_EQ(bind(v, 4), "view: 30 float32 with strides (1) at offset 4 leaves the buffer's 96 bytes");
}

TEST(Buffer, NullIsNamed) {
	auto v = view(0, {3}, {1});
	EXPECT_EQ(rr_buffer_view(nullptr, 0, &v), RR_ERROR);
	EXPECT_STREQ(rr_last_error(), "buffer is NULL");
	EXPECT_EQ(v.data, nullptr);
	EXPECT_EQ(v.memory, -1);
	EXPECT_EQ(v.device, -1);
	rr_buffer *buffer;
	ASSERT_EQ(rr_buffer_wrap(memory, 96, RR_MEMORY_HOST, 0, &buffer), RR_OK);
	EXPECT_EQ(rr_buffer_view(buffer, 0, nullptr), RR_ERROR);
	EXPECT_STREQ(rr_last_error(), "view is NULL");
	EXPECT_EQ(rr_view_bind(memory, 96, RR_MEMORY_HOST, 0, 0, nullptr), RR_ERROR);
	EXPECT_STREQ(rr_last_error(), "view is NULL");
	EXPECT_EQ(rr_buffer_free(buffer), RR_OK);
	EXPECT_EQ(rr_buffer_free(nullptr), RR_OK);
	EXPECT_EQ(rr_buffer_wrap(memory, 96, RR_MEMORY_HOST, 0, nullptr), RR_ERROR);
	EXPECT_STREQ(rr_last_error(), "out is NULL");
}

TEST(Buffer, MemoryThatCannotBeIsRefused) {
	rr_buffer *buffer = reinterpret_cast<rr_buffer *>(memory);
	const auto refused = [&](void *data, uint64_t bytes, int32_t kind, int32_t device) {
		auto v = view(0, {1}, {1});
		EXPECT_EQ(rr_view_bind(data, bytes, kind, device, 0, &v), RR_ERROR);
		EXPECT_EQ(v.data, nullptr);
		EXPECT_EQ(v.memory, -1);
		const std::string text = rr_last_error();
		EXPECT_EQ(rr_buffer_wrap(data, bytes, kind, device, &buffer), RR_ERROR);
		EXPECT_EQ(buffer, nullptr);
		EXPECT_EQ(rr_last_error(), text);
		EXPECT_EQ(rr_last_error_kind(), RR_KIND_LOGIC);
		return text;
	};
	EXPECT_EQ(refused(memory, uint64_t{1} << 63, 0, 0), "buffer: expected at most 2^63-1 bytes, got 9223372036854775808");
	EXPECT_EQ(refused(nullptr, 8, 0, 0), "buffer: no data for 8 bytes");
	EXPECT_EQ(refused(memory, 96, 4, 0), "buffer: expected a memory kind of 0 to 3, got 4");
	EXPECT_EQ(refused(memory, 96, -1, 0), "buffer: expected a memory kind of 0 to 3, got -1");
	EXPECT_EQ(refused(memory, 96, 0, -1), "buffer: expected a device, got -1");
}

// The readers' contract: one error for each thread, cleared by the next call.
TEST(Buffer, ASuccessfulCallClearsTheLastError) {
	auto v = view(9, {3}, {1});
	EXPECT_EQ(rr_view_bind(memory, 96, 0, 0, 0, &v), RR_ERROR);
	EXPECT_STRNE(rr_last_error(), "");
	v.dtype = 0;
	EXPECT_EQ(rr_view_bind(memory, 96, 0, 0, 0, &v), RR_OK);
	EXPECT_STREQ(rr_last_error(), "");
	EXPECT_EQ(rr_last_error_kind(), RR_KIND_GENERIC);
}

} // namespace
