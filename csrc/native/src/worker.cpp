#include "worker.hpp"

#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unistd.h>

namespace raftrkt::library {

std::thread (*start_thread)(thread_body, void *) = [](thread_body body, void *argument) {
	return std::thread(body, argument);
};

namespace {

// signals_blocked blocks, in the calling thread and in those that it starts, every
// signal but those that tell of an error of the thread itself.
class signals_blocked {
public:
	signals_blocked() {
		sigset_t all;
		sigfillset(&all);
		for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, own);
		pthread_sigmask(SIG_BLOCK, &all, &before_);
	}
	~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
	signals_blocked(const signals_blocked &) = delete;
	signals_blocked &operator=(const signals_blocked &) = delete;

private:
	sigset_t before_;
};

void announce(int fd) {
	if (fd < 0) return;
	const uint64_t one = 1;
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR) {
	}
}

} // namespace

void worker::submit(const job &next) {
	std::lock_guard lock(mutex_);
	queue_.push_back(next);
	if (!thread_.joinable()) {
		try {
			signals_blocked blocked;
			thread_ = start_thread([](void *self) { static_cast<worker *>(self)->run(); }, this);
		} catch (const std::system_error &error) {
			queue_.pop_back();
			throw std::runtime_error("the worker thread cannot be started: " + error.code().message());
		} catch (...) {
			queue_.pop_back();
			throw;
		}
	}
	arrival_.notify_one();
}

void worker::finish() noexcept {
	{
		std::lock_guard lock(mutex_);
		finishing_ = true;
		arrival_.notify_one();
	}
	if (thread_.joinable()) thread_.join();
}

void worker::run() {
	for (;;) {
		job next;
		{
			std::unique_lock lock(mutex_);
			arrival_.wait(lock, [this] { return finishing_ || !queue_.empty(); });
			if (queue_.empty()) return;
			next = queue_.front();
			queue_.pop_front();
		}
		next.entry(next.args, next.args_len, next.outcome);
		announce(next.done_fd);
	}
}

} // namespace raftrkt::library
