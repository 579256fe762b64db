#include "fixture.h"

#include <thread>

TEST("a stalled stream holds its own work back, and no other's") {
	use(0);
	auto held = stream(), other = stream();
	auto p = allocate(8);
	auto stall = weir_sim_stall(held);
	put<std::int64_t>(p, {1}, held);
	EQUAL(cuStreamQuery(held), not_ready);
	put<std::int64_t>(p, {2}, other);
	OK(cuStreamSynchronize(other));
	EQUAL(get<std::int64_t>(p, 1, other)[0], 2);
	weir_sim_release(stall);
	weir_sim_release(stall);
	OK(cuStreamSynchronize(held));
	EQUAL(get<std::int64_t>(p, 1, other)[0], 1);
}

TEST("a wait captures the record that the event has at the call") {
	use(0);
	auto a = stream(), b = stream(), c = stream();
	auto first = weir_sim_stall(a);
	auto e = record(a);
	OK(cuStreamWaitEvent(b, e, 0));
	auto second = weir_sim_stall(c);
	OK(cuEventRecord(e, c)); // moves the event; b waits for its old place
	weir_sim_release(first);
	OK(cuStreamSynchronize(b));
	EQUAL(cuEventQuery(e), not_ready);
	weir_sim_release(second);
	OK(cuEventSynchronize(e));
}

TEST("a wait survives the event's destruction") {
	use(0);
	auto a = stream(), b = stream();
	auto stall = weir_sim_stall(a);
	auto e = record(a);
	OK(cuStreamWaitEvent(b, e, 0));
	OK(cuEventDestroy_v2(e));
	EQUAL(cuStreamQuery(b), not_ready);
	weir_sim_release(stall);
	OK(cuStreamSynchronize(b));
}

TEST("a wait for an event that was never recorded is over") {
	use(0);
	auto s = stream();
	OK(cuStreamWaitEvent(s, event(), 0));
	OK(cuStreamSynchronize(s));
	OK(cuEventQuery(event()));
}

TEST("streams of two devices order each other by events") {
	use(1);
	auto p = allocate(8);
	auto far = stream();
	use(0);
	auto near = stream();
	auto q = allocate(8);
	auto stall = weir_sim_stall(near);
	put<std::int64_t>(q, {7}, near);
	OK(cuStreamWaitEvent(far, record(near), 0));
	OK(cuMemcpyAsync(p, q, 8, far));
	EQUAL(cuStreamQuery(far), not_ready);
	weir_sim_release(stall);
	EQUAL(get<std::int64_t>(p, 1, far)[0], 7);
}

TEST("a destroyed stream finishes its work and its thread ends") {
	use(0);
	auto s = stream(), other = stream();
	auto p = allocate(8);
	auto stall = weir_sim_stall(s);
	put<std::int64_t>(p, {5}, s);
	auto e = record(s);
	OK(cuStreamDestroy_v2(s));
	EQUAL(cuEventQuery(e), not_ready);
	OK(cuStreamWaitEvent(other, e, 0));
	weir_sim_release(stall);
	EQUAL(get<std::int64_t>(p, 1, other)[0], 5);
	EQUAL(cuStreamQuery(s), invalid_handle);
	CHECK(mentions(misuse_text(), "is no stream"));
}

TEST("a synchronisation waits for what was submitted before it") {
	use(0);
	auto s = stream();
	auto stall = weir_sim_stall(s);
	ContextHandle context{};
	OK(cuCtxGetCurrent(&context));
	std::thread waiter([&] {
		OK(cuCtxSetCurrent(context));
		OK(cuStreamSynchronize(s));
	});
	weir_sim_release(stall);
	waiter.join();
	OK(cuStreamQuery(s));
}

TEST("calls need a current context, and a thread begins with none") {
	use(0);
	std::thread([] {
		StreamHandle s{};
		EQUAL(cuStreamCreateWithPriority(&s, stream_non_blocking, 0), invalid_context);
		DevicePtr p{};
		EQUAL(cuMemAlloc_v2(&p, 8), invalid_context);
	}).join();
}

TEST("contexts nest") {
	auto a = use(0);
	ContextHandle b{}, popped{}, current{};
	OK(cuDevicePrimaryCtxRetain(&b, 1));
	OK(cuCtxPushCurrent_v2(b));
	OK(cuCtxPopCurrent_v2(&popped));
	CHECK(popped == b);
	OK(cuCtxGetCurrent(&current));
	CHECK(current == a);
}

TEST("a released primary context takes what was its own") {
	use(0);
	auto s = stream();
	auto p = allocate(64);
	put<std::int64_t>(p, {1}, s);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	for (auto kind : {"context", "stream", "allocation", "byte"})
		EQUAL(weir_sim_live(kind), 0);
	EQUAL(cuDevicePrimaryCtxRelease_v2(0), invalid_context);
}

TEST("a primary context that is retained while it is released stays") {
	for (bool released_again : {false, true}) {
		use(0);
		auto s = stream();
		auto stall = weir_sim_stall(s);
		std::vector<std::thread> releases;
		auto release = [&] {
			auto before = weir_sim_count("cuDevicePrimaryCtxRelease_v2");
			releases.emplace_back([] { OK(cuDevicePrimaryCtxRelease_v2(0)); });
			while (weir_sim_count("cuDevicePrimaryCtxRelease_v2") == before)
				std::this_thread::yield();
		};
		release(); // waits for the stream
		ContextHandle again{};
		OK(cuDevicePrimaryCtxRetain(&again, 0));
		if (released_again)
			release();
		weir_sim_release(stall);
		for (auto &thread : releases)
			thread.join();
		EQUAL(weir_sim_live("context"), released_again ? 0 : 1);
		if (!released_again) {
			OK(cuStreamSynchronize(s));
			OK(cuDevicePrimaryCtxRelease_v2(0));
		}
		EQUAL(weir_sim_live("stream"), 0);
	}
}

TEST("timing events measure, others do not") {
	use(0);
	auto s = stream();
	auto start = event(event_default), end = event(event_default);
	float milliseconds = -1;
	EQUAL(cuEventElapsedTime(&milliseconds, start, end), invalid_handle);
	OK(cuEventRecord(start, s));
	OK(cuEventRecord(end, s));
	OK(cuStreamSynchronize(s));
	OK(cuEventElapsedTime(&milliseconds, start, end));
	CHECK(milliseconds >= 0);
	EQUAL(cuEventElapsedTime(&milliseconds, start, record(s)), invalid_handle);
	auto stall = weir_sim_stall(s);
	OK(cuEventRecord(end, s));
	EQUAL(cuEventElapsedTime(&milliseconds, start, end), not_ready);
	weir_sim_release(stall);
	OK(cuEventSynchronize(end));
	OK(cuEventElapsedTime(&milliseconds, start, end));
	use(1);
	auto far = event(event_default);
	OK(cuEventRecord(far, stream()));
	OK(cuEventSynchronize(far));
	EQUAL(cuEventElapsedTime(&milliseconds, start, far), invalid_handle);
}

TEST("a slow stream waits before each operation, and death ends that") {
	use(0);
	auto s = stream();
	weir_sim_slow(s, 3'600'000'000);
	auto e = record(s);
	EQUAL(cuEventQuery(e), not_ready);
	weir_sim_kill(0, launch_failed);
	EQUAL(cuEventSynchronize(e), launch_failed);
}
