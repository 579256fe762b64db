#include "expect.hpp"

#include "raftrkt/deposit.hpp"

#include <barrier>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace {

using raftrkt::layout;
using raftrkt::region;

std::atomic<int> alive{0};

struct owner {
	owner() { alive++; }
	~owner() { alive--; }
	alignas(64) double numbers[64]{};
	std::vector<float> rows = std::vector<float>(12);
};

struct Deposit : testing::Test {
	raftrkt::fake_stream stream;
	raftrkt::fake_handle handle{&stream, 2, {}};
	rr_deposit record{};
	std::unique_ptr<owner> mine = std::make_unique<owner>();

	Deposit() {
		record.handle = &handle;
		record.device = 2;
		raftrkt::fake::memory = {RR_MEMORY_DEVICE, 2};
		raftrkt::fake::lookup = 0;
	}
	~Deposit() override {
		mine.reset();
		EXPECT_EQ(alive, 0);
	}

	// refusal holds that the record and the owner are as they were.
	std::string refusal(std::initializer_list<rr_view> regions, int32_t kind = RR_KIND_LOGIC) {
		const auto before = record;
		const auto *whose = mine.get();
		const auto text = message_of(
			[&] { raftrkt::deposit(&record, "out", handle, std::move(mine), regions); }, kind);
		EXPECT_EQ(std::memcmp(&before, &record, sizeof record), 0) << text;
		EXPECT_EQ(mine.get(), whose) << text;
		return text;
	}
	rr_view vector() { return region(mine->numbers, 4); }
};

TEST_F(Deposit, RegionsHaveCanonicalStrides) {
	double d[6];
	const auto v = region(d, 6);
	EXPECT_EQ(v.data, d);
	EXPECT_EQ(v.dtype, RR_DTYPE_FLOAT64);
	EXPECT_EQ(v.rank, 1);
	EXPECT_EQ(v.shape[0], 6);
	EXPECT_EQ(v.strides[0], 1);
	EXPECT_EQ(v.shape[1], 0);
	const auto r = region(d, 2, 3, layout::row_major), c = region(d, 2, 3, layout::col_major);
	EXPECT_EQ(r.rank, 2);
	EXPECT_EQ(r.shape[0], 2);
	EXPECT_EQ(r.shape[1], 3);
	EXPECT_EQ(r.strides[0], 3);
	EXPECT_EQ(r.strides[1], 1);
	EXPECT_EQ(c.strides[0], 1);
	EXPECT_EQ(c.strides[1], 2);
	std::vector<int32_t> i(3);
	EXPECT_EQ(region(i).dtype, RR_DTYPE_INT32);
	EXPECT_EQ(region(i).shape[0], 3);
	std::vector<float> f(2);
	EXPECT_EQ(region(f).dtype, RR_DTYPE_FLOAT32);
	std::vector<int64_t> l(2);
	EXPECT_EQ(region(l).dtype, RR_DTYPE_INT64);
}

template <class T>
concept has_region = requires(T *data) { region(data, 1); };
static_assert(has_region<float> && has_region<double> && has_region<int32_t> && has_region<int64_t>);
static_assert(!has_region<const float> && !has_region<char> && !has_region<uint32_t> && !has_region<uint64_t>);

TEST_F(Deposit, AFilledRecordOwnsTheOwner) {
	auto *whose = mine.get();
	raftrkt::deposit(&record, "out", handle, std::move(mine),
	                 {region(whose->numbers, 4), region(whose->rows.data(), 3, 4, layout::col_major)});
	EXPECT_EQ(mine, nullptr);
	EXPECT_EQ(record.state, RR_DEPOSIT_FILLED);
	EXPECT_EQ(record.owner, whose);
	EXPECT_EQ(record.count, 2);
	EXPECT_EQ(record.reserved, 0);
	EXPECT_EQ(record.regions[0].data, whose->numbers);
	EXPECT_EQ(record.regions[0].memory, RR_MEMORY_DEVICE);
	EXPECT_EQ(record.regions[0].device, 2);
	EXPECT_EQ(record.regions[1].data, whose->rows.data());
	EXPECT_EQ(record.regions[1].strides[1], 3);
	EXPECT_EQ(alive, 1);
	record.release(record.owner);
	EXPECT_EQ(alive, 0);
}

