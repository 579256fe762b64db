#include "expect.hpp"
#include "failing_new.hpp"

#include "raftrkt/error.hpp"

#include <gtest/gtest.h>
#include <system_error>
#include <vector>

namespace {

using raftrkt::error_slot;
using raftrkt::translate_exceptions;

TEST(Error, ASlotIsFourKibibytesAndAKind) {
	const error_slot slot;
	EXPECT_EQ(sizeof slot.message, 4096u);
	EXPECT_EQ(sizeof slot, 4100u);
	EXPECT_STREQ(slot.message, "");
	EXPECT_EQ(slot.kind, RR_KIND_GENERIC);
}

// The longest run of whole characters that leaves room for the NUL.
std::string whole(const std::vector<std::string> &characters) {
	std::string text;
	for (const auto &c : characters) {
		if (text.size() + c.size() > 4095) break;
		text += c;
	}
	return text;
}

TEST(Error, AMessageIsCutBetweenCharacters) {
	for (const char *wide : {"e", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"})
		for (std::size_t before = 4086; before <= 4097; before++) {
			std::vector<std::string> characters(before, "a");
			characters.insert(characters.end(), 5, wide);
			std::string all;
			for (const auto &c : characters) all += c;
			error_slot slot;
			slot.record(RR_KIND_CUDA, all.c_str());
			EXPECT_EQ(slot.message, whole(characters)) << before << " before " << wide;
			EXPECT_EQ(slot.kind, RR_KIND_CUDA);
		}
}

TEST(Error, WhatIsNoUTF8IsCutAnywhere) {
	error_slot slot;
	slot.record(RR_KIND_GENERIC, std::string(5000, '\x80').c_str());
	EXPECT_EQ(slot.message, std::string(4095, '\x80'));
	slot.record(RR_KIND_GENERIC, std::string(5000, '\xff').c_str());
	EXPECT_EQ(slot.message, std::string(4095, '\xff'));
}

TEST(Error, AMessageThatFitsIsWhole) {
	error_slot slot;
	for (std::size_t length : {0u, 1u, 4094u, 4095u}) {
		const std::string text(length, 'a');
		slot.record(RR_KIND_LOGIC, text.c_str());
		EXPECT_EQ(slot.message, text);
	}
}

struct plain : std::exception {
	const char *what() const noexcept override { return "plain"; }
};
struct of_bad_alloc : std::bad_alloc {};

template <class E> int32_t kind_of(const E &error) {
	error_slot slot;
	const int status = translate_exceptions(slot, [&] { throw error; });
	EXPECT_EQ(status, RR_ERROR);
	EXPECT_STREQ(slot.message, error.what());
	EXPECT_EQ(raftrkt::classify(error), slot.kind);
	return slot.kind;
}

TEST(Error, ExceptionsAreClassified) {
	EXPECT_EQ(kind_of(std::bad_alloc()), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind_of(of_bad_alloc()), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind_of(std::bad_array_new_length()), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind_of(raftrkt::cuda_error(2, "memory")), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind_of(raftrkt::cuda_error(1, "value")), RR_KIND_CUDA);
	EXPECT_EQ(kind_of(raftrkt::cuda_error(700, "address")), RR_KIND_CUDA);
	EXPECT_EQ(kind_of(raftrkt::fake::library_error("of a library")), RR_KIND_CUDA);
	EXPECT_EQ(kind_of(std::logic_error("logic")), RR_KIND_LOGIC);
	EXPECT_EQ(kind_of(raftrkt::logic_error("logic")), RR_KIND_LOGIC);
	EXPECT_EQ(kind_of(std::invalid_argument("argument")), RR_KIND_LOGIC);
	EXPECT_EQ(kind_of(std::out_of_range("range")), RR_KIND_LOGIC);
	EXPECT_EQ(kind_of(std::runtime_error("runtime")), RR_KIND_GENERIC);
	EXPECT_EQ(kind_of(std::system_error(std::make_error_code(std::errc::io_error))), RR_KIND_GENERIC);
	EXPECT_EQ(kind_of(plain()), RR_KIND_GENERIC);
}

TEST(Error, WhatIsNoExceptionIsUnknown) {
	error_slot slot;
	EXPECT_EQ(translate_exceptions(slot, [] { throw 42; }), RR_ERROR);
	EXPECT_STREQ(slot.message, "unknown exception");
	EXPECT_EQ(slot.kind, RR_KIND_GENERIC);
}

struct silent : std::exception {
	const char *what() const noexcept override { return nullptr; }
};

TEST(Error, AnExceptionWithoutATextIsAnError) {
	error_slot slot;
	slot.record(RR_KIND_CUDA, "of before");
	EXPECT_EQ(translate_exceptions(slot, [] { throw silent(); }), RR_ERROR);
	EXPECT_STREQ(slot.message, "");
	EXPECT_EQ(slot.kind, RR_KIND_GENERIC);
}

TEST(Error, ASuccessClearsTheSlot) {
	error_slot slot;
	slot.record(RR_KIND_CUDA, "of before");
	bool clear = false;
	EXPECT_EQ(translate_exceptions(slot, [&] { clear = slot.message[0] == '\0' && slot.kind == RR_KIND_GENERIC; }), RR_OK);
	EXPECT_TRUE(clear);
	EXPECT_STREQ(slot.message, "");
}

// An entry point that calls another of its library uses the same slot.
TEST(Error, AnOuterCallHasTheLastWord) {
	error_slot slot;
	const auto inner = [&] { return translate_exceptions(slot, [] { throw std::logic_error("inner"); }); };
	EXPECT_EQ(translate_exceptions(slot, [&] {
		EXPECT_EQ(inner(), RR_ERROR);
		throw std::runtime_error("outer");
	}), RR_ERROR);
	EXPECT_STREQ(slot.message, "outer");
	EXPECT_EQ(slot.kind, RR_KIND_GENERIC);
	EXPECT_EQ(translate_exceptions(slot, [&] { EXPECT_EQ(inner(), RR_ERROR); }), RR_OK);
}

TEST(Error, ANestedExceptionIsItsOuterOne) {
	EXPECT_EQ(message_of([] {
		try {
			throw std::bad_alloc();
		} catch (...) {
			std::throw_with_nested(std::logic_error("outer"));
		}
	}), "outer");
}

TEST(Error, RecordingAllocatesNothing) {
	error_slot slot;
	const std::string text(5000, 'a');
	no_memory none;
	slot.record(RR_KIND_GENERIC, text.c_str());
	const int status = translate_exceptions(slot, [] { (void)std::vector<int>(100); });
	EXPECT_EQ(status, RR_ERROR);
	EXPECT_EQ(slot.kind, RR_KIND_OUT_OF_MEMORY);
}

TEST(Error, SlotsOfThreadsAreTheirOwn) {
	static_assert(std::is_nothrow_default_constructible_v<error_slot>);
	constinit static thread_local error_slot slot; // compiles: no guard, no destructor
	static_assert(std::is_trivially_destructible_v<error_slot>);
	slot.clear();
}

TEST(Error, CudaCheckSaysTheCallAndTheStatus) {
	raftrkt::cuda_check(0, "cudaFree");
	EXPECT_EQ(message_of([] { raftrkt::cuda_check(700, "cudaFree"); }, RR_KIND_CUDA), "cudaFree: fake error 700");
	EXPECT_EQ(message_of([] { raftrkt::cuda_check(2, "cudaMalloc"); }, RR_KIND_OUT_OF_MEMORY), "cudaMalloc: fake error 2");
	try {
		raftrkt::cuda_check(700, "cudaFree");
	} catch (const raftrkt::cuda_error &error) {
		EXPECT_EQ(error.status(), 700);
	}
}

TEST(Error, RequireNamesWhatIsNull) {
	const int something = 0;
	raftrkt::require(&something, "something");
	EXPECT_EQ(message_of([] { raftrkt::require(nullptr, "out"); }), "out is NULL");
}

TEST(DeviceScope, SelectsAndRestores) {
	using namespace raftrkt;
	fake::current = 1;
	{
		device_scope outer(3);
		EXPECT_EQ(fake::current, 3);
		{
			device_scope inner(0);
			EXPECT_EQ(fake::current, 0);
		}
		EXPECT_EQ(fake::current, 3);
	}
	EXPECT_EQ(fake::current, 1);
	EXPECT_EQ(message_of([] {
		device_scope scope(2);
		throw logic_error("on the way out");
	}), "on the way out");
	EXPECT_EQ(fake::current, 1);
}

TEST(DeviceScope, OfTheCurrentDeviceSelectsNothing) {
	using namespace raftrkt;
	fake::current = 2;
	fake::selections = 0;
	{ device_scope scope(2); }
	EXPECT_EQ(fake::selections, 0);
}

TEST(DeviceScope, ThrowsWhatCudaRefuses) {
	using namespace raftrkt;
	fake::current = 1;
	EXPECT_EQ(message_of([] { device_scope scope(7); }, RR_KIND_CUDA), "cudaSetDevice: fake error 101");
	EXPECT_EQ(fake::current, 1);
}

TEST(SyncGuard, SynchronisesOnEveryExit) {
	using namespace raftrkt;
	fake_stream stream;
	const fake_handle handle{&stream, 0, {}};
	{ sync_guard guard(handle); }
	EXPECT_EQ(stream.synchronized, 1);
	{
		sync_guard guard(&stream);
		guard.finish();
		EXPECT_EQ(stream.synchronized, 2);
	}
	EXPECT_EQ(stream.synchronized, 2);
	EXPECT_EQ(message_of([&] {
		sync_guard guard(handle);
		throw logic_error("first");
	}), "first");
	EXPECT_EQ(stream.synchronized, 3);
}

TEST(SyncGuard, ReportsTheFirstError) {
	using namespace raftrkt;
	fake_stream stream;
	stream.status = 700;
	EXPECT_EQ(message_of([&] {
		sync_guard guard(&stream);
		guard.finish();
	}, RR_KIND_CUDA), "cudaStreamSynchronize: fake error 700");
	EXPECT_EQ(stream.synchronized, 1);
	EXPECT_EQ(message_of([&] {
		sync_guard guard(&stream);
		throw logic_error("first");
	}), "first");
	EXPECT_EQ(stream.synchronized, 2);
	{ sync_guard guard(&stream); } // swallowed
}

} // namespace
