#include "entry.h"

#include <algorithm>

namespace simcuda {

namespace {

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

} // namespace

bool Pool::usable(const Segment &segment, const Stream &stream) const {
	if (segment.used)
		return false;
	if (!segment.freed || segment.freed->stream == stream.number)
		return true;
	auto known = stream.known.find(segment.freed->stream);
	return follow_ && known != stream.known.end() && known->second >= segment.freed->place;
}

void Pool::settle() {
	for (auto &[_, chunk] : chunks_) {
		for (auto &[_, segment] : chunk.segments)
			if (segment.freed && segment.freed->done)
				segment.freed = nullptr;
		merge(chunk);
	}
}

// merge joins neighbours that are free on the same condition.
void Pool::merge(Chunk &chunk) {
	auto &segments = chunk.segments;
	for (auto left = segments.begin(); left != segments.end();) {
		auto right = std::next(left);
		if (right == segments.end())
			return;
		auto &a = left->second, &b = right->second;
		bool alike = !a.used && !b.used && !a.freed == !b.freed && (!a.freed || a.freed->stream == b.freed->stream);
		if (!alike) {
			left = right;
			continue;
		}
		a.bytes += b.bytes;
		if (a.freed && b.freed->place > a.freed->place)
			a.freed = b.freed;
		segments.erase(right);
	}
}

// find answers the smallest free segment that fits.
Pool::Place Pool::find(std::size_t bytes, const std::function<bool(const Segment &)> &fits) {
	Place best;
	std::size_t best_bytes = SIZE_MAX;
	for (auto &[_, chunk] : chunks_) {
		for (auto &[address, segment] : chunk.segments) {
			if (segment.bytes >= bytes && segment.bytes < best_bytes && fits(segment)) {
				best = {&chunk, address};
				best_bytes = segment.bytes;
			}
		}
	}
	return best;
}

// grow takes a chunk from the device. It answers no place where the limit or
// the device's memory is reached.
Pool::Place Pool::grow(std::size_t bytes) {
	auto size = rounded(bytes, chunk_bytes);
	if (limit_ && (size > limit_ || held_ > limit_ - size))
		return {};
	try {
		auto address = device.arena.take(size);
		auto &chunk = chunks_.emplace(address, Chunk{size, {{address, Segment{size, false, nullptr}}}}).first->second;
		hold(static_cast<std::int64_t>(size));
		return {&chunk, address};
	} catch (const Refusal &) {
		return {};
	}
}

BlockPtr Pool::allocate(const StreamPtr &stream, std::size_t asked, const char *what) {
	require(!destroyed_, invalid_handle);
	require(asked > 0, invalid_value);
	require(asked <= device.arena.bytes(), out_of_memory);
	auto bytes = rounded(asked, segment_bytes);
	if (opportunistic_)
		settle();
	auto place = find(bytes, [&](const Segment &segment) { return usable(segment, *stream); });
	if (!place.chunk)
		place = grow(bytes);
	if (!place.chunk) {
		trim(0);
		place = grow(bytes);
	}
	if (!place.chunk && internal_)
		place = find(bytes, [&](const Segment &segment) { return !segment.used; });
	require(place.chunk != nullptr, out_of_memory);

	auto &segment = place.chunk->segments.at(place.address);
	if (!usable(segment, *stream))
		stream->wait(what, segment.freed);
	auto left = segment.bytes - bytes;
	if (left)
		place.chunk->segments.emplace(place.address + bytes, Segment{left, false, segment.freed});
	segment = {bytes, true, nullptr};
	use(static_cast<std::int64_t>(bytes));

	auto block = std::make_shared<Block>(
		Block{nullptr, &device, shared_from_this(), place.address, asked, device.arena.at(place.address), false});
	device.blocks.emplace(place.address, block);
	stream->submit({
		.what = what,
		.work = [block](auto) { block->device->arena.poison_fresh(block->address, block->bytes); },
		.end = [block] { block->live = true; },
	});
	return block;
}

Pool::Segment &Pool::segment_of(const BlockPtr &block) {
	auto chunk = std::prev(chunks_.upper_bound(block->address));
	return chunk->second.segments.at(block->address);
}

void Pool::free(const BlockPtr &block, const StreamPtr &stream, const char *what) {
	auto begin = [block, what] {
		if (!block->live)
			misuse(format("%s: the memory at %#llx is freed before its allocation; no event orders the two", what, block->address));
		if (block->pending)
			misuse(format("%s: the memory at %#llx is freed while %d earlier operations use it; no event orders them", what,
				block->address, block->pending));
	};
	auto record = std::make_shared<Record>(Record{&device, stream->number, stream->submitted + 1, stream->known});
	auto forget = [block] { std::erase(block->device->freed, block); };
	auto end = [block, record, forget, pool = shared_from_this()] {
		block->live = false;
		record->done = true;
		forget();
		if (pool->destroyed_)
			pool->trim(0);
	};
	stream->submit({
		.what = what,
		.work = [block](auto) { block->device->arena.poison(block->address, block->bytes); },
		.begin = begin,
		.end = end,
		.abandon = forget,
	});
	device.blocks.erase(block->address);
	device.freed.push_back(block);
	auto &segment = segment_of(block);
	segment.used = false;
	segment.freed = record;
	use(-static_cast<std::int64_t>(segment.bytes));
}

void Pool::free_now(const BlockPtr &block) {
	block->live = false;
	device.arena.poison(block->address, block->bytes);
	device.blocks.erase(block->address);
	auto &segment = segment_of(block);
	segment.used = false;
	use(-static_cast<std::int64_t>(segment.bytes));
	if (destroyed_)
		trim(0);
}

void Pool::trim(std::uint64_t keep) {
	settle();
	for (auto at = chunks_.begin(); at != chunks_.end();) {
		const auto &[address, chunk] = *at;
		const auto &first = chunk.segments.begin()->second;
		bool unused = chunk.segments.size() == 1 && !first.used && !first.freed;
		if (!unused || held_ - chunk.bytes < keep) {
			++at;
			continue;
		}
		hold(-static_cast<std::int64_t>(chunk.bytes));
		device.arena.give(address);
		at = chunks_.erase(at);
	}
}

void Pool::synchronized() { trim(threshold_); }

void Pool::destroy() {
	destroyed_ = true;
	trim(0);
}

void Pool::abandon() {
	destroyed_ = true;
	for (const auto &[address, _] : chunks_)
		device.arena.give(address);
	chunks_.clear();
	held_ = used_ = 0;
}

void Pool::hold(std::int64_t bytes) {
	held_ += static_cast<std::uint64_t>(bytes);
	high_held_ = std::max(high_held_, held_);
}

void Pool::use(std::int64_t bytes) {
	used_ += static_cast<std::uint64_t>(bytes);
	high_used_ = std::max(high_used_, used_);
}

std::uint64_t Pool::get(PoolAttribute attribute) const {
	switch (attribute) {
	case reuse_follow_event_dependencies:
		return follow_;
	case reuse_allow_opportunistic:
		return opportunistic_;
	case reuse_allow_internal_dependencies:
		return internal_;
	case release_threshold:
		return threshold_;
	case reserved_current:
		return held_;
	case reserved_high:
		return high_held_;
	case used_current:
		return used_;
	case used_high:
		return high_used_;
	}
	refuse(invalid_value);
}

void Pool::set(PoolAttribute attribute, std::uint64_t value) {
	switch (attribute) {
	case reuse_follow_event_dependencies:
		follow_ = value != 0;
		return;
	case reuse_allow_opportunistic:
		opportunistic_ = value != 0;
		return;
	case reuse_allow_internal_dependencies:
		internal_ = value != 0;
		return;
	case release_threshold:
		threshold_ = value;
		return;
	case reserved_high:
		require(value == 0, invalid_value);
		high_held_ = held_;
		return;
	case used_high:
		require(value == 0, invalid_value);
		high_used_ = used_;
		return;
	default:
		refuse(invalid_value);
	}
}

void Pool::allow(int ordinal, bool access) {
	if (access)
		peers_.insert(ordinal);
	else
		peers_.erase(ordinal);
}

namespace {

// is_flag says whether the attribute's value is an int; the others are 64 bits.
bool is_flag(int attribute) { return attribute <= reuse_allow_internal_dependencies; }

PoolPtr find_pool(PoolHandle handle) {
	auto pool = simulator().pools.find(handle);
	if (!pool)
		misuse(format("%p is no memory pool", static_cast<void *>(handle)));
	require(pool != nullptr, invalid_handle);
	pool->device.require_alive();
	return pool;
}

PoolHandle handle_of(const PoolPtr &pool) {
	for (const auto &[handle, other] : simulator().pools)
		if (other == pool)
			return handle;
	refuse(invalid_value);
}

// pool_of answers the device's current pool; its default one is made at need.
PoolPtr pool_of(Device &device) {
	if (!device.default_pool) {
		device.default_pool = std::make_shared<Pool>(device, 0);
		simulator().pools.add(device.default_pool);
	}
	if (!device.current_pool)
		device.current_pool = device.default_pool;
	return device.current_pool;
}

void allocate_from(const char *function, const PoolPtr &pool, StreamHandle handle, std::size_t bytes, DevicePtr *address) {
	auto stream = find_stream(handle);
	require(&pool->device == &stream->device, invalid_value);
	stream->require_not_capturing();
	answer(address, pool->allocate(stream, bytes, function)->address);
}

} // namespace

} // namespace simcuda

