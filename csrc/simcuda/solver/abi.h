// cuSOLVER's binary interface, as far as the simulator has it; see driver/abi.h.
#pragma once

#include "../driver/abi.h"

namespace simcuda::solver {

struct HandleTag;
using SolverHandle = HandleTag *; // cusolverDnHandle_t
struct ParamsTag;
using ParamsHandle = ParamsTag *; // cusolverDnParams_t

enum DataType : int { // cudaDataType
	r32f = 0,
	r64f = 1,
	c32f = 4,
	c64f = 5,
};

enum Status : int { // cusolverStatus_t
	status_success = 0,
	status_not_initialized = 1,
	status_alloc_failed = 2,
	status_invalid_value = 3,
	status_execution_failed = 6,
	status_internal_error = 7,
	status_not_supported = 9,
};

inline constexpr int version = 12000; // of cuSOLVER 12.0.0

} // namespace simcuda::solver
