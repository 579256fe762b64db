// What the tests say about refusals.
#pragma once

#include "raftrkt/error.hpp"

#include <gtest/gtest.h>

// message_of answers what body throws, and holds its kind.
template <class Body> std::string message_of(Body &&body, int32_t kind = RR_KIND_LOGIC) {
	raftrkt::error_slot slot;
	if (raftrkt::translate_exceptions(slot, std::forward<Body>(body)) == RR_OK) return "nothing was thrown";
	EXPECT_EQ(slot.kind, kind) << slot.message;
	return slot.message;
}
