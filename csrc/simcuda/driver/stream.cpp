#include "capture.h"
#include "simulator.h"

#include <csignal>
#include <pthread.h>
#include <thread>

namespace simcuda {

void start_thread(std::function<void(Lock &)> body) {
	// Signals are for the threads of the program.
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	simulator().threads++;
	std::thread([body = std::move(body)] {
		Lock lock(simulator().mutex);
		body(lock);
		simulator().threads--;
		simulator().progress.notify_all();
	}).detach();
	pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Stream::Stream(std::shared_ptr<Context> context, unsigned flags, int priority)
	: context(std::move(context)), device(this->context->device), number(++simulator().last_stream), flags(flags),
	  priority(priority) {}

void Stream::submit(Operation operation, BadMemory bad) {
	device.require_alive();
	require(!closed, invalid_handle);
	if (capture)
		return capture->add(*this, std::move(operation), bad);
	Queued queued;
	for (const auto &range : operation.ranges) {
		auto block = range.bytes ? find_block(range) : nullptr;
		if (range.bytes && (!block || (bad == BadMemory::fault && operation.type == node_kernel && !reachable(*context, *block)))) {
			misuse(format("%s: %zu bytes at %#llx are not allocated memory that device %d can use", operation.what,
				range.bytes, range.address, device.ordinal));
			require(bad == BadMemory::fault, invalid_value);
			queued.illegal = true;
			break;
		}
		queued.blocks.push_back(block);
		queued.places.push_back(block ? block->at + (range.address - block->address) : nullptr);
	}
	for (const auto &block : queued.blocks)
		if (block)
			block->pending++;
	queued.operation = std::move(operation);
	queue_.push_back(std::move(queued));
	submitted++;
	if (!started_) {
		started_ = true;
		device.streams.push_back(shared_from_this());
		start_thread([self = shared_from_this()](Lock &lock) { self->run(lock); });
	}
	arrival_.notify_one();
}

RecordPtr Stream::record(const char *what) {
	auto record = std::make_shared<Record>(Record{&device, number, submitted, known});
	auto done = [record] {
		record->done = true;
		record->when = std::chrono::steady_clock::now();
	};
	submit({.what = what, .end = done, .abandon = [record] { record->abandoned = true; }});
	return record;
}

void Stream::wait(const char *what, RecordPtr record) {
	submit({.what = what, .ready = [record] { return record->over(); }});
	for (const auto &[stream, place] : record->known)
		known[stream] = std::max(known[stream], place);
	known[record->stream] = std::max(known[record->stream], record->place);
}

void Stream::require_not_capturing() const {
	if (capture)
		capture->fail(stream_capture_unsupported);
}

void Stream::synchronize(Lock &lock) {
	require_not_capturing();
	simulator().progress.wait(lock, [this, tail = submitted] { return completed >= tail; });
	device.require_alive();
}

void Stream::close() {
	closed = true;
	arrival_.notify_one();
}

void Stream::run(Lock &lock) {
	for (;;) {
		arrival_.wait(lock, [&] { return closed || !queue_.empty(); });
		if (queue_.empty())
			break;
		auto queued = std::move(queue_.front());
		queue_.pop_front();
		execute(queued, lock);
		completed++;
		simulator().progress.notify_all();
	}
	std::erase_if(device.streams, [&](const auto &stream) { return stream.get() == this; });
}

void Stream::execute(Queued &queued, Lock &lock) {
	auto &operation = queued.operation;
	auto &progress = simulator().progress;
	auto dead = [&] { return device.error != success; };
	if (!dead() && operation.begin)
		operation.begin();
	if (operation.host && !dead()) {
		auto call = std::make_shared<HostCall>(HostCall{operation.host, operation.argument});
		if (!simulator().faults.drop_callback()) {
			device.call(call);
			progress.wait(lock, [&] { return dead() || call->over; });
		}
	}
	if (operation.ready)
		progress.wait(lock, [&] { return dead() || operation.ready(); });
	if (delay.count())
		progress.wait_until(lock, std::chrono::system_clock::now() + delay, dead);
	if (!dead())
		launch(queued, lock);
	for (const auto &block : queued.blocks)
		if (block)
			block->pending--;
	if (dead()) {
		if (operation.abandon)
			operation.abandon();
	} else if (operation.end) {
		operation.end();
	}
}

void Stream::launch(Queued &queued, Lock &lock) {
	auto &operation = queued.operation;
	if (queued.illegal)
		return device.die(illegal_address);
	for (const auto &block : queued.blocks) {
		if (block && !block->live) {
			misuse(format("%s: the memory at %#llx is used before its allocation or after its free; no event orders stream %llu with it",
				operation.what, block->address, static_cast<unsigned long long>(number)));
			return device.die(illegal_address);
		}
	}
	if (!operation.work)
		return;
	Result fault = success;
	lock.unlock();
	try {
		operation.work(queued.places);
	} catch (const Refusal &refusal) {
		fault = refusal.result;
	}
	lock.lock();
	if (fault != success)
		device.die(fault);
}

} // namespace simcuda
