// The thread that runs the jobs of one rr_resources.
#pragma once

#include "raftrkt/job.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace raftrkt::library {

// start_thread starts a thread; tests exchange it.
using thread_body = void (*)(void *argument);
extern std::thread (*start_thread)(thread_body body, void *argument);

// worker runs jobs in the order of submission, each after the one before returned.
// Its thread starts with the first job and takes no asynchronous signals, which are
// the program's.
class worker {
public:
	worker() = default;
	~worker() { finish(); }
	worker(const worker &) = delete;
	worker &operator=(const worker &) = delete;

	struct job {
		rr_job_fn entry;
		void *args;
		std::size_t args_len;
		rr_job_outcome *outcome;
		int done_fd;
	};

	// submit queues the job; if it throws, nothing is queued.
	void submit(const job &next);
	// finish waits for all jobs and ends the thread. No job may call it.
	void finish() noexcept;
	// current says whether the calling thread is the worker's.
	bool current() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }

private:
	void run();

	std::mutex mutex_; // guards what follows
	std::condition_variable arrival_;
	std::deque<job> queue_;
	bool finishing_ = false;
	std::thread thread_;
};

} // namespace raftrkt::library
