#include "failing_new.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local bool failing = false;
thread_local int left = 0;

void *take(std::size_t bytes) {
	if (failing && left-- <= 0) throw std::bad_alloc();
	if (void *p = std::malloc(bytes ? bytes : 1)) return p;
	throw std::bad_alloc();
}
} // namespace

no_memory::no_memory(int after) {
	failing = true;
	left = after;
}
no_memory::~no_memory() { failing = false; }

void *operator new(std::size_t bytes) { return take(bytes); }
void *operator new[](std::size_t bytes) { return take(bytes); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete[](void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
void operator delete[](void *p, std::size_t) noexcept { std::free(p); }
