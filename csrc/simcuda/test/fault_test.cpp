// Host functions, misuse, death, and faults on request.
#include "fixture.h"

#include <atomic>
#include <thread>

namespace {

std::atomic<int> called;
std::atomic<int> answer_inside;

void count_call(void *) { called++; }

void call_driver(void *stream) {
	answer_inside = cuStreamQuery(static_cast<StreamHandle>(stream));
	called++;
}

} // namespace

TEST("a host function runs in stream order, on another thread") {
	use(0);
	called = 0;
	auto s = stream();
	auto stall = weir_sim_stall(s);
	OK(cuLaunchHostFunc(s, count_call, nullptr));
	auto e = record(s);
	EQUAL(called.load(), 0);
	weir_sim_release(stall);
	OK(cuEventSynchronize(e));
	EQUAL(called.load(), 1);
}

TEST("a host function may not call the driver") {
	use(0);
	auto s = stream();
	OK(cuLaunchHostFunc(s, call_driver, s));
	OK(cuStreamSynchronize(s));
	EQUAL(answer_inside.load(), static_cast<int>(not_permitted));
	CHECK(mentions(misuse_text(), "cuStreamQuery was called in a host function"));
}

TEST("dropped callbacks never come, and their streams go on") {
	use(0);
	called = 0;
	auto s = stream();
	weir_sim_drop_callbacks(2);
	for (int i = 0; i < 3; i++)
		OK(cuLaunchHostFunc(s, count_call, nullptr));
	OK(cuStreamSynchronize(s));
	EQUAL(called.load(), 1);
}

TEST("death ends every wait with its first cause, and no callback comes") {
	auto context = use(0);
	called = 0;
	auto s = stream();
	auto p = allocate(8);
	weir_sim_stall(s);
	OK(cuLaunchHostFunc(s, count_call, nullptr));
	auto e = record(s);
	std::atomic<int> waiting = 0;
	std::vector<std::thread> waiters;
	auto wait = [&](auto call) {
		waiters.emplace_back([&, call] {
			OK(cuCtxSetCurrent(context));
			waiting++;
			EQUAL(call(), illegal_address);
		});
	};
	wait([&] { return cuStreamSynchronize(s); });
	wait([&] { return cuEventSynchronize(e); });
	wait([&] { return cuCtxSynchronize(); });
	wait([&] { return cuMemFree_v2(p); });
	while (waiting < 4)
		std::this_thread::yield();
	weir_sim_kill(0, illegal_address);
	weir_sim_kill(0, launch_failed);
	for (auto &waiter : waiters)
		waiter.join();
	EQUAL(cuStreamQuery(s), illegal_address);
	EQUAL(cuEventQuery(e), illegal_address);
	DevicePtr q{};
	EQUAL(cuMemAlloc_v2(&q, 8), illegal_address);
	EQUAL(called.load(), 0);
}

TEST("a fault on one device is the end of every device") {
	use(0);
	auto met = stream();
	auto e = record(met);
	use(1);
	auto other = stream(), waiting = stream();
	auto p = allocate(8);
	weir_sim_stall(other);
	OK(cuStreamWaitEvent(waiting, record(other), 0));
	std::thread kernel([] {
		use(0);
		weir_sim_fail("cuStreamQuery", 1, misaligned_address);
		EQUAL(cuStreamQuery(stream()), misaligned_address);
	});
	EQUAL(cuStreamSynchronize(waiting), misaligned_address);
	kernel.join();
	DevicePtr q{};
	EQUAL(cuStreamQuery(other), misaligned_address);
	EQUAL(cuMemFree_v2(p), misaligned_address);
	EQUAL(cuMemAlloc_v2(&q, 8), misaligned_address);
	EQUAL(cuEventQuery(e), misaligned_address);
	ContextHandle context{};
	EQUAL(cuDevicePrimaryCtxRetain(&context, 0), misaligned_address);
	EQUAL(cuDevicePrimaryCtxRetain(&context, 1), misaligned_address);
	weir_sim_revive();
	use(1);
	OK(cuStreamSynchronize(stream()));
}

TEST("a dead device's handles can be destroyed") {
	use(0);
	auto s = stream();
	auto e = record(s);
	weir_sim_kill(0, launch_failed);
	EQUAL(cuStreamDestroy_v2(s), launch_failed);
	EQUAL(cuEventDestroy_v2(e), launch_failed);
	EQUAL(weir_sim_live("stream"), 0);
	EQUAL(weir_sim_live("event"), 0);
	OK(cuDevicePrimaryCtxRelease_v2(0));
}

TEST("revived devices begin anew") {
	use(0);
	auto old = stream();
	allocate(64);
	weir_sim_kill(0, launch_failed);
	weir_sim_revive();
	EQUAL(weir_sim_live("byte"), 0);
	EQUAL(weir_sim_live("thread"), 0);
	use(0);
	EQUAL(cuStreamQuery(old), invalid_handle);
	auto s = stream();
	OK(cuStreamSynchronize(s));
}