TEST_F(Deposit, ADeleterOfOnesOwnFreesTheOwner) {
	static int freed;
	struct back {
		void operator()(owner *o) const {
			freed++;
			delete o;
		}
	};
	freed = 0;
	std::unique_ptr<owner, back> lent(mine.release());
	raftrkt::deposit(&record, "out", handle, std::move(lent), {});
	EXPECT_EQ(record.count, 0);
	record.release(record.owner);
	EXPECT_EQ(freed, 1);
}

TEST_F(Deposit, EmptyRegionsNeedNoData) {
	raftrkt::fake::memory = {RR_MEMORY_HOST, 0}; // not asked for
	auto *whose = mine.get();
	raftrkt::deposit(&record, "out", handle, std::move(mine),
	                 {region(static_cast<double *>(nullptr), 0), region(static_cast<float *>(nullptr), 0, 5, layout::row_major),
	                  region(whose->numbers, 0)});
	EXPECT_EQ(record.regions[0].memory, RR_MEMORY_DEVICE);
	EXPECT_EQ(record.regions[0].device, 2);
	record.release(record.owner);
}

TEST_F(Deposit, RecordsThatAreNotOpenAreUntouched) {
	EXPECT_EQ(message_of([&] { raftrkt::deposit(nullptr, "out", handle, std::move(mine), {}); }), "out is NULL");
	EXPECT_NE(mine, nullptr);
	record.handle = nullptr; // what comes later is not looked at
	record.state = RR_DEPOSIT_FILLING;
	EXPECT_EQ(refusal({}), "out: being filled");
	record.state = RR_DEPOSIT_FILLED;
	EXPECT_EQ(refusal({}), "out: already filled");
	record.state = RR_DEPOSIT_CLOSED;
	EXPECT_EQ(refusal({}), "out: closed");
	record.state = 77;
	EXPECT_EQ(refusal({}), "out: no deposit: its state is 77");
}

TEST_F(Deposit, RefusalsComeInTheirOrder) {
	// Each call has this fault and all that come later.
	double elsewhere[8];
	raftrkt::fake::memory = {RR_MEMORY_DEVICE, 1};
	const auto overlap = vector();
	auto misaligned = vector();
	misaligned.data = reinterpret_cast<char *>(mine->numbers) + 4;
	auto nowhere = vector();
	nowhere.data = nullptr;
	auto layouts = vector();
	layouts.strides[0] = 2;
	auto overflow = vector();
	overflow.shape[0] = INT64_MAX / 4;
	auto negative = vector();
	negative.shape[0] = -1;
	auto type = vector();
	type.dtype = 9;
	auto rank = vector();
	rank.rank = 3;
	auto later = [&](rr_view first) { return refusal({first, overlap, overlap}); };

	raftrkt::fake_handle other = handle;
	record.handle = &other;
	auto none = std::move(mine);
	EXPECT_EQ(refusal({rank}), "out: on resources other than the call's");
	record.handle = &handle;
	EXPECT_EQ(refusal({rank, rank, rank, rank, rank, rank, rank, rank, rank}), "out: no owner");
	mine = std::move(none);
	EXPECT_EQ(refusal({rank, rank, rank, rank, rank, rank, rank, rank, rank}),
	          "out: 9 regions; a deposit holds at most 8");
	EXPECT_EQ(later(rank), "out: region 0: expected rank 1 or 2, got 3");
	EXPECT_EQ(later(type), "out: region 0: expected float32, float64, int32 or int64, got dtype 9");
	EXPECT_EQ(later(negative), "out: region 0: expected no negative extent, got -1");
	EXPECT_EQ(later(overflow), "out: region 0: the bytes of 2305843009213693951 float64 overflow");
	EXPECT_EQ(later(layouts), "out: region 0: expected row-major or col-major, got strides (2) 4");
	EXPECT_EQ(later(nowhere), "out: region 0: no data");
	EXPECT_EQ(later(misaligned), "out: region 0: misaligned: the address is no multiple of 8");
	EXPECT_EQ(later(region(elsewhere, 8)), "out: regions 1 and 2 overlap");
	EXPECT_EQ(refusal({overlap}), "out: region 0: not in memory of device 2");
}

