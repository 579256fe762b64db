// cuSOLVER handles.
#pragma once

#include "../driver/library.h"
#include "abi.h"

namespace simcuda::solver {

// find answers the handle; it refuses with invalid_handle.
std::shared_ptr<LibraryHandle> find(SolverHandle handle);

// require_params refuses what is no parameters with invalid_value.
void require_params(ParamsHandle handle);

inline constexpr Codes codes{status_not_initialized, status_alloc_failed, status_invalid_value, status_execution_failed,
	status_internal_error, status_not_supported};

// call runs the body of a function of cuSOLVER with the simulator locked.
template <class Body> Status call(const char *function, Body &&body) {
	return static_cast<Status>(library_call(function, codes, body));
}

} // namespace simcuda::solver
