//go:build cuda

#include "mark.h"

#include "driver.h"

#include <cuda.h>

int weir_mark_new(uintptr_t context, uintptr_t *mark) {
	WEIR_WITH(context, cuEventCreate((CUevent *)mark, CU_EVENT_DEFAULT));
}

static CUresult elapsed(CUevent from, CUevent to, float *milliseconds) {
	CUresult result;
	do { /* again if one was recorded anew since it was waited for */
		result = cuEventSynchronize(from);
		if (result == CUDA_SUCCESS)
			result = cuEventSynchronize(to);
		if (result == CUDA_SUCCESS)
			result = cuEventElapsedTime(milliseconds, from, to);
	} while (result == CUDA_ERROR_NOT_READY);
	return result;
}

int weir_mark_elapsed(uintptr_t context, uintptr_t from, uintptr_t to, float *milliseconds) {
	WEIR_WITH(context, elapsed((CUevent)from, (CUevent)to, milliseconds));
}
