// Owners of deposited memory, used again rather than allocated for each deposit.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace kc {

// pool lends owners, which come back when the deposit's arrays are freed, on any
// thread. Owner::rest(), which must not throw, is called before an owner is kept for
// the next loan, and Owner(int device) makes one. One pool serves one device. It is
// never destroyed: arrays may outlive whatever runs at exit.
template <class Owner> class pool {
public:
	struct give_back {
		void operator()(Owner *owner) const noexcept { pool::of(owner->device).keep(owner); }
	};
	using loan = std::unique_ptr<Owner, give_back>;

	static loan take(int device) {
		auto &p = of(device);
		{
			std::lock_guard lock(p.mutex_);
			if (!p.idle_.empty()) {
				loan owner(p.idle_.back().release());
				p.idle_.pop_back();
				return owner;
			}
		}
		return loan(new Owner(device));
	}

private:
	static constexpr std::size_t kept = 4; // what more come back are freed

	static pool &of(int device) {
		struct pools {
			std::mutex mutex;
			std::vector<std::unique_ptr<pool>> by_device;
		};
		static pools &all = *new pools;
		std::lock_guard lock(all.mutex);
		const auto index = static_cast<std::size_t>(device);
		if (all.by_device.size() <= index) all.by_device.resize(index + 1);
		auto &p = all.by_device[index];
		if (!p) {
			p = std::make_unique<pool>();
			p->idle_.reserve(kept);
		}
		return *p;
	}

	void keep(Owner *owner) noexcept {
		std::unique_ptr<Owner> back(owner);
		owner->rest();
		std::lock_guard lock(mutex_);
		if (idle_.size() < kept) idle_.push_back(std::move(back));
	}

	std::mutex mutex_;
	std::vector<std::unique_ptr<Owner>> idle_;
};

} // namespace kc
