// Errors as libraftrkt has them: exceptions inside, and at the border a status, with
// the message and its kind in a slot that each OS thread has.
#pragma once

#include "raftrkt/flavour.hpp"

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace raftrkt {

// logic_error: the caller asked for what cannot be.
struct logic_error : std::logic_error {
	using std::logic_error::logic_error;
};

// cuda_error: CUDA refused. status is its cudaError_t.
class cuda_error : public std::runtime_error {
public:
	cuda_error(int status, const std::string &what) : std::runtime_error(what), status_(status) {}
	int status() const noexcept { return status_; }

private:
	int status_;
};

// cuda_check throws if the status is not cudaSuccess; call says what answered it.
inline void cuda_check(int status, const char *call) {
	if (status != 0) throw cuda_error(status, std::string(call) + ": " + flavour::error_text(status));
}

// require throws "name is NULL" if the pointer is.
inline void require(const void *pointer, const char *name) {
	if (!pointer) throw logic_error(std::string(name) + " is NULL");
}

// classify answers the RR_KIND_* of an exception.
inline int32_t classify(const std::exception &error) noexcept {
	if (dynamic_cast<const std::bad_alloc *>(&error)) return RR_KIND_OUT_OF_MEMORY;
	if (const auto *cuda = dynamic_cast<const cuda_error *>(&error))
		return cuda->status() == flavour::out_of_memory ? RR_KIND_OUT_OF_MEMORY : RR_KIND_CUDA;
	if (const auto kind = flavour::kind_of(error); kind >= 0) return kind;
	if (dynamic_cast<const std::logic_error *>(&error)) return RR_KIND_LOGIC;
	return RR_KIND_GENERIC;
}

// error_slot is a thread's last error. A library owns one for each OS thread
// (thread_local), and exports two functions that read it. It allocates nothing.
struct error_slot {
	char message[4096]{}; // UTF-8, ended by NUL
	int32_t kind = RR_KIND_GENERIC;

	void clear() noexcept {
		message[0] = '\0';
		kind = RR_KIND_GENERIC;
	}

	// record keeps as many whole characters of the text as fit; none of NULL, which an
	// exception of somebody's may have.
	void record(int32_t of, const char *text) noexcept {
		kind = of;
		if (!text) text = "";
		auto length = strnlen(text, sizeof message);
		std::memcpy(message, text, length);
		if (length == sizeof message) {
			// The byte after the cut tells whether it divides a character, which has at
			// most three bytes after its first.
			auto cut = --length;
			while (length - cut < 3 && continues(message[cut])) cut--;
			if (!continues(message[cut])) length = cut;
		}
		message[length] = '\0';
	}

private:
	static bool continues(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }
};
static_assert(sizeof(error_slot::message) == 4096);

// translate_exceptions clears the slot, runs fn and answers RR_OK. If fn throws, it
// records the message and the kind, and answers RR_ERROR.
template <class Fn> int translate_exceptions(error_slot &slot, Fn &&fn) noexcept {
	slot.clear();
	try {
		std::forward<Fn>(fn)();
		return RR_OK;
	} catch (const std::exception &error) {
		slot.record(classify(error), error.what());
	} catch (...) {
		slot.record(RR_KIND_GENERIC, "unknown exception");
	}
	return RR_ERROR;
}

// device_scope makes a device current for its scope and then restores the one
// before. It throws if CUDA refuses.
class device_scope {
public:
	explicit device_scope(int device) {
		cuda_check(flavour::get_device(before_), "cudaGetDevice");
		if (before_ == device) return;
		cuda_check(flavour::set_device(device), "cudaSetDevice");
		changed_ = true;
	}
	~device_scope() {
		if (changed_) (void)flavour::set_device(before_);
	}
	device_scope(const device_scope &) = delete;
	device_scope &operator=(const device_scope &) = delete;

private:
	int before_ = 0;
	bool changed_ = false;
};

// sync_guard synchronises a stream on every exit from its scope. finish does so and
// throws on failure; what fails while the scope is left by another exception is
// swallowed, so that the first is reported.
class sync_guard {
public:
	explicit sync_guard(stream_t stream) : stream_(stream) {}
	explicit sync_guard(const handle_t &handle) : sync_guard(flavour::stream_of(handle)) {}
	~sync_guard() {
		if (!finished_) (void)flavour::synchronize(stream_);
	}
	sync_guard(const sync_guard &) = delete;
	sync_guard &operator=(const sync_guard &) = delete;

	void finish() {
		finished_ = true;
		cuda_check(flavour::synchronize(stream_), "cudaStreamSynchronize");
	}

private:
	stream_t stream_;
	bool finished_ = false;
};

} // namespace raftrkt