TEST_F(Deposit, OneFaultHidesThoseWithinARegionThatComeLater) {
	auto bad = vector();
	bad.data = reinterpret_cast<char *>(mine->numbers) + 4; // misaligned
	bad.strides[0] = 5;                                     // no layout
	EXPECT_EQ(refusal({bad}), "out: region 0: expected row-major or col-major, got strides (5) 4");
	bad.shape[0] = INT64_MAX / 4;
	EXPECT_EQ(refusal({bad}), "out: region 0: the bytes of 2305843009213693951 float64 overflow");
	bad.shape[0] = -4;
	EXPECT_EQ(refusal({bad}), "out: region 0: expected no negative extent, got -4");
	bad.dtype = -1;
	EXPECT_EQ(refusal({bad}), "out: region 0: expected float32, float64, int32 or int64, got dtype -1");
	bad.rank = 0;
	EXPECT_EQ(refusal({bad}), "out: region 0: expected rank 1 or 2, got 0");
}

TEST_F(Deposit, SizesThatOverflowAreRefused) {
	const int64_t big = int64_t{1} << 32;
	EXPECT_EQ(refusal({vector(), region(mine->numbers, big, big, layout::row_major)}),
	          "out: region 1: the bytes of 4294967296x4294967296 float64 overflow");
	// The end of the region, not its size, overflows.
	auto high = region(reinterpret_cast<double *>(INTPTR_MAX - 7), 2);
	EXPECT_EQ(refusal({high}), "out: region 0: the bytes of 2 float64 overflow");
}

TEST_F(Deposit, RegionsMayTouchButNotOverlap) {
	auto *at = mine->numbers;
	EXPECT_EQ(refusal({region(at, 4), region(at + 3, 4)}), "out: regions 0 and 1 overlap");
	EXPECT_EQ(refusal({region(at + 3, 4), region(at, 4)}), "out: regions 0 and 1 overlap");
	EXPECT_EQ(refusal({region(at, 8), region(at + 20, 1), region(at + 2, 1)}), "out: regions 0 and 2 overlap");
	EXPECT_EQ(refusal({region(at, 4), region(at, 4)}), "out: regions 0 and 1 overlap");
	auto *whose = mine.get();
	raftrkt::deposit(&record, "out", handle, std::move(mine), {region(at + 4, 4), region(at, 4), region(at + 8, 4), region(at + 2, 0)});
	EXPECT_EQ(whose, record.owner);
	record.release(record.owner);
}

TEST_F(Deposit, MemoryOfAnotherKindOrDeviceIsRefused) {
	for (auto place : {raftrkt::flavour::place{RR_MEMORY_DEVICE, 1}, {RR_MEMORY_HOST, 2}, {RR_MEMORY_PINNED, 2}, {-1, -1}}) {
		raftrkt::fake::memory = place;
		EXPECT_EQ(refusal({vector()}), "out: region 0: not in memory of device 2");
	}
	raftrkt::fake::lookup = 700;
	EXPECT_EQ(refusal({vector()}, RR_KIND_CUDA), "cudaPointerGetAttributes: fake error 700");
	raftrkt::fake::lookup = 0;
	raftrkt::fake::memory = {RR_MEMORY_MANAGED, 2};
	raftrkt::deposit(&record, "out", handle, std::move(mine), {region(mine->numbers, 4)});
	EXPECT_EQ(record.regions[0].memory, RR_MEMORY_MANAGED);
	record.release(record.owner);
}

TEST_F(Deposit, ARefusedRecordCanBeFilled) {
	EXPECT_EQ(refusal({vector(), vector()}), "out: regions 0 and 1 overlap");
	EXPECT_EQ(record.state, RR_DEPOSIT_OPEN);
	raftrkt::deposit(&record, "out", handle, std::move(mine), {region(mine->numbers, 4)});
	record.release(record.owner);
}

