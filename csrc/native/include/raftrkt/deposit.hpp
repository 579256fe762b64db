// Filling a deposit.
#pragma once

#include "raftrkt/deposit.h"
#include "raftrkt/view.hpp"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace raftrkt {

// region describes a vector or a matrix with canonical strides, for an element type
// among the four. Where it lies is looked up when it is deposited.
template <element_type T> rr_view region(T *data, int64_t n) noexcept {
	rr_view view{};
	view.data = data;
	view.dtype = dtype_code<T>;
	view.memory = view.device = -1;
	view.rank = 1;
	view.shape[0] = n;
	view.strides[0] = 1;
	return view;
}
template <element_type T> rr_view region(T *data, int64_t rows, int64_t cols, layout l) noexcept {
	auto view = region(data, rows);
	view.rank = 2;
	view.shape[1] = cols;
	view.strides[0] = l == layout::row_major ? cols : 1;
	view.strides[1] = l == layout::row_major ? 1 : rows;
	return view;
}
// A container with data and size: rmm::device_uvector, or std::vector on the host
// flavour.
template <class V>
	requires element_type<std::remove_pointer_t<decltype(std::declval<V &>().data())>>
rr_view region(V &v) noexcept {
	return region(v.data(), static_cast<int64_t>(v.size()));
}

namespace detail {

// deposit_claim holds an open record in the state filling. Unless commit filled it,
// it is open again at the end of the claim, or closed if it was closed meanwhile.
class deposit_claim {
public:
	deposit_claim(rr_deposit *into, const char *name) : into_(*into), name_(name) {
		int32_t seen = RR_DEPOSIT_OPEN;
		if (state().compare_exchange_strong(seen, RR_DEPOSIT_FILLING, std::memory_order_acq_rel)) return;
		switch (seen) {
		case RR_DEPOSIT_FILLING: refuse(name, "being filled");
		case RR_DEPOSIT_FILLED: refuse(name, "already filled");
		case RR_DEPOSIT_CLOSED: refuse(name, "closed");
		default: refuse(name, "no deposit: its state is " + std::to_string(seen));
		}
	}
	~deposit_claim() { leave(RR_DEPOSIT_OPEN); }
	deposit_claim(const deposit_claim &) = delete;
	deposit_claim &operator=(const deposit_claim &) = delete;

	// commit fills the record. If that was closed meanwhile its fields are as before,
	// and it throws.
	void commit(void *owner, rr_release_fn release, const rr_view *regions, int32_t count) {
		rr_view before[RR_MAX_REGIONS];
		const auto old_owner = into_.owner;
		const auto old_release = into_.release;
		const auto old_count = into_.count;
		std::copy_n(into_.regions, count, before);
		into_.owner = owner;
		into_.release = release;
		into_.count = count;
		std::copy_n(regions, count, into_.regions);
		if (leave(RR_DEPOSIT_FILLED)) return;
		into_.owner = old_owner;
		into_.release = old_release;
		into_.count = old_count;
		std::copy_n(before, count, into_.regions);
		refuse(name_, "closed");
	}

private:
	std::atomic_ref<int32_t> state() noexcept {
		static_assert(std::atomic_ref<int32_t>::is_always_lock_free);
		return std::atomic_ref<int32_t>(into_.state);
	}
	// leave ends the claim, and says whether the record was still claimed.
	bool leave(int32_t next) noexcept {
		int32_t seen = RR_DEPOSIT_FILLING;
		if (left_) return false;
		left_ = true;
		return state().compare_exchange_strong(seen, next, std::memory_order_acq_rel);
	}

