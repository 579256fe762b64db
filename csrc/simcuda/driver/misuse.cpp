#include "misuse.h"

#include "simulator.h"

#include <cstdarg>
#include <cstdio>

namespace simcuda {

std::string format(const char *pattern, ...) {
	std::va_list arguments, again;
	va_start(arguments, pattern);
	va_copy(again, arguments);
	std::string text(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, pattern, arguments)), '\0');
	std::vsnprintf(text.data(), text.size() + 1, pattern, again);
	va_end(again);
	va_end(arguments);
	return text;
}

void misuse(std::string text) { simulator().misuses.add(std::move(text)); }

} // namespace simcuda
