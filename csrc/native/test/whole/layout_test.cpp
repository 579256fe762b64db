// The layouts that the document has, apart from the headers' own assertions.
#include "raftrkt/c_api.h"

#include <cstddef>
#include <gtest/gtest.h>

namespace {

TEST(Layout, View) {
	static_assert(sizeof(rr_view) == 152 && alignof(rr_view) == 8);
	const std::size_t at[] = {offsetof(rr_view, data),   offsetof(rr_view, dtype), offsetof(rr_view, memory),
	                          offsetof(rr_view, device), offsetof(rr_view, rank),  offsetof(rr_view, shape),
	                          offsetof(rr_view, strides)};
	const std::size_t expected[] = {0, 8, 12, 16, 20, 24, 88};
	for (int i = 0; i < 7; i++) EXPECT_EQ(at[i], expected[i]);
}

TEST(Layout, Tag) {
	static_assert(sizeof(rr_abi_tag) == 56);
	EXPECT_EQ(offsetof(rr_abi_tag, raft_minor), 8u);
	EXPECT_EQ(offsetof(rr_abi_tag, cuda_runtime), 40u);
	EXPECT_EQ(offsetof(rr_abi_tag, resource_types), 44u);
	EXPECT_EQ(offsetof(rr_abi_tag, handle_size), 48u);
}

TEST(Layout, Outcome) {
	static_assert(sizeof(rr_job_outcome) == 4104 && RR_JOB_MESSAGE_BYTES == 4096);
	EXPECT_EQ(offsetof(rr_job_outcome, message), 8u);
}

TEST(Layout, Deposit) {
	static_assert(sizeof(rr_deposit) == 1256 && RR_MAX_REGIONS == 8);
	const std::size_t at[] = {offsetof(rr_deposit, handle), offsetof(rr_deposit, device),  offsetof(rr_deposit, state),
	                          offsetof(rr_deposit, owner),  offsetof(rr_deposit, release), offsetof(rr_deposit, count),
	                          offsetof(rr_deposit, regions)};
	const std::size_t expected[] = {0, 8, 12, 16, 24, 32, 40};
	for (int i = 0; i < 7; i++) EXPECT_EQ(at[i], expected[i]);
}

TEST(Layout, Codes) {
	static_assert(RR_OK == 0 && RR_ERROR == 1 && RR_BUFFER_TOO_SMALL == 2);
	static_assert(RR_KIND_GENERIC == 0 && RR_KIND_OUT_OF_MEMORY == 1 && RR_KIND_CUDA == 2 && RR_KIND_LOGIC == 3);
	static_assert(RR_DTYPE_FLOAT32 == 0 && RR_DTYPE_FLOAT64 == 1 && RR_DTYPE_INT32 == 2 && RR_DTYPE_INT64 == 3);
	static_assert(RR_MEMORY_HOST == 0 && RR_MEMORY_PINNED == 1 && RR_MEMORY_DEVICE == 2 && RR_MEMORY_MANAGED == 3);
	static_assert(RR_DEPOSIT_OPEN == 0 && RR_DEPOSIT_FILLING == 1 && RR_DEPOSIT_FILLED == 2 && RR_DEPOSIT_CLOSED == 3);
	static_assert(RR_MAX_RANK == 8 && RR_ABI_VERSION == 1);
}

} // namespace
