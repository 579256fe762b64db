// Stream-ordered memory pools, with the rules of reuse that CUDA documents.
//
// A pool takes chunks from its device and cuts them into segments. A segment
// that was freed in a stream serves that stream at once, a stream that is
// ordered behind the free, anybody once the free is done, and (if nothing else
// is left) anybody who is made to wait for it.
#pragma once

#include "stream.h"

#include <map>
#include <set>

namespace simcuda {

class Pool : public std::enable_shared_from_this<Pool> {
public:
	Pool(Device &device, std::size_t limit) : device(device), limit_(limit) {}
	Pool(const Pool &) = delete;
	Pool &operator=(const Pool &) = delete;
	~Pool() { abandon(); }

	Device &device;

	// allocate answers memory for work of the stream; it refuses with
	// out_of_memory.
	BlockPtr allocate(const StreamPtr &stream, std::size_t bytes, const char *what);
	// free gives the block back at the stream's tail.
	void free(const BlockPtr &block, const StreamPtr &stream, const char *what);
	// free_now gives back a block that nothing uses.
	void free_now(const BlockPtr &block);

	// settle makes memory whose free is done free for everybody.
	void settle();
	// trim gives unused chunks back while at least keep bytes stay.
	void trim(std::uint64_t keep);
	// synchronized does what a synchronisation does to a pool.
	void synchronized();
	// destroy gives everything back, some of it when it is no longer used.
	void destroy();

	// abandon gives everything back, whatever uses it.
	void abandon();

	std::uint64_t get(PoolAttribute attribute) const;
	void set(PoolAttribute attribute, std::uint64_t value);

	void allow(int ordinal, bool access);
	bool allows(int ordinal) const { return peers_.contains(ordinal); }

	static constexpr std::size_t chunk_bytes = 32 << 20;
	static constexpr std::size_t segment_bytes = 512;

private:
	struct Segment {
		std::size_t bytes;
		bool used;
		RecordPtr freed; // the free that is not known to be done; null: settled
	};
	struct Chunk {
		std::size_t bytes;
		std::map<DevicePtr, Segment> segments;
	};
	struct Place {
		Chunk *chunk = nullptr;
		DevicePtr address = 0;
	};

	bool usable(const Segment &segment, const Stream &stream) const;
	void merge(Chunk &chunk);
	Place find(std::size_t bytes, const std::function<bool(const Segment &)> &fits);
	Place grow(std::size_t bytes);
	Segment &segment_of(const BlockPtr &block);
	void hold(std::int64_t bytes);
	void use(std::int64_t bytes);

	std::map<DevicePtr, Chunk> chunks_;
	std::set<int> peers_;
	std::size_t limit_; // 0: none
	std::uint64_t threshold_ = 0;
	std::uint64_t held_ = 0, used_ = 0, high_held_ = 0, high_used_ = 0;
	bool follow_ = true, opportunistic_ = true, internal_ = true;
	bool destroyed_ = false;
};
using PoolPtr = std::shared_ptr<Pool>;

} // namespace simcuda
