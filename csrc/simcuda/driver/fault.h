// Faults on request, and how often each function was called.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace simcuda {

// Faults is guarded by the simulator's mutex.
class Faults {
public:
	// fail makes the nth call from now answer error; 1 is the next.
	void fail(const std::string &function, long long nth, int error) {
		auto &calls = functions_[function];
		calls.planned[calls.count + nth] = error;
	}
	// called counts a call and answers the error that was asked for, or 0.
	int called(const char *function) {
		auto &calls = functions_[function];
		auto planned = calls.planned.extract(++calls.count);
		return planned ? planned.mapped() : 0;
	}
	long long count(const std::string &function) const {
		auto at = functions_.find(function);
		return at == functions_.end() ? 0 : at->second.count;
	}
	// drop_callbacks loses the next host functions.
	void drop_callbacks(long long count) { callbacks_to_drop_ = count; }
	bool drop_callback() {
		if (callbacks_to_drop_ == 0)
			return false;
		callbacks_to_drop_--;
		return true;
	}
	void clear() { *this = {}; }

private:
	struct Calls {
		long long count = 0;
		std::map<long long, int> planned;
	};
	std::map<std::string, Calls> functions_;
	long long callbacks_to_drop_ = 0;
};

} // namespace simcuda
