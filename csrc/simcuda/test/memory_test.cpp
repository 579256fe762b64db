#include "fixture.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace {

// touchable asks the system whether the process may read a byte.
bool touchable(DevicePtr address) {
	int ends[2];
	CHECK(pipe(ends) == 0);
	auto written = write(ends[1], reinterpret_cast<const void *>(address), 1);
	CHECK(written == 1 || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return written == 1;
}

constexpr std::size_t block = 48 << 20, limit = 64 << 20;

void drain(StreamHandle s) { OK(cuStreamSynchronize(s)); }

} // namespace

TEST("the processor cannot touch device memory") {
	use(0);
	CHECK(!touchable(allocate(64)));
	auto s = stream();
	CHECK(!touchable(take(pool(), s, 64)));
}

TEST("page-locked memory can be touched until it is freed") {
	use(0);
	void *memory{};
	OK(cuMemHostAlloc(&memory, 64, 0));
	auto address = reinterpret_cast<DevicePtr>(memory);
	CHECK(touchable(address));
	OK(cuMemFreeHost(memory));
	CHECK(!touchable(address));
	EQUAL(cuMemFreeHost(memory), invalid_value);
	auto s = stream();
	EQUAL(cuMemcpyAsync(allocate(64), address, 64, s), invalid_value);
	EQUAL(weir_sim_misuse(nullptr, 0), 2);
}

TEST("new memory is poison") {
	use(0);
	auto s = stream();
	for (auto p : {allocate(16), take(pool(), s, 16)}) {
		auto bytes = get<unsigned char>(p, 16, s);
		CHECK(std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == 0xFB; }));
	}
}

TEST("memory freed in a stream is poison for whom no event orders") {
	use(0);
	auto s = stream();
	auto p = pool(limit);
	auto large = take(p, s, 4 << 20);
	OK(cuMemsetD8Async(large, 1, 4 << 20, s));
	OK(cuMemFreeAsync(large, s));
	auto again = take(p, s, 4 << 20);
	CHECK(again == large);
	EQUAL(static_cast<int>(get<unsigned char>(again + (3 << 20), 1, s)[0]), 0xFB);
}

TEST("plain memory that is copied is captured, and waited for") {
	use(0);
	auto s = stream();
	auto p = allocate(8);
	auto stall = weir_sim_stall(s);
	std::vector<std::int64_t> values{3};
	put(p, values, s);
	values[0] = 4;
	weir_sim_release(stall);
	EQUAL(get<std::int64_t>(p, 1, s)[0], 3);
}

TEST("sizes that no device has are out of memory") {
	use(0);
	auto s = stream();
	DevicePtr p{};
	void *host{};
	for (std::size_t bytes : {std::size_t{1} << 62, SIZE_MAX}) {
		EQUAL(cuMemAlloc_v2(&p, bytes), out_of_memory);
		EQUAL(cuMemHostAlloc(&host, bytes, 0), out_of_memory);
		EQUAL(cuMemAllocFromPoolAsync(&p, bytes, pool(), s), out_of_memory);
	}
	EQUAL(cuMemAlloc_v2(&p, 0), invalid_value);
}

TEST("a device's memory can be used up and comes back") {
	use(0);
	std::size_t free{}, total{}, again{};
	OK(cuMemGetInfo_v2(&free, &total));
	auto all = allocate(free);
	DevicePtr p{};
	EQUAL(cuMemAlloc_v2(&p, 1), out_of_memory);
	OK(cuMemFree_v2(all));
	OK(cuMemGetInfo_v2(&again, &total));
	EQUAL(again, free);
}

TEST("pointers say what they point to") {
	use(1);
	auto p = allocate(64);
	int ordinal{};
	unsigned type{};
	OK(cuPointerGetAttribute(&ordinal, pointer_device_ordinal, p + 8));
	OK(cuPointerGetAttribute(&type, pointer_memory_type, p));
	EQUAL(ordinal, 1);
	EQUAL(type, memory_type_device);
	int local{};
	EQUAL(cuPointerGetAttribute(&type, pointer_memory_type, reinterpret_cast<DevicePtr>(&local)), invalid_value);
}

TEST("the stream of a free reuses its memory at once") {
	use(0);
	auto s = stream();
	auto p = pool(limit);
	auto stall = weir_sim_stall(s);
	auto first = take(p, s, block);
	OK(cuMemFreeAsync(first, s));
	EQUAL(take(p, s, block), first);
	EQUAL(attribute(p, used_current), block);
	weir_sim_release(stall);
}

TEST("another stream reuses memory when the free is done, or when it is behind it") {
	use(0);
	auto owner = stream(), stranger = stream(), behind = stream();
	auto p = pool(limit);
	int off = 0;
	OK(cuMemPoolSetAttribute(p, reuse_allow_internal_dependencies, &off));
	auto stall = weir_sim_stall(owner);
	auto first = take(p, owner, block);
	OK(cuMemFreeAsync(first, owner));
	DevicePtr got{};
	EQUAL(cuMemAllocFromPoolAsync(&got, block, p, stranger), out_of_memory);
	OK(cuStreamWaitEvent(behind, record(owner), 0));
	EQUAL(take(p, behind, block), first);
	OK(cuMemFreeAsync(first, behind));
	weir_sim_release(stall);
	drain(behind);
	CHECK(take(p, stranger, block) != 0);
}

