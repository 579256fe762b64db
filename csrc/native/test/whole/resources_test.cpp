// Resources, their worker and deposits, in the host flavour.
#include "failing_new.hpp"

#include "raftrkt/c_api.h"
#include "raftrkt/host_flavour.hpp"
#include "raftrkt_test.h"
#include "worker.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <pthread.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

#define OK(call) ASSERT_EQ((call), RR_OK) << rr_last_error()

std::string refusal(int status, int kind = RR_KIND_LOGIC) {
	EXPECT_EQ(status, RR_ERROR);
	EXPECT_EQ(rr_last_error_kind(), kind) << rr_last_error();
	return rr_last_error();
}

struct event {
	event() : fd(eventfd(0, EFD_SEMAPHORE)) {}
	~event() { close(fd); }
	event(const event &) = delete;
	event &operator=(const event &) = delete;
	void wait() const {
		uint64_t one = 0;
		EXPECT_EQ(read(fd, &one, sizeof one), 8);
		EXPECT_EQ(one, 1u);
	}
	void give() const {
		const uint64_t one = 1;
		EXPECT_EQ(write(fd, &one, sizeof one), 8);
	}
	int fd;
};

struct Resources : testing::Test {
	rr_resources *r = nullptr;
	void SetUp() override { OK(rr_resources_create(0, nullptr, nullptr, nullptr, &r)); }
	void TearDown() override {
		ASSERT_EQ(rr_resources_release(r), RR_OK) << rr_last_error();
	}
	void *handle() {
		void *out = nullptr;
		EXPECT_EQ(rr_resources_handle(r, &out), RR_OK);
		return out;
	}
};

TEST_F(Resources, TheHostHasOneDeviceAndNoLibraries) {
	int something;
	rr_resources *out = r;
	EXPECT_EQ(refusal(rr_resources_create(1, nullptr, nullptr, nullptr, &out), RR_KIND_CUDA),
	          "cudaSetDevice: invalid device ordinal");
	EXPECT_EQ(out, nullptr);
	for (int which = 0; which < 3; which++) {
		void *given[3]{};
		given[which] = &something;
		EXPECT_EQ(refusal(rr_resources_create(0, given[0], given[1], given[2], &out)),
		          "resources: the host flavour takes no stream and no library's handle");
		EXPECT_EQ(out, nullptr);
	}
	EXPECT_EQ(refusal(rr_resources_create(0, nullptr, nullptr, nullptr, nullptr)), "out is NULL");
}

TEST_F(Resources, EachHasAHandleOfItsOwn) {
	rr_resources *other;
	OK(rr_resources_create(0, nullptr, nullptr, nullptr, &other));
	void *theirs;
	OK(rr_resources_handle(other, &theirs));
	EXPECT_NE(handle(), theirs);
	EXPECT_EQ(handle(), handle());
	EXPECT_EQ(static_cast<raftrkt::host_handle *>(theirs)->device, 0);
	OK(rr_resources_release(other));
}

TEST_F(Resources, ARefusedHandleIsNull) {
	void *out = &out;
	EXPECT_EQ(refusal(rr_resources_handle(nullptr, &out)), "resources is NULL");
	EXPECT_EQ(out, nullptr);
	EXPECT_EQ(refusal(rr_resources_handle(r, nullptr)), "out is NULL");
}

TEST_F(Resources, SynchronizingAsksTheStream) {
	static int asked, answer;
	auto *h = static_cast<raftrkt::host_handle *>(handle());
	h->stream.synchronize = [](void *) {
		asked++;
		return answer;
	};
	asked = answer = 0;
	OK(rr_resources_synchronize(r));
	EXPECT_EQ(asked, 1);
	answer = 700;
	EXPECT_EQ(refusal(rr_resources_synchronize(r), RR_KIND_CUDA), "cudaStreamSynchronize: error 700");
	answer = raftrkt::flavour::out_of_memory;
	EXPECT_EQ(refusal(rr_resources_synchronize(r), RR_KIND_OUT_OF_MEMORY), "cudaStreamSynchronize: out of memory");
	EXPECT_EQ(refusal(rr_resources_synchronize(nullptr)), "resources is NULL");
}

TEST_F(Resources, ReleasingNothingIsFine) { OK(rr_resources_release(nullptr)); }

