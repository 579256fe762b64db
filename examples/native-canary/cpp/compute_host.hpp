// What k-means computes with, without CUDA. compute_raft.cuh has the same on RAFT.
#pragma once

#include "random.hpp"

#include <raftrkt/view.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

namespace kc {

using handle_t = raftrkt::handle_t;

// buffer is memory of the device's, whose contents resize may lose.
template <class T> using buffer = std::vector<T>;
template <class T> buffer<T> make_buffer(const handle_t &, int64_t n) { return buffer<T>(static_cast<std::size_t>(n)); }
template <class T> void resize(const handle_t &, buffer<T> &b, int64_t n) { b.resize(static_cast<std::size_t>(n)); }
template <class T> void copy(const handle_t &, T *to, const T *from, int64_t n) {
	std::copy_n(from, static_cast<std::size_t>(n), to);
}

// matrix is rows of an array, row-major, with a weight each; no weights are 1 each.
template <class T> struct matrix {
	const T *data;
	int64_t rows, cols;
	const T *weights;
	double scale = 1; // of the weights

	double weight(int64_t row) const { return scale * (weights ? static_cast<double>(weights[row]) : 1.0); }
};

template <class T> double sum(const handle_t &, const T *values, int64_t n) {
	return std::accumulate(values, values + n, 0.0);
}

// nearness keeps for each row of a matrix the nearest of the centroids seen so far,
// and its squared distance.
template <class T> class nearness {
public:
	nearness(const handle_t &, const matrix<T> &x)
		: x_(x), label_(static_cast<std::size_t>(x.rows)), distance_(static_cast<std::size_t>(x.rows)) {}

	// reset forgets the centroids; every row is at this distance.
	void reset(T distance) { std::fill(distance_.begin(), distance_.end(), distance); }

	// see looks at count centroids, which are numbered from first.
	void see(const T *centroids, int64_t count, int32_t first) {
		// Transposed, so that the innermost loop is over centroids.
		std::vector<T> transposed(static_cast<std::size_t>(count * x_.cols)), distance(static_cast<std::size_t>(count));
		for (int64_t c = 0; c < count; c++)
			for (int64_t j = 0; j < x_.cols; j++) transposed[at(j * count + c)] = centroids[c * x_.cols + j];
		for (int64_t i = 0; i < x_.rows; i++) {
			std::fill(distance.begin(), distance.end(), T(0));
			for (int64_t j = 0; j < x_.cols; j++) {
				const T value = x_.data[i * x_.cols + j];
				const T *column = &transposed[at(j * count)];
				for (int64_t c = 0; c < count; c++) {
					const T difference = value - column[c];
					distance[at(c)] += difference * difference;
				}
			}
			const auto nearest = std::min_element(distance.begin(), distance.end());
			if (*nearest < distance_[at(i)]) {
				distance_[at(i)] = *nearest;
				label_[at(i)] = first + static_cast<int32_t>(nearest - distance.begin());
			}
		}
	}

	// cost is the weighted sum of the distances.
	double cost() const {
		double total = 0;
		for (int64_t i = 0; i < x_.rows; i++) total += share(i);
		return total;
	}

	// draw answers the row in which the running sum of the cost passes the fraction u
	// of it.
	int64_t draw(double u) const {
		const double target = u * cost();
		double running = 0;
		for (int64_t i = 0; i < x_.rows; i++)
			if ((running += share(i)) > target) return i;
		return static_cast<int64_t>(u * static_cast<double>(x_.rows)); // no row costs anything
	}

	// sample answers the rows that are drawn each with the probability factor times
	// its part of the cost.
	std::vector<int64_t> sample(double factor, uint64_t seed) const {
		const double total = cost();
		std::vector<int64_t> rows;
		for (int64_t i = 0; i < x_.rows; i++)
			if (random_unit(seed, static_cast<uint64_t>(i)) * total < factor * share(i)) rows.push_back(i);
		return rows;
	}

	// weigh writes how much weight each of count centroids has.
	void weigh(T *weights, int64_t count) const {
		std::vector<double> total(static_cast<std::size_t>(count));
		for (int64_t i = 0; i < x_.rows; i++) total[at(label_[at(i)])] += x_.weight(i);
		std::transform(total.begin(), total.end(), weights, [](double w) { return static_cast<T>(w); });
	}

	// move moves centroids to the means of the rows that are nearest to them, and
	// answers the squared shift. One that has no rows stays.
	double move(T *centroids, int64_t count) const {
		std::vector<double> means(static_cast<std::size_t>(count * x_.cols)), total(static_cast<std::size_t>(count));
		for (int64_t i = 0; i < x_.rows; i++) {
			const auto label = label_[at(i)];
			const double weight = x_.weight(i);
			total[at(label)] += weight;
			for (int64_t j = 0; j < x_.cols; j++)
				means[at(label * x_.cols + j)] += weight * static_cast<double>(x_.data[i * x_.cols + j]);
		}
		double shift = 0;
		for (int64_t c = 0; c < count; c++)
			for (int64_t j = 0; j < x_.cols && total[at(c)] > 0; j++) {
				T &old = centroids[c * x_.cols + j];
				const auto now = static_cast<T>(means[at(c * x_.cols + j)] / total[at(c)]);
				shift += (static_cast<double>(now) - static_cast<double>(old)) * (static_cast<double>(now) - static_cast<double>(old));
				old = now;
			}
		return shift;
	}

	const int32_t *labels() const { return label_.data(); }

private:
	static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
	double share(int64_t row) const { return x_.weight(row) * static_cast<double>(distance_[at(row)]); }

	const matrix<T> x_;
	std::vector<int32_t> label_;
	std::vector<T> distance_;
};

template <class T>
void make_blobs(const handle_t &, T *x, int32_t *labels, int64_t n, int64_t d, int32_t clusters, double deviation,
                bool shuffle, double center_min, double center_max, uint64_t seed) {
	const auto center = [&](int64_t cluster, int64_t j) {
		return center_min + (center_max - center_min) * random_unit(seed, static_cast<uint64_t>(cluster * d + j));
	};
	for (int64_t i = 0; i < n; i++) labels[i] = static_cast<int32_t>(i % clusters);
	if (shuffle)
		for (int64_t i = n - 1; i > 0; i--)
			std::swap(labels[i], labels[random_bits(seed + 1, static_cast<uint64_t>(i)) % static_cast<uint64_t>(i + 1)]);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < d; j++) {
			// Box and Muller's transform.
			const auto at = 2 * static_cast<uint64_t>(i * d + j);
			const double radius = std::sqrt(-2 * std::log(1 - random_unit(seed + 2, at)));
			const double normal = radius * std::cos(2 * std::numbers::pi * random_unit(seed + 2, at + 1));
			x[i * d + j] = static_cast<T>(center(labels[i], j) + deviation * normal);
		}
}

// members is the owner of a deposit: a cluster's rows.
template <class T> struct members {
	explicit members(int on) : device(on) {}

	// find looks for the rows of the cluster and answers how many there are.
	int64_t find(const handle_t &, const T *x, const int32_t *labels, int64_t n, int64_t d, int32_t cluster) {
		indices.clear();
		rows.clear();
		for (int64_t i = 0; i < n; i++)
			if (labels[i] == cluster) {
				indices.push_back(i);
				rows.insert(rows.end(), x + i * d, x + (i + 1) * d);
			}
		return static_cast<int64_t>(indices.size());
	}
	void rest() noexcept {}

	const int device;
	buffer<int64_t> indices;
	buffer<T> rows;
};

} // namespace kc
