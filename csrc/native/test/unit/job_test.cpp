#include "expect.hpp"

#include "canary.h"
#include "raftrkt/job.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace {

using raftrkt::job_args_size;
using raftrkt::job_parameter;

// The canary's blocks, whose sizes the document has.
static_assert(job_args_size<&kc_fit> == 520);
static_assert(job_args_size<&kc_predict> == 632);
static_assert(job_args_size<&kc_make_blobs> == 360);
static_assert(job_args_size<&kc_cluster_members> == 328);
int fit_cut(void *, const rr_view *, const rr_view *, const rr_view *, int32_t) { return RR_OK; }
static_assert(job_args_size<&fit_cut> == 472);

int nothing() { return RR_OK; }
static_assert(job_args_size<&nothing> == 0);
int four(int32_t) { return RR_OK; }
static_assert(job_args_size<&four> == 8);

static_assert(job_parameter<void *> && job_parameter<const rr_view *> && job_parameter<rr_deposit *>);
static_assert(job_parameter<int32_t> && job_parameter<int64_t> && job_parameter<uint64_t> && job_parameter<float> &&
              job_parameter<double> && job_parameter<long long> && job_parameter<unsigned long long>);
static_assert(job_parameter<int32_t *> && job_parameter<int64_t *> && job_parameter<uint64_t *> &&
              job_parameter<float *> && job_parameter<double *>);
static_assert(!job_parameter<const void *> && !job_parameter<rr_view *> && !job_parameter<const rr_deposit *>);
static_assert(!job_parameter<bool> && !job_parameter<char> && !job_parameter<int8_t> && !job_parameter<int16_t> &&
              !job_parameter<uint32_t> && !job_parameter<long double> && !job_parameter<rr_view>);
static_assert(!job_parameter<const double *> && !job_parameter<const char *> && !job_parameter<double **> &&
              !job_parameter<int32_t &> && !job_parameter<const int32_t> && !job_parameter<std::string>);

// Every kind of parameter, in an order that needs padding.
struct seen_t {
	void *handle;
	const rr_view *x, *weights;
	int32_t i;
	double d;
	float f;
	uint64_t u;
	rr_deposit *out;
	int64_t l;
	rr_view x_fields;
} seen;

int all(void *handle, int32_t i, const rr_view *x, float f, const rr_view *weights, double d, int32_t *out_i,
        rr_deposit *out, uint64_t u, float *out_f, int64_t l, double *out_d, int64_t *out_l, uint64_t *out_u) {
	seen = {handle, x, weights, i, d, f, u, out, l, x ? *x : rr_view{}};
	*out_i = -1;
	*out_f = 0.5f;
	*out_d = 1e300;
	*out_l = INT64_MIN;
	*out_u = UINT64_MAX;
	return RR_OK;
}

raftrkt::error_slot slot;

// block lays arguments out as the rule says, apart from job.hpp.
struct block {
	std::vector<std::byte> bytes;
	template <class T> std::size_t add(const T &value, std::size_t align = alignof(T)) {
		while (bytes.size() % align) bytes.push_back(std::byte{0xee});
		const auto at = bytes.size();
		bytes.resize(at + sizeof value);
		std::memcpy(&bytes[at], &value, sizeof value);
		return at;
	}
	void close() {
		while (bytes.size() % 8) bytes.push_back(std::byte{0xee});
	}
	template <class T> T at(std::size_t offset) const {
		T value;
		std::memcpy(&value, &bytes[offset], sizeof value);
		return value;
	}
};

TEST(Job, ArgumentsAndOutputsLieWhereTheRuleSays) {
	int somewhere = 0;
	rr_deposit deposit{};
	rr_view x{}, absent{};
	x.rank = 2;
	x.shape[1] = 7;
	absent.rank = RR_RANK_ABSENT;
	block b;
	b.add<void *>(&somewhere);
	b.add<int32_t>(-5);
	b.add(x, 8);
	b.add(1.5f);
	b.add(absent, 8);
	b.add(2.25);
	const auto out_i = b.add<int32_t>(99);
	b.add<rr_deposit *>(&deposit);
	b.add<uint64_t>(1ull << 63);
	const auto out_f = b.add(99.0f);
	b.add<int64_t>(-7);
	const auto out_d = b.add(99.0);
	const auto out_l = b.add<int64_t>(99);
	const auto out_u = b.add<uint64_t>(99);
	b.close();
	ASSERT_EQ(b.bytes.size(), job_args_size<&all>);
	rr_job_outcome outcome;
	std::memset(&outcome, 0xee, sizeof outcome);
	raftrkt::run_job<&all>(b.bytes.data(), b.bytes.size(), &outcome, slot);
	EXPECT_EQ(outcome.status, RR_OK);
	EXPECT_EQ(outcome.kind, RR_KIND_GENERIC);
	EXPECT_STREQ(outcome.message, "");
	EXPECT_EQ(seen.handle, &somewhere);
	EXPECT_EQ(seen.i, -5);
	ASSERT_NE(seen.x, nullptr);
	EXPECT_EQ(std::memcmp(&seen.x_fields, &x, sizeof x), 0);
	EXPECT_EQ(seen.weights, nullptr);
	EXPECT_EQ(seen.f, 1.5f);
	EXPECT_EQ(seen.d, 2.25);
	EXPECT_EQ(seen.out, &deposit);
	EXPECT_EQ(seen.u, 1ull << 63);
	EXPECT_EQ(seen.l, -7);
	EXPECT_EQ(b.at<int32_t>(out_i), -1);
	EXPECT_EQ(b.at<float>(out_f), 0.5f);
	EXPECT_EQ(b.at<double>(out_d), 1e300);
	EXPECT_EQ(b.at<int64_t>(out_l), INT64_MIN);
	EXPECT_EQ(b.at<uint64_t>(out_u), UINT64_MAX);
	EXPECT_EQ(b.at<int32_t>(8), -5); // arguments are not written
}

