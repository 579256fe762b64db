// Memory: the address space of a device, and blocks of it.
//
// The addresses that the interface hands out lie in a mapping that nobody may
// touch, so that a host access faults as it would with a GPU behind it. The
// simulator itself works through a second, writable mapping of the same size,
// of a file in memory: it knows which pages were ever written, and forgets them.
#pragma once

#include "refusal.h"

#include <cstddef>
#include <map>
#include <memory>

namespace simcuda {

struct Context;
struct Device;
class Pool;

inline constexpr std::byte poison_byte{0xFB};

// fresh_bytes at the start of a new allocation are poisoned, so that reading
// what was never written shows. Filling large ones would cost more than it shows.
inline constexpr std::size_t fresh_bytes = 1 << 20;

// AddressSpace is a part of the process's address space that is reserved and
// may not be touched, cut into pages. The simulator's mutex guards it.
class AddressSpace {
public:
	explicit AddressSpace(std::size_t bytes);
	AddressSpace(const AddressSpace &) = delete;
	AddressSpace &operator=(const AddressSpace &) = delete;

	// take answers the address of unused pages; it refuses with out_of_memory.
	DevicePtr take(std::size_t bytes);
	// give returns what take answered, and says how many bytes it had taken.
	std::size_t give(DevicePtr address);

	bool contains(DevicePtr address) const { return address >= base_ && address - base_ < bytes_; }
	DevicePtr base() const { return base_; }
	std::size_t bytes() const { return bytes_; }
	std::size_t used() const { return used_; }

	static constexpr std::size_t page = 4096;

private:
	std::size_t bytes_;
	std::size_t used_ = 0;
	DevicePtr base_;
	std::map<DevicePtr, std::size_t> free_;
	std::map<DevicePtr, std::size_t> taken_;
};

// Arena is a device's memory. The simulator's mutex guards it.
class Arena {
public:
	explicit Arena(std::size_t bytes);

	// take answers the address of unused memory, page-aligned; it refuses with
	// out_of_memory. give returns it, and its content is forgotten.
	DevicePtr take(std::size_t bytes) { return space_.take(bytes); }
	void give(DevicePtr address);

	bool contains(DevicePtr address) const { return space_.contains(address); }
	// at is where the simulator reads and writes the byte with that address.
	std::byte *at(DevicePtr address) const { return alias_ + (address - space_.base()); }
	// poison fills memory that was ever written, so that stale reads show.
	void poison(DevicePtr address, std::size_t bytes) const;
	// poison_fresh fills the start of a new allocation.
	void poison_fresh(DevicePtr address, std::size_t bytes) const;

	std::size_t bytes() const { return space_.bytes(); }
	std::size_t used() const { return space_.used(); }

private:
	AddressSpace space_;
	int file_;
	std::byte *alias_;
};

// Block is one allocation, of device memory or of page-locked host memory.
// The simulator's mutex guards what changes.
struct Block {
	Context *context;         // null for memory of a pool
	Device *device;           // null for page-locked memory
	std::shared_ptr<Pool> pool; // null unless a pool's
	DevicePtr address;
	std::size_t bytes;
	std::byte *at; // where the simulator reads and writes it

	// live is true from the allocation's place in its stream to the free's.
	bool live = true;
	// pending counts submitted operations that use the block and have not ended.
	int pending = 0;
};
using BlockPtr = std::shared_ptr<Block>;

// HostMemory is the page-locked memory of the process. The simulator's mutex
// guards it.
class HostMemory {
public:
	HostMemory();

	BlockPtr allocate(Context *context, std::size_t bytes);
	// adopt registers memory that is not the simulator's.
	void adopt(Context *context, void *at, std::size_t bytes);
	// release forgets the block; unless it was adopted, a later access faults.
	void release(const BlockPtr &block);

	// find answers the block that the address lies in, or null.
	BlockPtr find(DevicePtr address) const;
	// allocated says whether the address is, or was, one that allocate answered.
	bool allocated(DevicePtr address) const { return space_.contains(address); }
	void release_all(const Context *context);
	std::size_t count() const { return blocks_.size(); }

private:
	AddressSpace space_;
	std::map<DevicePtr, BlockPtr> blocks_;
};

// Range is memory that an operation uses. Without bytes it is no memory.
struct Range {
	DevicePtr address;
	std::size_t bytes;
};

} // namespace simcuda
