// cuBLAS handles.
#pragma once

#include "../driver/library.h"
#include "abi.h"

namespace simcuda::blas {

struct Handle : LibraryHandle {
	Range workspace{}; // of the user's, if any
	PointerMode pointer_mode = pointer_mode_host;
	int math_mode = math_default;
	AtomicsMode atomics = atomics_not_allowed;
	int sm_count_target = 0;
};

// find answers the handle; it refuses with invalid_handle.
std::shared_ptr<Handle> find(BlasHandle handle);

inline constexpr Codes codes{status_not_initialized, status_alloc_failed, status_invalid_value, status_execution_failed,
	status_internal_error, status_not_supported};

// call runs the body of a function of cuBLAS with the simulator locked.
template <class Body> Status call(const char *function, Body &&body) {
	return static_cast<Status>(library_call(function, codes, body));
}

} // namespace simcuda::blas
