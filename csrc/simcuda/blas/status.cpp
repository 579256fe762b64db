// Names and texts of cuBLAS's errors. Both functions may be called anywhere.
#include "abi.h"

using namespace simcuda;
using namespace simcuda::blas;

namespace {

struct Names {
	const char *name, *text;
};

Names names_of(Status status) {
	switch (status) {
	case status_success:
		return {"CUBLAS_STATUS_SUCCESS", "success"};
	case status_not_initialized:
		return {"CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"};
	case status_alloc_failed:
		return {"CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"};
	case status_invalid_value:
		return {"CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed to the function"};
	case status_arch_mismatch:
		return {"CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature that the function needs"};
	case status_mapping_error:
		return {"CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"};
	case status_execution_failed:
		return {"CUBLAS_STATUS_EXECUTION_FAILED", "the GPU program failed to execute"};
	case status_internal_error:
		return {"CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"};
	case status_not_supported:
		return {"CUBLAS_STATUS_NOT_SUPPORTED", "the functionality requested is not supported"};
	case status_license_error:
		return {"CUBLAS_STATUS_LICENSE_ERROR", "the license was not found or could not be checked"};
	}
	return {"unknown", "unknown"};
}

} // namespace

SIM_API const char *cublasGetStatusName(Status status) { return names_of(status).name; }

SIM_API const char *cublasGetStatusString(Status status) { return names_of(status).text; }