TEST_F(Resources, TheTagLastsAndIsOfTheHost) {
	const auto *tag = rr_abi();
	EXPECT_EQ(tag, rr_abi());
	EXPECT_EQ(tag->cuda_runtime, 0);
	EXPECT_EQ(tag->raft_major, 26);
	EXPECT_EQ(tag->raft_minor, 10);
	EXPECT_EQ(tag->handle_size, 32);
	EXPECT_EQ(rt_check_abi(tag), RR_OK) << rt_last_error();
}

// A job that notes its number, as its block has it.
struct note {
	std::vector<int> *notes;
	int number;
	std::thread::id *where = nullptr;
	std::atomic<bool> *busy = nullptr;
	std::atomic<int> *overlaps = nullptr;

	static void run(void *args, size_t args_len, rr_job_outcome *outcome) {
		auto &self = *static_cast<note *>(args);
		if (self.busy && self.busy->exchange(true)) ++*self.overlaps;
		self.notes->push_back(self.number);
		if (self.where) *self.where = std::this_thread::get_id();
		outcome->status = static_cast<int32_t>(args_len);
		if (self.busy) *self.busy = false;
	}
};

TEST_F(Resources, JobsRunOneAtATimeInOrder) {
	constexpr int count = 1000;
	event done;
	std::vector<int> notes;
	std::atomic<bool> busy{false};
	std::atomic<int> overlaps{0};
	std::thread::id where;
	std::vector<note> jobs;
	for (int i = 0; i < count; i++) jobs.push_back({&notes, i, &where, &busy, &overlaps});
	auto outcomes = std::make_unique<rr_job_outcome[]>(count);
	for (std::size_t i = 0; i < count; i++) OK(rr_resources_job(r, note::run, &jobs[i], 40 + i, &outcomes[i], done.fd));
	for (int i = 0; i < count; i++) done.wait();
	ASSERT_EQ(notes.size(), static_cast<std::size_t>(count));
	for (int i = 0; i < count; i++) {
		EXPECT_EQ(notes[static_cast<std::size_t>(i)], i);
		EXPECT_EQ(outcomes[static_cast<std::size_t>(i)].status, 40 + i);
	}
	EXPECT_EQ(overlaps, 0);
	EXPECT_NE(where, std::this_thread::get_id());
}

TEST_F(Resources, APipeTellsOfTheEndToo) {
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	std::vector<int> notes;
	note job{&notes, 1};
	rr_job_outcome outcome;
	OK(rr_resources_job(r, note::run, &job, 0, &outcome, ends[1]));
	uint64_t one = 0;
	EXPECT_EQ(read(ends[0], &one, sizeof one), 8);
	EXPECT_EQ(one, 1u);
	close(ends[0]);
	close(ends[1]);
}

TEST_F(Resources, ReleaseWaitsForEveryJob) {
	std::vector<int> notes;
	std::vector<note> jobs;
	for (int i = 0; i < 100; i++) jobs.push_back({&notes, i});
	rr_job_outcome outcome;
	for (auto &job : jobs) OK(rr_resources_job(r, note::run, &job, 0, &outcome, -1));
	OK(rr_resources_release(r));
	r = nullptr;
	EXPECT_EQ(notes.size(), 100u);
}

// Two jobs that each wait for the other to begin.
TEST_F(Resources, JobsOfTwoResourcesRunAtTheSameTime) {
	rr_resources *other;
	OK(rr_resources_create(0, nullptr, nullptr, nullptr, &other));
	event a, b, done;
	struct pair {
		const event *give, *wait;
		static void run(void *args, size_t, rr_job_outcome *) {
			auto &self = *static_cast<pair *>(args);
			self.give->give();
			self.wait->wait();
		}
	} first{&a, &b}, second{&b, &a};
	rr_job_outcome outcome;
	OK(rr_resources_job(r, pair::run, &first, sizeof first, &outcome, done.fd));
	OK(rr_resources_job(other, pair::run, &second, sizeof second, &outcome, done.fd));
	done.wait();
	done.wait();
	OK(rr_resources_release(other));
}

TEST_F(Resources, ManyThreadsMakeJobsAtOnce) {
	constexpr int threads = 4, each = 500;
	event done;
	std::atomic<int> ran{0};
	std::vector<std::thread> makers;
	for (int t = 0; t < threads; t++)
		makers.emplace_back([&] {
			rr_job_outcome outcome;
			for (int i = 0; i < each; i++)
				EXPECT_EQ(rr_resources_job(r, [](void *args, size_t, rr_job_outcome *) { ++*static_cast<std::atomic<int> *>(args); },
				                           &ran, 0, &outcome, done.fd), RR_OK);
		});
	for (auto &maker : makers) maker.join();
	for (int i = 0; i < threads * each; i++) done.wait();
	EXPECT_EQ(ran, threads * each);
}

