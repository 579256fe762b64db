// What differs between a build on RAFT and one without CUDA, in one place: the
// handle and its stream, devices, where memory lies, which exceptions there are.
// RAFTRKT_HOST, which the CMake package defines, chooses the host flavour; tests
// name a flavour of their own.
//
// A flavour has raftrkt::handle_t and raftrkt::stream_t, and in raftrkt::flavour:
//
//	int get_device(int &device), set_device(int device)   the thread's current one
//	int synchronize(const stream_t &)
//	int place_of(const void *data, place &)               where memory lies
//	bool usable(int32_t memory)                           by code on its devices
//	int32_t own_memory                                    the RR_MEMORY_* of arrays
//	int device_of(const handle_t &)
//	stream_t stream_of(const handle_t &)
//	int32_t kind_of(const std::exception &)               of its libraries', or -1
//	std::string error_text(int status)
//	int out_of_memory                                     a status
//	int32_t raft_version[3], rmm_version[3], cccl_version[3], cuda_runtime,
//	resource_types                                        of the headers compiled
//
// Those that answer int answer a cudaError_t, 0 for success, and throw nothing.
#pragma once

#include "raftrkt/array.h"

#include <exception>
#include <string>

namespace raftrkt::flavour {

struct place {
	int32_t memory; // RR_MEMORY_*
	int32_t device;
};

} // namespace raftrkt::flavour

#if defined(RAFTRKT_FLAVOUR_HEADER)
#include RAFTRKT_FLAVOUR_HEADER
#elif defined(RAFTRKT_HOST)
#include "raftrkt/host_flavour.hpp"
#else
#include "raftrkt/raft_flavour.hpp"
#endif