TEST("internal dependencies make a stream wait for the memory") {
	use(0);
	auto owner = stream(), other = stream();
	auto p = pool(limit);
	auto stall = weir_sim_stall(owner);
	OK(cuMemFreeAsync(take(p, owner, block), owner));
	take(p, other, block);
	EQUAL(cuStreamQuery(other), not_ready);
	weir_sim_release(stall);
	drain(other);
}

TEST("a synchronisation trims a pool to its threshold") {
	use(0);
	auto s = stream();
	auto gives = pool(), keeps = pool();
	std::uint64_t all = UINT64_MAX;
	OK(cuMemPoolSetAttribute(keeps, release_threshold, &all));
	for (auto p : {gives, keeps})
		OK(cuMemFreeAsync(take(p, s, block), s));
	drain(s);
	EQUAL(attribute(gives, reserved_current), 0u);
	EQUAL(attribute(keeps, reserved_current), limit);
	EQUAL(attribute(gives, reserved_high), limit);
	EQUAL(attribute(gives, used_current), 0u);
	OK(cuMemPoolTrimTo(keeps, 0));
	EQUAL(attribute(keeps, reserved_current), 0u);
}

TEST("trimming leaves memory whose free is unfinished") {
	use(0);
	auto s = stream();
	auto p = pool();
	auto stall = weir_sim_stall(s);
	OK(cuMemFreeAsync(take(p, s, block), s));
	OK(cuMemPoolTrimTo(p, 0));
	EQUAL(attribute(p, reserved_current), limit);
	weir_sim_release(stall);
	drain(s);
	EQUAL(attribute(p, reserved_current), 0u);
}

TEST("a destroyed pool gives its memory back after the last free") {
	use(0);
	auto s = stream();
	auto p = pool();
	auto block_of_pool = take(p, s, block);
	OK(cuMemPoolDestroy(p));
	EQUAL(weir_sim_live("byte"), static_cast<long long>(limit));
	OK(cuMemFreeAsync(block_of_pool, s));
	drain(s);
	EQUAL(weir_sim_live("byte"), 0);
}

TEST("blocks of a pool do not overlap") {
	use(0);
	auto s = stream();
	auto p = pool();
	std::vector<std::pair<DevicePtr, unsigned char>> blocks;
	for (int i = 1; i < 40; i++) {
		auto at = take(p, s, static_cast<std::size_t>(i * 300));
		OK(cuMemsetD8Async(at, static_cast<unsigned char>(i), static_cast<std::size_t>(i * 300), s));
		blocks.emplace_back(at, i);
		if (i % 3 == 0) {
			OK(cuMemFreeAsync(blocks.front().first, s));
			blocks.erase(blocks.begin());
		}
	}
	for (auto [at, value] : blocks) {
		auto bytes = get<unsigned char>(at, value * 300u, s);
		CHECK(std::count(bytes.begin(), bytes.end(), value) == static_cast<long>(bytes.size()));
	}
}

TEST("a copy reaches another device's pool where the stream's device has access, and a peer copy anywhere") {
	auto far = use(1);
	auto beyond = stream();
	auto theirs = pool(0, 1);
	auto q = take(theirs, beyond, 64);
	put<std::int64_t>(q, {5}, beyond);
	OK(cuStreamSynchronize(beyond));
	auto near = use(0);
	auto s = stream();
	auto ours = pool();
	auto p = take(ours, s, 64), plain = allocate(64);
	OK(cuStreamSynchronize(s));

	EQUAL(cuMemcpyAsync(p, q, 8, s), invalid_value);
	EQUAL(cuMemcpyAsync(q, p, 8, s), invalid_value);
	EQUAL(cuMemcpyAsync(plain, q, 8, s), invalid_value);
	OK(cuMemcpyPeerAsync(p, near, q, far, 8, s));
	EQUAL(get<std::int64_t>(p, 1, s)[0], 5);
	put<std::int64_t>(p, {6}, s);
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyPeerAsync(q, far, p, near, 8, beyond));
	EQUAL(get<std::int64_t>(q, 1, beyond)[0], 6);
	OK(cuMemcpyAsync(q, plain, 8, beyond)); // plain memory needs no access

	int can = 0;
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	EQUAL(can, 1);
	AccessDescription access{{location_device, 0}, access_read_write};
	OK(cuMemPoolSetAccess(theirs, &access, 1));
	OK(cuMemcpyAsync(p, q, 8, s));
	OK(cuMemcpyAsync(q, p, 8, s));
	EQUAL(cuMemcpyAsync(q, p, 8, beyond), invalid_value); // the other way round
	OK(cuStreamSynchronize(s));
	EQUAL(weir_sim_misuse(nullptr, 0), 0);

	EQUAL(cuMemcpyPeerAsync(p, near, q, near, 8, s), invalid_value);
	CHECK(mentions(misuse_text(), "is not of device 0, which is named"));
	EQUAL(cuMemcpyPeerAsync(p, near, q, nullptr, 8, s), invalid_context);
}
