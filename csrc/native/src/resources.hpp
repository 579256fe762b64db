// The C side of a session.
#pragma once

#include "raftrkt/flavour.hpp"
#include "worker.hpp"

#include <memory>

namespace raftrkt::library {

// make_handle is the flavour's; it throws what it refuses.
std::unique_ptr<handle_t> make_handle(int32_t device, void *stream, void *cublas, void *cusolver);

} // namespace raftrkt::library

struct rr_resources {
	const int32_t device;
	std::unique_ptr<raftrkt::handle_t> handle;
	raftrkt::library::worker worker{};
};