TEST_F(Deposit, AClaimKeepsASecondFillerOut) {
	{
		raftrkt::detail::deposit_claim claim(&record, "out");
		EXPECT_EQ(record.state, RR_DEPOSIT_FILLING);
		EXPECT_EQ(refusal({vector()}), "out: being filled");
	}
	EXPECT_EQ(record.state, RR_DEPOSIT_OPEN);
}

TEST_F(Deposit, ARecordClosedDuringTheFillStaysClosed) {
	for (auto &byte : {&record.regions[0].dtype, &record.regions[7].rank}) *byte = 55; // what was there stays
	const auto before = record;
	{
		raftrkt::detail::deposit_claim claim(&record, "out");
		record.state = RR_DEPOSIT_CLOSED;
		const auto v = vector();
		EXPECT_EQ(message_of([&] { claim.commit(mine.get(), [](void *) {}, &v, 1); }), "out: closed");
	}
	EXPECT_EQ(record.state, RR_DEPOSIT_CLOSED);
	record.state = RR_DEPOSIT_OPEN;
	EXPECT_EQ(std::memcmp(&before, &record, sizeof record), 0);
	{
		raftrkt::detail::deposit_claim claim(&record, "out"); // a refusal, had it not been closed
		record.state = RR_DEPOSIT_CLOSED;
	}
	EXPECT_EQ(record.state, RR_DEPOSIT_CLOSED);
}

// Many threads fill one record, each again with an owner of its own: one succeeds.
TEST_F(Deposit, OfManyFillersOneSucceeds) {
	constexpr int fillers = 4, rounds = 500;
	std::atomic<int> filled{0}, being{0}, already{0}, wrong{0};
	std::barrier round(fillers, [&]() noexcept {
		if (record.state != RR_DEPOSIT_FILLED) wrong++;
		record.release(record.owner);
		record.owner = nullptr;
		record.state = RR_DEPOSIT_OPEN;
	});
	std::vector<std::thread> threads;
	for (int t = 0; t < fillers; t++)
		threads.emplace_back([&] {
			raftrkt::fake::memory = {RR_MEMORY_DEVICE, 2};
			for (int i = 0; i < rounds; i++) {
				auto own = std::make_unique<owner>();
				try {
					raftrkt::deposit(&record, "out", handle, std::move(own), {region(own->numbers, 4)});
					filled++;
				} catch (const raftrkt::logic_error &error) {
					const std::string why = error.what();
					(why == "out: being filled" ? being : why == "out: already filled" ? already : wrong)++;
					if (!own) wrong++;
				}
				own.reset();
				round.arrive_and_wait();
			}
		});
	for (auto &thread : threads) thread.join();
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(filled, rounds);
	EXPECT_EQ(being + already, rounds * (fillers - 1));
}

// A closer races with a filler: either the record is filled, or the filler learns it.
TEST_F(Deposit, ACloserAndAFillerAgree) {
	constexpr int rounds = 2000;
	std::barrier begin(2), end(2);
	std::atomic<int> wrong{0};
	std::thread closer([&] {
		for (int i = 0; i < rounds; i++) {
			begin.arrive_and_wait();
			if (std::atomic_ref<int32_t>(record.state).exchange(RR_DEPOSIT_CLOSED) == RR_DEPOSIT_FILLED)
				record.release(record.owner);
			end.arrive_and_wait();
		}
	});
	for (int i = 0; i < rounds; i++) {
		record.state = RR_DEPOSIT_OPEN;
		auto own = std::make_unique<owner>();
		begin.arrive_and_wait();
		try {
			raftrkt::deposit(&record, "out", handle, std::move(own), {region(own->numbers, 4)});
			if (own) wrong++;
		} catch (const raftrkt::logic_error &error) {
			if (std::string(error.what()) != "out: closed" || !own) wrong++;
		}
		own.reset();
		end.arrive_and_wait();
		if (record.state != RR_DEPOSIT_CLOSED || alive != 1) wrong++; // mine alone
	}
	closer.join();
	EXPECT_EQ(wrong, 0);
}

} // namespace
