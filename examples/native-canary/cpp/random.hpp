// Random numbers by counter: number i of a seed is the same wherever it is asked for.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define KC_EVERYWHERE __host__ __device__
#else
#define KC_EVERYWHERE
#endif

namespace kc {

KC_EVERYWHERE inline uint64_t random_bits(uint64_t seed, uint64_t i) {
	// The finaliser of splitmix64, twice, so that seeds that are close have nothing in
	// common.
	const auto mix = [](uint64_t z) {
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		return z ^ (z >> 31);
	};
	return mix(mix(seed + 0x9e3779b97f4a7c15u) + (i + 1) * 0x9e3779b97f4a7c15u);
}

// random_unit is uniform in [0, 1).
KC_EVERYWHERE inline double random_unit(uint64_t seed, uint64_t i) {
	return static_cast<double>(random_bits(seed, i) >> 11) * 0x1p-53;
}

} // namespace kc
