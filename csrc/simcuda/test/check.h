// A small test harness: TEST registers a sentence about behaviour, CHECK and
// EQUAL note what does not hold, and main runs every test on a fresh simulator.
#pragma once

#include <atomic>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
	const char *name;
	void (*run)();
};

inline std::vector<Test> &tests() {
	static std::vector<Test> all;
	return all;
}

inline std::atomic<int> failures = 0; // tests have threads

struct Registered {
	Registered(const char *name, void (*run)()) { tests().push_back({name, run}); }
};

inline void fail(const char *file, int line, const std::string &what) {
	std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
	failures++;
}

template <class A, class B> void equal(const char *file, int line, const char *text, const A &got, const B &want) {
	if (got == want)
		return;
	std::ostringstream message;
	message << text << " is " << got << "; expected " << want;
	fail(file, line, message.str());
}

} // namespace check

#define TEST_NAME(line) test_on_line_##line
#define TEST_(sentence, line) \
	static void TEST_NAME(line)(); \
	static const check::Registered registered_##line(sentence, TEST_NAME(line)); \
	static void TEST_NAME(line)()
#define TEST_ON(sentence, line) TEST_(sentence, line)
#define TEST(sentence) TEST_ON(sentence, __LINE__)

#define CHECK(condition) ((condition) ? void() : check::fail(__FILE__, __LINE__, #condition " does not hold"))
#define EQUAL(got, want) check::equal(__FILE__, __LINE__, #got, got, want)
#define OK(call) EQUAL(static_cast<int>(call), 0)
