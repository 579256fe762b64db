#include "last_error.hpp"

namespace raftrkt::library {

error_slot &last_error_slot() noexcept {
	constinit static thread_local error_slot slot;
	return slot;
}

} // namespace raftrkt::library

const char *rr_last_error(void) { return raftrkt::library::last_error_slot().message; }
int rr_last_error_kind(void) { return raftrkt::library::last_error_slot().kind; }