TEST_F(Resources, TheWorkerTakesNoSignalsOfTheProgram) {
	event done;
	sigset_t mask;
	rr_job_outcome outcome;
	OK(rr_resources_job(r, [](void *args, size_t, rr_job_outcome *) {
		pthread_sigmask(SIG_BLOCK, nullptr, static_cast<sigset_t *>(args));
	}, &mask, sizeof mask, &outcome, done.fd));
	done.wait();
	for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPROF, SIGURG, SIGCHLD, SIGUSR1}) EXPECT_TRUE(sigismember(&mask, signal));
	for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) EXPECT_FALSE(sigismember(&mask, signal));
	sigset_t mine;
	pthread_sigmask(SIG_BLOCK, nullptr, &mine);
	EXPECT_FALSE(sigismember(&mine, SIGINT));
}

TEST_F(Resources, AJobMayNotReleaseWhatItRunsOn) {
	struct asked {
		rr_resources *r;
		int status;
		std::string message;
	} asked{r, RR_OK, ""};
	event done;
	rr_job_outcome outcome;
	OK(rr_resources_job(r, [](void *args, size_t, rr_job_outcome *) {
		auto &self = *static_cast<struct asked *>(args);
		self.status = rr_resources_release(self.r);
		self.message = rr_last_error();
	}, &asked, sizeof asked, &outcome, done.fd));
	done.wait();
	EXPECT_EQ(asked.status, RR_ERROR);
	EXPECT_EQ(asked.message, "resources: released by a job that runs on them");
}

TEST_F(Resources, AJobThatCannotBeIsRefused) {
	rr_job_outcome outcome;
	EXPECT_EQ(refusal(rr_resources_job(nullptr, note::run, nullptr, 0, &outcome, -1)), "resources is NULL");
	EXPECT_EQ(refusal(rr_resources_job(r, nullptr, nullptr, 0, &outcome, -1)), "entry is NULL");
	EXPECT_EQ(refusal(rr_resources_job(r, note::run, nullptr, 0, nullptr, -1)), "outcome is NULL");
}

// refused_thread exchanges what starts threads.
struct refused_thread {
	explicit refused_thread(std::thread (*instead)(raftrkt::library::thread_body, void *))
		: before(raftrkt::library::start_thread) {
		raftrkt::library::start_thread = instead;
	}
	~refused_thread() { raftrkt::library::start_thread = before; }
	refused_thread(const refused_thread &) = delete;
	refused_thread &operator=(const refused_thread &) = delete;
	decltype(raftrkt::library::start_thread) before;
};

TEST_F(Resources, AThreadThatCannotStartLeavesNothingQueued) {
	std::vector<int> notes;
	note lost{&notes, 1}, kept{&notes, 2};
	rr_job_outcome outcome;
	{
		refused_thread no([](raftrkt::library::thread_body, void *) -> std::thread {
			throw std::system_error(EAGAIN, std::system_category());
		});
		EXPECT_EQ(refusal(rr_resources_job(r, note::run, &lost, 0, &outcome, -1), RR_KIND_GENERIC),
		          "the worker thread cannot be started: Resource temporarily unavailable");
	}
	{
		refused_thread no([](raftrkt::library::thread_body, void *) -> std::thread { throw std::bad_alloc(); });
		EXPECT_EQ(refusal(rr_resources_job(r, note::run, &lost, 0, &outcome, -1), RR_KIND_OUT_OF_MEMORY), "std::bad_alloc");
	}
	event done;
	OK(rr_resources_job(r, note::run, &kept, 0, &outcome, done.fd));
	done.wait();
	EXPECT_EQ(notes, std::vector<int>{2});
}

