// What every function of the interface does first and last.
#pragma once

#include "simulator.h"

#include <new>

namespace simcuda {

// enter counts the call and refuses it inside a host function or before
// cuInit. It answers the error that a test asked for, or 0.
SIM_SHARED int enter(const char *function);

// planned_failure is what a driver function answers then. A fatal error ends
// the device of the current context.
Result planned_failure(int error);

// api runs the body of a driver function with the simulator locked.
template <class Body> Result api(const char *function, Body &&body) {
	try {
		Lock lock(simulator().mutex);
		if (int error = enter(function))
			return planned_failure(error);
		body(lock);
		return success;
	} catch (const Refusal &refusal) {
		return refusal.result;
	} catch (const std::bad_alloc &) {
		return out_of_memory;
	}
}

// answer stores an output of the interface, which must have a place for it.
template <class T, class V> void answer(T *place, V value) {
	require(place != nullptr, invalid_value);
	*place = static_cast<T>(value);
}

} // namespace simcuda
