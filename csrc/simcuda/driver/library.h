// What cuBLAS and cuSOLVER of the simulator need of its driver. They are
// separate libraries, as NVIDIA's are.
#pragma once

#include "entry.h"

namespace simcuda {

// Codes are a library's names for what went wrong.
struct Codes {
	int not_initialized, alloc_failed, invalid_value, execution_failed, internal_error, not_supported;
};

// code_of translates what the driver says.
SIM_SHARED int code_of(const Codes &codes, Result result);

// library_call runs the body of a library's function with the simulator locked.
template <class Body> int library_call(const char *function, const Codes &codes, Body &&body) {
	try {
		Lock lock(simulator().mutex);
		if (int error = enter(function))
			return error;
		body(lock);
		return 0;
	} catch (const Refusal &refusal) {
		return code_of(codes, refusal.result);
	} catch (const std::bad_alloc &) {
		return codes.alloc_failed;
	}
}

// LibraryHandle is what handles of both libraries have in common.
struct LibraryHandle {
	std::shared_ptr<Context> context;
	StreamHandle stream = nullptr;
};

// stream_of answers the stream of a handle, whose context must be the current
// one and the stream's.
SIM_SHARED StreamPtr stream_of(const char *function, const LibraryHandle &handle);

// live_memory answers where the simulator keeps memory that a kernel found an
// address of, during its work. It refuses with illegal_address.
SIM_SHARED std::byte *live_memory(const Context &context, Range range);

} // namespace simcuda
