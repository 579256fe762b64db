#include "memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simcuda {

namespace {

constexpr std::size_t host_bytes = std::size_t{64} << 30; // of addresses, not of memory

void *map(std::size_t bytes, int protection, int flags, int file) {
	void *at = mmap(nullptr, bytes, protection, flags | MAP_NORESERVE, file, 0);
	require(at != MAP_FAILED, out_of_memory);
	return at;
}

void poison_fresh(std::byte *at, std::size_t bytes) { std::fill_n(at, std::min(bytes, fresh_bytes), poison_byte); }

} // namespace

AddressSpace::AddressSpace(std::size_t bytes)
	: bytes_(bytes), base_(reinterpret_cast<DevicePtr>(map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1))),
	  free_{{base_, bytes}} {}

DevicePtr AddressSpace::take(std::size_t bytes) {
	require(bytes <= bytes_, out_of_memory);
	bytes = (bytes + page - 1) / page * page;
	auto hole = std::find_if(free_.begin(), free_.end(), [&](const auto &h) { return h.second >= bytes; });
	require(hole != free_.end(), out_of_memory);
	auto [address, size] = *hole;
	free_.erase(hole);
	if (size > bytes)
		free_.emplace(address + bytes, size - bytes);
	taken_.emplace(address, bytes);
	used_ += bytes;
	return address;
}

std::size_t AddressSpace::give(DevicePtr address) {
	auto bytes = taken_.extract(address).mapped();
	used_ -= bytes;
	auto whole = bytes;
	auto next = free_.lower_bound(address);
	if (next != free_.end() && next->first == address + bytes) {
		whole += next->second;
		next = free_.erase(next);
	}
	if (next != free_.begin()) {
		if (auto before = std::prev(next); before->first + before->second == address) {
			before->second += whole;
			return bytes;
		}
	}
	free_.emplace(address, whole);
	return bytes;
}

Arena::Arena(std::size_t bytes) : space_(bytes), file_(memfd_create("simulated device memory", MFD_CLOEXEC)) {
	require(file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) == 0, out_of_memory);
	alias_ = static_cast<std::byte *>(map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_));
}

void Arena::give(DevicePtr address) {
	auto bytes = space_.give(address);
	fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address - space_.base()),
		static_cast<off_t>(bytes));
}

void Arena::poison(DevicePtr address, std::size_t bytes) const {
	// The file has pages only where something was written.
	auto from = static_cast<off_t>(address - space_.base()), end = from + static_cast<off_t>(bytes);
	while (from < end) {
		off_t data = lseek(file_, from, SEEK_DATA);
		if (data < 0 || data >= end)
			return;
		off_t hole = std::min(lseek(file_, data, SEEK_HOLE), end);
		std::fill(alias_ + data, alias_ + hole, poison_byte);
		from = hole;
	}
}

void Arena::poison_fresh(DevicePtr address, std::size_t bytes) const { simcuda::poison_fresh(at(address), bytes); }

HostMemory::HostMemory() : space_(host_bytes) {}

BlockPtr HostMemory::allocate(Context *context, std::size_t bytes) {
	auto address = space_.take(bytes);
	auto at = reinterpret_cast<std::byte *>(address);
	if (mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
		space_.give(address);
		refuse(out_of_memory);
	}
	poison_fresh(at, bytes);
	return blocks_.emplace(address, std::make_shared<Block>(Block{context, nullptr, nullptr, address, bytes, at})).first->second;
}

void HostMemory::adopt(Context *context, void *at, std::size_t bytes) {
	auto address = reinterpret_cast<DevicePtr>(at);
	auto next = blocks_.lower_bound(address);
	bool overlaps = find(address) || (next != blocks_.end() && next->first - address < bytes);
	require(!overlaps, host_memory_already_registered);
	blocks_.emplace(address,
		std::make_shared<Block>(Block{context, nullptr, nullptr, address, bytes, static_cast<std::byte *>(at)}));
}

void HostMemory::release(const BlockPtr &block) {
	block->live = false;
	auto address = block->address;
	blocks_.erase(address);
	if (allocated(address)) {
		auto bytes = space_.give(address);
		// A new mapping, since the old one would keep its pages.
		mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	}
}

BlockPtr HostMemory::find(DevicePtr address) const {
	auto next = blocks_.upper_bound(address);
	if (next == blocks_.begin())
		return nullptr;
	const auto &block = std::prev(next)->second;
	return address - block->address < block->bytes ? block : nullptr;
}

void HostMemory::release_all(const Context *context) {
	std::vector<BlockPtr> gone;
	for (const auto &[_, block] : blocks_)
		if (block->context == context)
			gone.push_back(block);
	for (const auto &block : gone)
		release(block);
}

} // namespace simcuda
