// Handles. A handle is an address in a reserved part of the address space that
// nothing is mapped in, and is never given out twice: a destroyed handle is
// found out, a dereferenced one faults, and no other pointer looks like one.
#pragma once

#include "refusal.h"

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace simcuda {

// new_handle answers the next address of the reserved part. The simulator's
// mutex is held.
SIM_SHARED std::uintptr_t new_handle();

// HandleTable maps handles to the objects that they stand for. The simulator's
// mutex guards it.
template <class Handle, class Object> class HandleTable {
public:
	Handle add(std::shared_ptr<Object> object) {
		auto handle = reinterpret_cast<Handle>(new_handle());
		objects_.emplace(handle, std::move(object));
		return handle;
	}

	// find answers the object, or null for a handle that is not live.
	std::shared_ptr<Object> find(Handle handle) const {
		auto at = objects_.find(handle);
		return at == objects_.end() ? nullptr : at->second;
	}

	// remove forgets the handle and answers its object, or null.
	std::shared_ptr<Object> remove(Handle handle) {
		auto at = objects_.find(handle);
		if (at == objects_.end())
			return nullptr;
		auto object = std::move(at->second);
		objects_.erase(at);
		return object;
	}

	template <class Predicate> void remove_if(Predicate &&gone) {
		std::erase_if(objects_, [&](const auto &entry) { return gone(*entry.second); });
	}

	std::size_t size() const { return objects_.size(); }
	auto begin() const { return objects_.begin(); }
	auto end() const { return objects_.end(); }

private:
	std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};

} // namespace simcuda