int sum(int32_t a, double b, double *out) {
	*out = a + b;
	return RR_OK;
}

TEST(Job, TheBlockMayLieAnywhere) {
	std::byte memory[32 + 8];
	for (std::size_t shift = 0; shift < 8; shift++) {
		auto *args = memory + shift;
		const int32_t a = 3;
		const double b = 0.25;
		std::memcpy(args, &a, 4);
		std::memcpy(args + 8, &b, 8);
		rr_job_outcome outcome;
		raftrkt::run_job<&sum>(args, 24, &outcome, slot);
		double out;
		std::memcpy(&out, args + 16, 8);
		EXPECT_EQ(out, 3.25);
		EXPECT_EQ(outcome.status, RR_OK);
	}
}

int32_t noted_rank;
int note_rank(void *, const rr_view *x) {
	noted_rank = x ? x->rank : -1;
	return RR_OK;
}

TEST(Job, AClearedViewIsPassedOn) {
	struct args {
		void *handle;
		rr_view x;
	} a{};
	a.x.rank = 2;
	a.x.memory = a.x.device = -1;
	rr_job_outcome outcome;
	raftrkt::run_job<&note_rank>(&a, sizeof a, &outcome, slot);
	EXPECT_EQ(noted_rank, 2);
}

TEST(Job, ABlockOfAnotherSizeIsRefused) {
	seen.i = 1234;
	rr_job_outcome outcome;
	std::byte bytes[8]{};
	raftrkt::run_job<&four>(bytes, 16, &outcome, slot);
	EXPECT_EQ(outcome.status, RR_ERROR);
	EXPECT_EQ(outcome.kind, RR_KIND_LOGIC);
	EXPECT_STREQ(outcome.message, "the argument block is 16 bytes; the job expects 8");
	raftrkt::run_job<&nothing>(bytes, 8, &outcome, slot);
	EXPECT_STREQ(outcome.message, "the argument block is 8 bytes; the job expects 0");
	raftrkt::run_job<&four>(nullptr, 8, &outcome, slot);
	EXPECT_STREQ(outcome.message, "the argument block is NULL");
	raftrkt::run_job<&nothing>(nullptr, 0, &outcome, slot);
	EXPECT_EQ(outcome.status, RR_OK);
	EXPECT_STREQ(outcome.message, "");
}

int fails(int32_t status, int32_t kind) {
	slot.record(kind, "why");
	return status;
}
int throws(int32_t) { throw std::bad_alloc(); }
int long_message() {
	return raftrkt::translate_exceptions(slot, [] { throw std::logic_error(std::string(9000, 'a')); });
}
int silent() { return RR_ERROR; }

TEST(Job, AFailureHasItsMessageAndKind) {
	rr_job_outcome outcome;
	for (int32_t status : {RR_ERROR, RR_BUFFER_TOO_SMALL, -7})
		for (int32_t kind : {RR_KIND_GENERIC, RR_KIND_OUT_OF_MEMORY, RR_KIND_CUDA, RR_KIND_LOGIC, 99}) {
			int32_t args[] = {status, kind};
			raftrkt::run_job<&fails>(args, sizeof args, &outcome, slot);
			EXPECT_EQ(outcome.status, status);
			EXPECT_EQ(outcome.kind, kind);
			EXPECT_STREQ(outcome.message, "why");
		}
	raftrkt::run_job<&long_message>(nullptr, 0, &outcome, slot);
	EXPECT_EQ(outcome.message, std::string(4095, 'a'));
	slot.record(RR_KIND_CUDA, "of an earlier call");
	raftrkt::run_job<&silent>(nullptr, 0, &outcome, slot);
	EXPECT_EQ(outcome.status, RR_ERROR);
	EXPECT_EQ(outcome.kind, RR_KIND_GENERIC);
	EXPECT_STREQ(outcome.message, "");
}

TEST(Job, AnEntryPointThatThrowsIsCaught) {
	rr_job_outcome outcome;
	int32_t args[2]{};
	raftrkt::run_job<&throws>(args, sizeof args, &outcome, slot);
	EXPECT_EQ(outcome.status, RR_ERROR);
	EXPECT_EQ(outcome.kind, RR_KIND_OUT_OF_MEMORY);
	EXPECT_STREQ(outcome.message, "std::bad_alloc");
}

int promises(double *out) noexcept {
	*out = 1;
	return RR_OK;
}
static_assert(job_args_size<&promises> == 8);

} // namespace