using namespace simcuda;

SIM_API Result cuMemPoolCreate(PoolHandle *handle, const PoolProperties *properties) {
	return api("cuMemPoolCreate", [&](Lock &) {
		require(handle && properties && properties->allocation_type == allocation_pinned &&
			properties->location.type == location_device, invalid_value);
		auto &device = device_at(properties->location.id);
		device.require_alive();
		answer(handle, simulator().pools.add(std::make_shared<Pool>(device, properties->maximum_size)));
	});
}

SIM_API Result cuMemPoolDestroy(PoolHandle handle) {
	return api("cuMemPoolDestroy", [&](Lock &) {
		auto pool = simulator().pools.find(handle);
		require(pool != nullptr && pool != pool->device.default_pool, invalid_value);
		simulator().pools.remove(handle);
		if (pool->device.current_pool == pool)
			pool->device.current_pool = nullptr;
		pool->destroy();
		pool->device.require_alive();
	});
}

SIM_API Result cuMemPoolTrimTo(PoolHandle handle, std::size_t keep) {
	return api("cuMemPoolTrimTo", [&](Lock &) { find_pool(handle)->trim(keep); });
}

SIM_API Result cuMemPoolGetAttribute(PoolHandle handle, PoolAttribute attribute, void *value) {
	return api("cuMemPoolGetAttribute", [&](Lock &) {
		auto number = find_pool(handle)->get(attribute);
		if (is_flag(attribute))
			answer(static_cast<int *>(value), number);
		else
			answer(static_cast<std::uint64_t *>(value), number);
	});
}

