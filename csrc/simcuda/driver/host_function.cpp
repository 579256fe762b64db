#include "entry.h"

namespace simcuda {

namespace {

thread_local bool inside = false;

} // namespace

bool HostCaller::calling() { return inside; }

void HostCaller::call(std::shared_ptr<HostCall> call) {
	queue_.push_back(std::move(call));
	if (!started_) {
		started_ = true;
		start_thread([this](Lock &lock) { run(lock); });
	}
	arrival_.notify_one();
}

void HostCaller::close() {
	closed_ = started_;
	arrival_.notify_one();
}

void HostCaller::run(Lock &lock) {
	for (;;) {
		arrival_.wait(lock, [&] { return closed_ || !queue_.empty(); });
		if (queue_.empty())
			break;
		auto call = std::move(queue_.front());
		queue_.pop_front();
		lock.unlock();
		inside = true;
		call->function(call->argument);
		inside = false;
		lock.lock();
		call->over = true;
		simulator().progress.notify_all();
	}
	started_ = false;
	closed_ = false;
}

} // namespace simcuda

using namespace simcuda;

SIM_API Result cuLaunchHostFunc(StreamHandle handle, HostFunction function, void *argument) {
	return api("cuLaunchHostFunc", [&](Lock &) {
		auto stream = find_stream(handle);
		require(function != nullptr, invalid_value);
		stream->submit({.what = "cuLaunchHostFunc", .type = node_host, .host = function, .argument = argument});
	});
}