// Of each allocation on the way, one fails: nothing is queued and nothing is lost.
TEST_F(Resources, WithoutMemoryNothingIsQueued) {
	std::vector<int> notes;
	notes.reserve(10);
	event done;
	rr_job_outcome outcome;
	note job{&notes, 1};
	int refused = 0;
	for (int after = 0;; after++) {
		int status;
		{
			no_memory none(after);
			status = rr_resources_job(r, note::run, &job, 0, &outcome, done.fd);
		}
		if (status == RR_OK) break;
		EXPECT_EQ(rr_last_error_kind(), RR_KIND_OUT_OF_MEMORY);
		refused++;
		ASSERT_LT(after, 100);
	}
	done.wait();
	EXPECT_EQ(notes.size(), 1u);
	EXPECT_GE(refused, 1);
	// The queue takes memory in blocks: one of many jobs needs another.
	int queued = 0, without = 0;
	for (int i = 0; i < 200; i++) {
		note::run(&job, 0, &outcome);
		notes.clear();
		no_memory none;
		if (rr_resources_job(r, [](void *, size_t, rr_job_outcome *) {}, nullptr, 0, &outcome, done.fd) == RR_OK)
			queued++;
		else
			without++;
	}
	for (int i = 0; i < queued; i++) done.wait();
	EXPECT_EQ(queued + without, 200);

	rr_resources *other = r;
	int status = RR_ERROR;
	for (int after = 0; status != RR_OK; after++) {
		no_memory none(after);
		status = rr_resources_create(0, nullptr, nullptr, nullptr, &other);
		EXPECT_EQ(other == nullptr, status != RR_OK);
		ASSERT_LT(after, 100);
	}
	OK(rr_resources_release(other));
}

struct Deposits : Resources {
	rr_deposit record{};
	int64_t owners = 0, releases = 0;
	void SetUp() override {
		Resources::SetUp();
		owners = rt_owners();
		releases = rt_releases();
		open();
	}
	void TearDown() override {
		EXPECT_EQ(rt_owners(), owners);
		Resources::TearDown();
	}
	void open() {
		record = {};
		record.handle = handle();
	}
	void fill() { ASSERT_EQ(rt_deposit(handle(), 2, 10, &record), RR_OK) << rt_last_error(); }
};

TEST_F(Deposits, AFilledRecordIsReleasedOnce) {
	fill();
	EXPECT_EQ(record.state, RR_DEPOSIT_FILLED);
	EXPECT_EQ(record.count, 2);
	EXPECT_EQ(static_cast<double *>(record.regions[1].data)[3], 4.0);
	EXPECT_EQ(record.regions[1].memory, RR_MEMORY_HOST);
	EXPECT_EQ(record.regions[1].device, 0);
	OK(rr_deposit_release(r, &record));
	EXPECT_EQ(record.state, RR_DEPOSIT_CLOSED);
	EXPECT_EQ(rt_releases(), releases + 1);
	OK(rr_deposit_release(r, &record));
	EXPECT_EQ(rt_releases(), releases + 1);
	EXPECT_EQ(rt_deposit(handle(), 1, 10, &record), RR_ERROR);
	EXPECT_STREQ(rt_last_error(), "out: closed");
}

TEST_F(Deposits, ARecordThatIsNotFilledIsClosed) {
	for (int32_t state : {RR_DEPOSIT_OPEN, RR_DEPOSIT_FILLING}) {
		open();
		record.state = state;
		OK(rr_deposit_release(r, &record));
		EXPECT_EQ(record.state, RR_DEPOSIT_CLOSED);
	}
	EXPECT_EQ(rt_releases(), releases);
}

TEST_F(Deposits, OfManyReleasesOneFrees) {
	for (int round = 0; round < 200; round++) {
		open();
		fill();
		std::vector<std::thread> threads;
		for (int t = 0; t < 3; t++)
			threads.emplace_back([&] { EXPECT_EQ(rr_deposit_release(r, &record), RR_OK); });
		for (auto &thread : threads) thread.join();
		ASSERT_EQ(rt_releases(), releases + round + 1);
	}
}

TEST_F(Deposits, ARecordOfOtherResourcesIsRefused) {
	rr_resources *other;
	OK(rr_resources_create(0, nullptr, nullptr, nullptr, &other));
	fill();
	EXPECT_EQ(refusal(rr_deposit_release(other, &record)), "deposit: on resources other than the call's");
	EXPECT_EQ(record.state, RR_DEPOSIT_FILLED);
	OK(rr_resources_release(other));
	EXPECT_EQ(refusal(rr_deposit_release(nullptr, &record)), "resources is NULL");
	EXPECT_EQ(refusal(rr_deposit_release(r, nullptr)), "deposit is NULL");
	OK(rr_deposit_release(r, &record));
}

