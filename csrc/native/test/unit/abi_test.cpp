#include "expect.hpp"

#include "raftrkt/abi.h"

#include <cstring>
#include <gtest/gtest.h>

namespace {

std::string compare(const rr_abi_tag *built, const rr_abi_tag *loaded) {
	char why[256];
	std::memset(why, 'x', sizeof why);
	const int differ = rr_abi_compare(built, loaded, why, sizeof why);
	EXPECT_EQ(differ, why[0] != '\0');
	return why;
}

const std::string both = "; build both against the same rapids package set";

TEST(Abi, EqualTagsHaveNoWhy) {
	const auto a = raftrkt::compiled_abi(), b = a;
	EXPECT_EQ(compare(&a, &b), "");
}

TEST(Abi, TheTagIsOfTheHeaders) {
	const auto tag = raftrkt::compiled_abi();
	EXPECT_EQ(tag.abi_version, RR_ABI_VERSION);
	EXPECT_EQ(tag.raft_minor, raftrkt::flavour::raft_version[1]);
	EXPECT_EQ(tag.rmm_major, raftrkt::flavour::rmm_version[0]);
	EXPECT_EQ(tag.cccl_patch, raftrkt::flavour::cccl_version[2]);
	EXPECT_EQ(tag.cuda_runtime, raftrkt::flavour::cuda_runtime);
	EXPECT_EQ(tag.resource_types, raftrkt::flavour::resource_types);
	EXPECT_EQ(tag.handle_size, static_cast<int64_t>(sizeof(raftrkt::handle_t)));
}

// Each field of a copy is forged, together with all that are compared after it.
TEST(Abi, TheFirstDifferenceIsNamed) {
	const auto built = raftrkt::compiled_abi();
	const char *expected[] = {
		"ABI version: built against 1, but libraftrkt has 2",
		"RAFT: built against 26.10.00, but libraftrkt has 27.11.01",
		"RAFT: built against 26.10.00, but libraftrkt has 26.11.01",
		"RAFT: built against 26.10.00, but libraftrkt has 26.10.01",
		"RMM: built against 26.10.00, but libraftrkt has 27.11.01",
		"RMM: built against 26.10.00, but libraftrkt has 26.11.01",
		"RMM: built against 26.10.00, but libraftrkt has 26.10.01",
		"CCCL: built against 3.2.1, but libraftrkt has 4.3.2",
		"CCCL: built against 3.2.1, but libraftrkt has 3.3.2",
		"CCCL: built against 3.2.1, but libraftrkt has 3.2.2",
		"CUDA runtime: built against 13.0.0, but libraftrkt has 13.0.1",
		"resource types: built against 40, but libraftrkt has 41",
		"raft::handle_t size: built against 32, but libraftrkt has 33",
	};
	for (std::size_t field = 0; field < 13; field++) {
		auto loaded = built;
		int32_t numbers[12];
		std::memcpy(numbers, &loaded, sizeof numbers);
		for (std::size_t i = field; i < 12; i++) numbers[i]++;
		std::memcpy(&loaded, numbers, sizeof numbers);
		loaded.handle_size++;
		EXPECT_EQ(compare(&built, &loaded), expected[field] + both);
	}
}

TEST(Abi, AVersionOfZerosIsNone) {
	const auto built = raftrkt::compiled_abi();
	auto loaded = built;
	loaded.rmm_major = loaded.rmm_minor = 0;
	EXPECT_EQ(compare(&built, &loaded), "RMM: built against 26.10.00, but libraftrkt has none" + both);
	loaded = built;
	loaded.cuda_runtime = 0;
	EXPECT_EQ(compare(&loaded, &built), "CUDA runtime: built against none, but libraftrkt has 13.0.0" + both);
}

TEST(Abi, NumbersOutOfRangeStayWhole) {
	const auto built = raftrkt::compiled_abi();
	auto loaded = built;
	loaded.raft_major = loaded.raft_minor = loaded.raft_patch = INT32_MIN;
	EXPECT_EQ(compare(&built, &loaded),
	          "RAFT: built against 26.10.00, but libraftrkt has -2147483648.-2147483648.-2147483648" + both);
	loaded = built;
	loaded.handle_size = INT64_MIN;
	EXPECT_EQ(compare(&built, &loaded),
	          "raft::handle_t size: built against 32, but libraftrkt has -9223372036854775808" + both);
}

TEST(Abi, ANullTagIsADifference) {
	const auto tag = raftrkt::compiled_abi();
	EXPECT_EQ(compare(&tag, nullptr), "ABI tag: built against present, but libraftrkt has none");
	EXPECT_EQ(compare(nullptr, &tag), "ABI tag: built against none, but libraftrkt has present");
	EXPECT_EQ(compare(nullptr, nullptr), "ABI tag: built against none, but libraftrkt has none");
}

TEST(Abi, WhyIsCutToItsSize) {
	const auto built = raftrkt::compiled_abi();
	auto loaded = built;
	loaded.abi_version = 2;
	char why[8];
	for (const auto *other : {static_cast<const rr_abi_tag *>(&loaded), static_cast<const rr_abi_tag *>(nullptr)}) {
		EXPECT_EQ(rr_abi_compare(&built, other, nullptr, 0), 1);
		EXPECT_EQ(rr_abi_compare(&built, other, nullptr, 8), 1);
		std::memset(why, 'x', sizeof why);
		EXPECT_EQ(rr_abi_compare(&built, other, why, 0), 1);
		EXPECT_EQ(why[0], 'x');
		EXPECT_EQ(rr_abi_compare(&built, other, why, 1), 1);
		EXPECT_EQ(why[0], '\0');
		EXPECT_EQ(why[1], 'x');
		EXPECT_EQ(rr_abi_compare(&built, other, why, 4), 1);
		EXPECT_STREQ(why, "ABI");
	}
	EXPECT_EQ(rr_abi_compare(&built, &built, nullptr, 0), 0);
	why[0] = 'x';
	EXPECT_EQ(rr_abi_compare(&built, &built, why, 0), 0);
	EXPECT_EQ(why[0], 'x');
}

TEST(Abi, RequireThrowsTheWhy) {
	auto tag = raftrkt::compiled_abi();
	raftrkt::require_abi(&tag);
	tag.raft_minor = 11;
	EXPECT_EQ(message_of([&] { raftrkt::require_abi(&tag); }),
	          "RAFT: built against 26.10.00, but libraftrkt has 26.11.00" + both);
	EXPECT_EQ(message_of([] { raftrkt::require_abi(nullptr); }),
	          "ABI tag: built against present, but libraftrkt has none");
}

} // namespace
