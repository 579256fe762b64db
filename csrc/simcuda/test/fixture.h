// Short ways to what the tests need. All of it is gone at the next reset.
#pragma once

#include "check.h"
#include "interface.h"

#include <span>

// use makes the primary context of a device current.
inline ContextHandle use(int device) {
	ContextHandle context{};
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	return context;
}

inline StreamHandle stream() {
	StreamHandle handle{};
	OK(cuStreamCreateWithPriority(&handle, stream_non_blocking, 0));
	return handle;
}

inline EventHandle event(unsigned flags = event_disable_timing) {
	EventHandle handle{};
	OK(cuEventCreate(&handle, flags));
	return handle;
}

inline EventHandle record(StreamHandle on) {
	auto handle = event();
	OK(cuEventRecord(handle, on));
	return handle;
}

inline DevicePtr allocate(std::size_t bytes) {
	DevicePtr address{};
	OK(cuMemAlloc_v2(&address, bytes));
	return address;
}

inline PoolHandle pool(std::size_t limit = 0, int device = 0) {
	PoolProperties properties{};
	properties.allocation_type = allocation_pinned;
	properties.location = {location_device, device};
	properties.maximum_size = limit;
	PoolHandle handle{};
	OK(cuMemPoolCreate(&handle, &properties));
	return handle;
}

inline DevicePtr take(PoolHandle from, StreamHandle on, std::size_t bytes) {
	DevicePtr address{};
	OK(cuMemAllocFromPoolAsync(&address, bytes, from, on));
	return address;
}

inline std::uint64_t attribute(PoolHandle of, PoolAttribute which) {
	std::uint64_t value{};
	OK(cuMemPoolGetAttribute(of, which, &value));
	return value;
}

// put and get copy plain memory, and wait only as CUDA says.
template <class T> void put(DevicePtr to, const std::vector<T> &values, StreamHandle on) {
	OK(cuMemcpyHtoDAsync_v2(to, values.data(), values.size() * sizeof(T), on));
}

template <class T> std::vector<T> get(DevicePtr from, std::size_t count, StreamHandle on) {
	std::vector<T> values(count);
	OK(cuMemcpyDtoHAsync_v2(values.data(), from, count * sizeof(T), on));
	return values;
}

template <class T> DevicePtr on_device(const std::vector<T> &values, StreamHandle on) {
	auto address = allocate(values.size() * sizeof(T));
	put(address, values, on);
	return address;
}

inline std::string misuse_text() {
	char text[4096];
	weir_sim_misuse(text, sizeof text);
	return text;
}

inline bool mentions(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

template <class T> T *pointer(DevicePtr address) { return reinterpret_cast<T *>(address); }
