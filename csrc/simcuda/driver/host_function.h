// Host functions: one thread a device calls them, one after the other.
#pragma once

#include "stream.h"

namespace simcuda {

struct HostCall {
	HostFunction function;
	void *argument;
	bool over = false;
};

// HostCaller calls functions in the order in which streams reach them. The
// simulator's mutex guards it, and is not held during a call.
class HostCaller {
public:
	void call(std::shared_ptr<HostCall> call);
	// close ends the thread after the calls it was given.
	void close();

	// idle says whether there is no thread.
	bool idle() const { return !started_; }

	// calling says whether this thread is inside a host function.
	static bool calling();

private:
	void run(Lock &lock);

	std::condition_variable arrival_;
	std::deque<std::shared_ptr<HostCall>> queue_;
	bool started_ = false;
	bool closed_ = false;
};

} // namespace simcuda