	rr_deposit &into_;
	const char *name_;
	bool left_ = false;
};

// region_bytes checks what a region is, apart from the others.
inline int64_t region_bytes(const rr_view &view, const char *name, std::size_t number) {
	const auto refuse_region = [&](const std::string &why) {
		refuse(name, "region " + std::to_string(number) + ": " + why);
	};
	if (view.rank != 1 && view.rank != 2)
		refuse_region("expected rank 1 or 2, got " + std::to_string(view.rank));
	const auto size = dtype_size(view.dtype);
	if (size == 0) refuse_region("expected float32, float64, int32 or int64, got " + dtype_name(view.dtype));
	for (int32_t axis = 0; axis < view.rank; axis++)
		if (view.shape[axis] < 0)
			refuse_region("expected no negative extent, got " + shape_text(view));
	int64_t elements, bytes = 0, end;
	const auto address = reinterpret_cast<intptr_t>(view.data);
	if (!element_count(view, elements) || __builtin_mul_overflow(elements, size, &bytes) ||
	    __builtin_add_overflow(address, bytes, &end))
		refuse_region("the bytes of " + shape_text(view) + " " + dtype_name(view.dtype) + " overflow");
	if (!has_layout(view, layout::row_major) && !has_layout(view, layout::col_major))
		refuse_region("expected row-major or col-major, got strides " + strides_text(view) + " " + shape_text(view));
	if (bytes != 0 && !view.data) refuse_region("no data");
	if (address % size != 0)
		refuse_region("misaligned: the address is no multiple of " + std::to_string(size));
	return bytes;
}

} // namespace detail

// deposit fills the record with regions of memory that owner frees. The regions' work
// must be done, or queued on the handle's stream and synchronised before the call
// returns. It refuses (logic_error), in this order:
//
//	a record that is NULL, or not open
//	a record on other resources than the handle's
//	no owner, more than 8 regions
//	a region of another rank or element type, with a negative extent, a size that
//	overflows, another layout, no data or misaligned data
//	regions that overlap
//	memory that is not on the record's device
//
// and, at the end, a record that was closed meanwhile. A refusal leaves the owner to
// the caller and the record as it was; after success both are the runtime's, which
// frees the owner once, on any thread, as its unique_ptr would. The deleter must have
// no state. Of two threads that fill one record, one is refused.
template <class Owner, class Deleter>
void deposit(rr_deposit *into, const char *name, const handle_t &handle, std::unique_ptr<Owner, Deleter> &&owner,
             std::initializer_list<rr_view> regions) {
	static_assert(std::is_empty_v<Deleter> && std::is_default_constructible_v<Deleter>);
	static_assert(!std::is_array_v<Owner>);
	require(into, name);
	detail::deposit_claim claim(into, name);

	if (into->handle != &handle) detail::refuse(name, "on resources other than the call's");
	if (!owner) detail::refuse(name, "no owner");
	if (regions.size() > RR_MAX_REGIONS)
		detail::refuse(name, std::to_string(regions.size()) + " regions; a deposit holds at most " +
		                         std::to_string(RR_MAX_REGIONS));
	rr_view views[RR_MAX_REGIONS]{};
	int64_t bytes[RR_MAX_REGIONS]{};
	std::copy(regions.begin(), regions.end(), views);
	for (std::size_t i = 0; i < regions.size(); i++) bytes[i] = detail::region_bytes(views[i], name, i);

	for (std::size_t i = 0; i < regions.size(); i++)
		for (std::size_t j = 0; j < i; j++) {
			const auto a = reinterpret_cast<intptr_t>(views[j].data), b = reinterpret_cast<intptr_t>(views[i].data);
			if (bytes[i] && bytes[j] && a < b + bytes[i] && b < a + bytes[j])
				detail::refuse(name, "regions " + std::to_string(j) + " and " + std::to_string(i) + " overlap");
		}

	for (std::size_t i = 0; i < regions.size(); i++) {
		flavour::place place{-1, -1};
		if (bytes[i])
			cuda_check(flavour::place_of(views[i].data, place), "cudaPointerGetAttributes");
		else
			place = {flavour::own_memory, into->device};
		if (place.device != into->device || !flavour::usable(place.memory))
			detail::refuse(name, "region " + std::to_string(i) + ": not in memory of device " +
			                         std::to_string(into->device));
		views[i].memory = place.memory;
		views[i].device = place.device;
	}

	claim.commit(owner.get(), [](void *p) { Deleter{}(static_cast<Owner *>(p)); }, views,
	             static_cast<int32_t>(regions.size()));
	(void)owner.release();
}

} // namespace raftrkt