TEST("the nth call of a function fails as asked") {
	use(0);
	weir_sim_fail("cuMemAlloc_v2", 2, out_of_memory);
	auto before = weir_sim_count("cuMemAlloc_v2");
	allocate(8);
	DevicePtr p{};
	EQUAL(cuMemAlloc_v2(&p, 8), out_of_memory);
	allocate(8);
	EQUAL(weir_sim_count("cuMemAlloc_v2"), before + 3);
	EQUAL(weir_sim_live("allocation"), 2);
}

TEST("a fatal failure on request ends the context") {
	use(0);
	auto s = stream();
	auto e = event();
	weir_sim_fail("cuEventRecord", 1, launch_failed);
	EQUAL(cuEventRecord(e, s), launch_failed);
	EQUAL(cuStreamQuery(s), launch_failed);
}

TEST("an event is recorded on streams of its own device") {
	use(1);
	auto far = event();
	use(0);
	EQUAL(cuEventRecord(far, stream()), invalid_handle);
	CHECK(mentions(misuse_text(), "an event of device 1 is recorded on a stream of device 0"));
}

TEST("freed memory is refused") {
	use(0);
	auto s = stream();
	auto plain = allocate(64);
	OK(cuMemFree_v2(plain));
	EQUAL(cuMemFree_v2(plain), invalid_value);
	EQUAL(cuMemsetD8Async(plain, 0, 8, s), invalid_value);
	auto p = take(pool(), s, 64);
	OK(cuMemFreeAsync(p, s));
	EQUAL(cuMemFreeAsync(p, s), invalid_value);
	EQUAL(cuMemsetD8Async(p, 0, 8, s), invalid_value);
	EQUAL(weir_sim_misuse(nullptr, 0), 4);
	OK(cuStreamSynchronize(s));
}

TEST("more than an allocation is refused") {
	use(0);
	auto s = stream();
	EQUAL(cuMemsetD8Async(allocate(64), 0, 65, s), invalid_value);
	EQUAL(weir_sim_misuse(nullptr, 0), 1);
}

TEST("a use that its free does not wait for is found, whichever comes first") {
	use(0);
	auto owner = stream(), other = stream();
	auto p = take(pool(), owner, 64);
	OK(cuStreamSynchronize(owner));
	auto stall = weir_sim_stall(other);
	OK(cuMemsetD8Async(p, 0, 64, other));
	OK(cuMemFreeAsync(p, owner)); // no event orders it behind the use
	OK(cuStreamSynchronize(owner));
	CHECK(mentions(misuse_text(), "is freed while 1 earlier operations use it"));
	weir_sim_release(stall);
	EQUAL(cuStreamSynchronize(other), illegal_address);
}

TEST("a use that does not wait for the allocation is found") {
	use(0);
	auto owner = stream(), other = stream();
	auto stall = weir_sim_stall(owner);
	auto p = take(pool(), owner, 64);
	OK(cuMemsetD8Async(p, 0, 64, other));
	EQUAL(cuStreamSynchronize(other), illegal_address);
	CHECK(mentions(misuse_text(), "is used before its allocation"));
	weir_sim_release(stall);
}

TEST("an ordered program is no misuse") {
	use(0);
	auto owner = stream(), other = stream();
	auto p = take(pool(), owner, 64);
	OK(cuStreamWaitEvent(other, record(owner), 0));
	OK(cuMemsetD8Async(p, 0, 64, other));
	OK(cuStreamWaitEvent(owner, record(other), 0));
	OK(cuMemFreeAsync(p, owner));
	OK(cuCtxSynchronize());
	EQUAL(weir_sim_misuse(nullptr, 0), 0);
}

TEST("many threads share streams, events and a pool") {
	auto context = use(0);
	auto shared = pool();
	std::vector<std::thread> threads;
	for (int t = 0; t < 4; t++) {
		threads.emplace_back([&, t] {
			OK(cuCtxSetCurrent(context));
			auto a = stream(), b = stream();
			for (int i = 0; i < 50; i++) {
				auto p = take(shared, a, 4096);
				auto e = event();
				OK(cuMemsetD8Async(p, static_cast<unsigned char>(t), 4096, a));
				OK(cuEventRecord(e, a));
				OK(cuStreamWaitEvent(b, e, 0));
				OK(cuEventDestroy_v2(e));
				auto bytes = get<unsigned char>(p, 4096, b);
				CHECK(bytes[0] == t && bytes[4095] == t);
				OK(cuMemFreeAsync(p, b));
			}
			OK(cuStreamDestroy_v2(a));
			OK(cuStreamDestroy_v2(b));
		});
	}
	for (auto &thread : threads)
		thread.join();
	OK(cuCtxSynchronize());
	EQUAL(attribute(shared, used_current), 0u);
	EQUAL(weir_sim_misuse(nullptr, 0), 0);
}
