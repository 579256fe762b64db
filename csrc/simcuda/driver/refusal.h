// How a function of the interface answers an error from deep inside: it throws.
#pragma once

#include "abi.h"

namespace simcuda {

// Refusal ends the call; api (entry.h) turns it into the function's answer.
struct SIM_SHARED Refusal {
	Result result;
};

[[noreturn]] inline void refuse(Result result) { throw Refusal{result}; }

inline void require(bool holds, Result otherwise) {
	if (!holds)
		refuse(otherwise);
}

} // namespace simcuda
