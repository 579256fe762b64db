// The error slot of libraftrkt itself.
#pragma once

#include "raftrkt/error.hpp"

namespace raftrkt::library {

error_slot &last_error_slot() noexcept;

// entry is the body of every entry point that can fail.
template <class Fn> int entry(Fn &&fn) noexcept {
	return translate_exceptions(last_error_slot(), std::forward<Fn>(fn));
}

} // namespace raftrkt::library