SIM_API Result cuMemPoolSetAttribute(PoolHandle handle, PoolAttribute attribute, const void *value) {
	return api("cuMemPoolSetAttribute", [&](Lock &) {
		auto pool = find_pool(handle);
		require(value != nullptr, invalid_value);
		pool->set(attribute, is_flag(attribute) ? static_cast<std::uint64_t>(*static_cast<const int *>(value))
							: *static_cast<const std::uint64_t *>(value));
	});
}

SIM_API Result cuMemPoolSetAccess(PoolHandle handle, const AccessDescription *descriptions, std::size_t count) {
	return api("cuMemPoolSetAccess", [&](Lock &) {
		auto pool = find_pool(handle);
		require(descriptions != nullptr || count == 0, invalid_value);
		for (const auto &description : std::span(descriptions, count)) {
			require(description.location.type == location_device, invalid_value);
			device_at(description.location.id);
			pool->allow(description.location.id, description.flags == access_read_write);
		}
	});
}

SIM_API Result cuMemPoolGetAccess(AccessFlags *flags, PoolHandle handle, const Location *location) {
	return api("cuMemPoolGetAccess", [&](Lock &) {
		auto pool = find_pool(handle);
		require(location && location->type == location_device, invalid_value);
		bool own = &device_at(location->id) == &pool->device;
		answer(flags, own || pool->allows(location->id) ? access_read_write : access_none);
	});
}

SIM_API Result cuDeviceGetDefaultMemPool(PoolHandle *handle, DeviceOrdinal ordinal) {
	return api("cuDeviceGetDefaultMemPool", [&](Lock &) {
		auto &device = device_at(ordinal);
		pool_of(device);
		answer(handle, handle_of(device.default_pool));
	});
}

SIM_API Result cuDeviceGetMemPool(PoolHandle *handle, DeviceOrdinal ordinal) {
	return api("cuDeviceGetMemPool", [&](Lock &) { answer(handle, handle_of(pool_of(device_at(ordinal)))); });
}

SIM_API Result cuDeviceSetMemPool(DeviceOrdinal ordinal, PoolHandle handle) {
	return api("cuDeviceSetMemPool", [&](Lock &) {
		auto &device = device_at(ordinal);
		auto pool = find_pool(handle);
		require(&pool->device == &device, invalid_value);
		device.current_pool = pool;
	});
}

SIM_API Result cuMemAllocFromPoolAsync(DevicePtr *address, std::size_t bytes, PoolHandle pool, StreamHandle stream) {
	return api("cuMemAllocFromPoolAsync",
		[&](Lock &) { allocate_from("cuMemAllocFromPoolAsync", find_pool(pool), stream, bytes, address); });
}

SIM_API Result cuMemAllocAsync(DevicePtr *address, std::size_t bytes, StreamHandle handle) {
	return api("cuMemAllocAsync", [&](Lock &) {
		auto &device = find_stream(handle)->device;
		allocate_from("cuMemAllocAsync", pool_of(device), handle, bytes, address);
	});
}

SIM_API Result cuMemFreeAsync(DevicePtr address, StreamHandle handle) {
	return api("cuMemFreeAsync", [&](Lock &) {
		auto stream = find_stream(handle);
		auto block = find_block({address, 1});
		if (!block || block->address != address || !block->pool)
			misuse(format("cuMemFreeAsync: %#llx is no allocation of a pool, or was freed before", address));
		require(block && block->address == address && block->pool, invalid_value);
		require(&block->pool->device == &stream->device, invalid_value);
		stream->require_not_capturing();
		block->pool->free(block, stream, "cuMemFreeAsync");
	});
}
