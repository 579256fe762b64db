// k-means, in terms of what a flavour computes with.
#pragma once

#ifdef RAFTRKT_HOST
#include "compute_host.hpp"
#else
#include "compute_raft.cuh"
#endif

#include "canary.h"

#include <limits>
#include <unordered_set>

namespace kc {

struct fit_options {
	int32_t init;
	int32_t max_iter;
	double tol;
	int32_t n_init;
	double oversampling;
	uint64_t seed;
};

struct fit_result {
	double inertia;
	int32_t n_iter;
};

// drawn_far_apart is k-means++ (Arthur and Vassilvitskii, 2007): each centroid is a
// row, drawn in proportion to its weighted squared distance from those before.
template <class T>
void draw_far_apart(const handle_t &handle, const matrix<T> &x, T *centroids, int64_t k, uint64_t seed) {
	nearness<T> near(handle, x);
	near.reset(T(1)); // the first is drawn by weight alone
	for (int64_t c = 0; c < k; c++) {
		T *centroid = centroids + c * x.cols;
		copy(handle, centroid, x.data + near.draw(random_unit(seed, static_cast<uint64_t>(c))) * x.cols, x.cols);
		if (c == 0) near.reset(std::numeric_limits<T>::infinity());
		near.see(centroid, 1, static_cast<int32_t>(c));
	}
}

// draw_oversampled is k-means|| (Bahmani and others, 2012): a few rounds draw about
// oversampling * k rows each; k-means++ chooses among them, by the weight of the rows
// that are nearest to each.
template <class T>
void draw_oversampled(const handle_t &handle, const matrix<T> &x, T *centroids, int64_t k, double oversampling,
                      uint64_t seed) {
	constexpr int rounds = 5;
	nearness<T> near(handle, x);
	near.reset(T(1));
	auto candidates = make_buffer<T>(handle, 0);
	int64_t count = 0;
	const auto add = [&](const std::vector<int64_t> &rows) {
		const auto more = count + static_cast<int64_t>(rows.size());
		auto all = make_buffer<T>(handle, more * x.cols);
		copy(handle, all.data(), candidates.data(), count * x.cols);
		auto *to = all.data() + count * x.cols;
		for (auto row : rows) copy(handle, std::exchange(to, to + x.cols), x.data + row * x.cols, x.cols);
		std::swap(candidates, all);
		if (!rows.empty())
			near.see(candidates.data() + count * x.cols, more - count, static_cast<int32_t>(count));
		count = more;
	};
	const auto first = near.draw(random_unit(seed, 0));
	near.reset(std::numeric_limits<T>::infinity());
	add({first});
	for (int round = 1; round <= rounds; round++)
		add(near.sample(oversampling * static_cast<double>(k), random_bits(seed, static_cast<uint64_t>(round))));
	if (count < k) { // too few were drawn
		draw_far_apart(handle, x, centroids, k, seed);
		return;
	}
	auto weights = make_buffer<T>(handle, count);
	near.weigh(weights.data(), count);
	draw_far_apart(handle, matrix<T>{candidates.data(), count, x.cols, weights.data()}, centroids, k, seed);
}

// draw_rows draws any k rows, no row twice (Floyd's algorithm).
template <class T> void draw_rows(const handle_t &handle, const matrix<T> &x, T *centroids, int64_t k, uint64_t seed) {
	std::unordered_set<int64_t> drawn;
	for (int64_t c = 0; c < k; c++) {
		const auto last = x.rows - k + c;
		auto row = static_cast<int64_t>(random_bits(seed, static_cast<uint64_t>(c)) % static_cast<uint64_t>(last + 1));
		if (!drawn.insert(row).second) drawn.insert(row = last);
		copy(handle, centroids + c * x.cols, x.data + row * x.cols, x.cols);
	}
}

// fit writes the centroids of the best run.
template <class T>
fit_result fit(const handle_t &handle, const matrix<T> &x, T *centroids, int64_t k, const fit_options &options) {
	nearness<T> near(handle, x);
	const auto look = [&](const T *at) {
		near.reset(std::numeric_limits<T>::infinity());
		near.see(at, k, 0);
	};
	fit_result best{std::numeric_limits<double>::infinity(), 0};
	auto current = make_buffer<T>(handle, k * x.cols);
	const int32_t runs = options.init == KC_INIT_GIVEN ? 1 : options.n_init;
	for (int32_t run = 0; run < runs; run++) {
		const auto seed = random_bits(options.seed, static_cast<uint64_t>(run));
		if (options.init == KC_INIT_GIVEN)
			copy<T>(handle, current.data(), centroids, k * x.cols);
		else if (options.init == KC_INIT_RANDOM)
			draw_rows(handle, x, current.data(), k, seed);
		else if (options.oversampling > 0)
			draw_oversampled(handle, x, current.data(), k, options.oversampling, seed);
		else
			draw_far_apart(handle, x, current.data(), k, seed);

		fit_result result{0, 0};
		while (result.n_iter < options.max_iter) {
			result.n_iter++;
			look(current.data());
			if (near.move(current.data(), k) <= options.tol) break;
		}
		look(current.data());
		result.inertia = near.cost();
		if (run > 0 && !(result.inertia < best.inertia)) continue;
		best = result;
		copy<T>(handle, centroids, current.data(), k * x.cols);
	}
	return best;
}

// predict writes the number of each row's nearest centroid, and answers the inertia.
template <class T>
double predict(const handle_t &handle, const matrix<T> &x, const T *centroids, int64_t k, int32_t *labels) {
	nearness<T> near(handle, x);
	near.reset(std::numeric_limits<T>::infinity());
	near.see(centroids, k, 0);
	copy(handle, labels, near.labels(), x.rows);
	return near.cost();
}

} // namespace kc
