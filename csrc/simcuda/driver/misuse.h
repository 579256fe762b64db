// Misuse: what real CUDA leaves undefined or punishes late, noted when seen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace simcuda {

// MisuseLog keeps what was seen. The simulator's mutex guards it.
class MisuseLog {
public:
	void add(std::string text) {
		count_++;
		if (texts_.size() < most_texts)
			texts_.push_back(std::move(text));
	}
	std::size_t count() const { return count_; }
	const std::vector<std::string> &texts() const { return texts_; }
	void clear() { *this = {}; }

private:
	static constexpr std::size_t most_texts = 1000;
	std::size_t count_ = 0;
	std::vector<std::string> texts_;
};

// format is sprintf to a string.
__attribute__((format(printf, 1, 2), visibility("default"))) std::string format(const char *pattern, ...);

// misuse notes what was done wrong. The simulator's mutex is held.
__attribute__((visibility("default"))) void misuse(std::string text);

} // namespace simcuda