TEST_F(Deposits, WhatTheHostCannotReachIsRefused) {
	auto *h = static_cast<raftrkt::host_handle *>(handle());
	record.device = 1;
	h->device = 0;
	EXPECT_EQ(rt_deposit(h, 1, 10, &record), RR_ERROR);
	EXPECT_STREQ(rt_last_error(), "out: region 0: not in memory of device 1");
	EXPECT_EQ(record.state, RR_DEPOSIT_OPEN);
}

// Jobs of the test library, with blocks as Go lays them out.
TEST_F(Deposits, ADepositAsAJob) {
	struct {
		void *handle;
		int32_t regions;
		alignas(8) int64_t n;
		rr_deposit *out;
	} args{handle(), 8, 4, &record};
	static_assert(sizeof args == 32);
	event done;
	auto outcome = std::make_unique<rr_job_outcome>();
	OK(rr_resources_job(r, rt_deposit_job, &args, sizeof args, outcome.get(), done.fd));
	done.wait();
	EXPECT_EQ(outcome->status, RR_OK) << outcome->message;
	EXPECT_EQ(record.count, 8);
	OK(rr_resources_job(r, rt_deposit_job, &args, sizeof args, outcome.get(), done.fd));
	done.wait();
	EXPECT_EQ(outcome->status, RR_ERROR);
	EXPECT_EQ(outcome->kind, RR_KIND_LOGIC);
	EXPECT_STREQ(outcome->message, "out: already filled");
	OK(rr_deposit_release(r, &record));
}

TEST_F(Resources, EveryExceptionOfAnEntryPoint) {
	const struct {
		int32_t which, kind;
		std::string message;
	} table[] = {
		{RT_BAD_ALLOC, RR_KIND_OUT_OF_MEMORY, "std::bad_alloc"},
		{RT_STD_LOGIC, RR_KIND_LOGIC, "a logic_error of std"},
		{RT_LOGIC, RR_KIND_LOGIC, "a logic_error of raftrkt"},
		{RT_RUNTIME, RR_KIND_GENERIC, "a runtime_error"},
		{RT_CUDA, RR_KIND_CUDA, "a cuda_error"},
		{RT_CUDA_OUT_OF_MEMORY, RR_KIND_OUT_OF_MEMORY, "a cuda_error of memory"},
		{RT_UNKNOWN, RR_KIND_GENERIC, "unknown exception"},
		{RT_NESTED, RR_KIND_GENERIC, "outer"},
		{RT_BAD_UTF8, RR_KIND_GENERIC, "bad \xff byte"},
		{RT_EMPTY, RR_KIND_GENERIC, ""},
		{99, RR_KIND_LOGIC, "nothing is thrown for 99"},
	};
	event done;
	auto outcome = std::make_unique<rr_job_outcome>();
	for (const auto &row : table) {
		EXPECT_EQ(rt_throw(row.which), RR_ERROR);
		EXPECT_EQ(rt_last_error(), row.message);
		EXPECT_EQ(rt_last_error_kind(), row.kind) << row.message;
		int32_t args[2] = {row.which, 0};
		OK(rr_resources_job(r, rt_throw_job, args, sizeof args, outcome.get(), done.fd));
		done.wait();
		EXPECT_EQ(outcome->status, RR_ERROR);
		EXPECT_EQ(outcome->message, row.message);
		EXPECT_EQ(outcome->kind, row.kind) << row.message;
	}
	EXPECT_EQ(rt_throw(RT_LONG), RR_ERROR);
	EXPECT_EQ(std::strlen(rt_last_error()), 4095u); // 1365 characters of 3 bytes
	EXPECT_EQ(rt_throw(RT_NOTHING), RR_OK);
}

// A handle's stream that fails: the deposit that was filled before stays filled, and
// the call says what happened.
TEST_F(Deposits, AStreamThatFailsIsReportedByTheCall) {
	static_cast<raftrkt::host_handle *>(handle())->stream.synchronize = [](void *) { return 700; };
	EXPECT_EQ(rt_deposit(handle(), 1, 10, &record), RR_ERROR);
	EXPECT_STREQ(rt_last_error(), "cudaStreamSynchronize: error 700");
	EXPECT_EQ(rt_last_error_kind(), RR_KIND_CUDA);
	static_cast<raftrkt::host_handle *>(handle())->stream.synchronize = nullptr;
	OK(rr_deposit_release(r, &record));
}

} // namespace
