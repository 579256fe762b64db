// cuBLAS's binary interface, as far as the simulator has it; see driver/abi.h.
#pragma once

#include "../driver/abi.h"

namespace simcuda::blas {

struct HandleTag;
using BlasHandle = HandleTag *; // cublasHandle_t

enum Status : int { // cublasStatus_t
	status_success = 0,
	status_not_initialized = 1,
	status_alloc_failed = 3,
	status_invalid_value = 7,
	status_arch_mismatch = 8,
	status_mapping_error = 11,
	status_execution_failed = 13,
	status_internal_error = 14,
	status_not_supported = 15,
	status_license_error = 16,
};

enum Transpose : int { no_trans = 0, trans = 1, conj_trans = 2 }; // cublasOperation_t
enum PointerMode : int { pointer_mode_host = 0, pointer_mode_device = 1 };
enum AtomicsMode : int { atomics_not_allowed = 0, atomics_allowed = 1 };

enum MathMode : int { // cublasMath_t, without its flag against reduced-precision reductions
	math_default = 0,
	math_pedantic = 2,
	math_tf32 = 3,
};
inline constexpr int math_mode_flags = 16;

enum DataType : int { // cudaDataType
	r32f = 0,
	r64f = 1,
	r16f = 2,
	c32f = 4,
	c64f = 5,
	r16bf = 14,
};

enum ComputeType : int { // cublasComputeType_t
	compute_16f = 64,
	compute_16f_pedantic = 65,
	compute_32f = 68,
	compute_32f_pedantic = 69,
	compute_64f = 70,
	compute_64f_pedantic = 71,
	compute_32f_fast_16f = 74,
	compute_32f_fast_16bf = 75,
	compute_32f_fast_tf32 = 77,
};

inline constexpr int version = 130100; // of cuBLAS 13.1.0

} // namespace simcuda::blas
