// What k-means computes with, on RAFT: its products, reductions and maps, and Thrust on
// its policy. Every function works on the handle's stream; those that answer a number
// wait for it.
#pragma once

#include "random.hpp"

#include <raftrkt/view.hpp>

#include <raft/core/device_mdspan.hpp>
#include <raft/core/operators.hpp>
#include <raft/core/resource/thrust_policy.hpp>
#include <raft/linalg/gemm.cuh>
#include <raft/linalg/map.cuh>
#include <raft/linalg/matrix_vector_op.cuh>
#include <raft/linalg/norm.cuh>
#include <raft/linalg/reduce_rows_by_key.cuh>
#include <raft/matrix/argmin.cuh>
#include <raft/matrix/gather.cuh>
#include <raft/matrix/init.cuh>
#include <raft/random/make_blobs.cuh>
#include <raft/util/cudart_utils.hpp>
#include <rmm/device_uvector.hpp>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kc {

using handle_t = raftrkt::handle_t;

// buffer is memory of the device's, whose contents resize may lose.
template <class T> using buffer = rmm::device_uvector<T>;
template <class T> buffer<T> make_buffer(const handle_t &handle, int64_t n) {
	return buffer<T>(static_cast<std::size_t>(n), handle.get_stream());
}
template <class T> void copy(const handle_t &handle, T *to, const T *from, int64_t n) {
	if (n) raft::copy(to, from, static_cast<std::size_t>(n), handle.get_stream().get());
}

// matrix is rows of an array, row-major, with a weight each; no weights are 1 each.
template <class T> struct matrix {
	const T *data;
	int64_t rows, cols;
	const T *weights;
	double scale = 1; // of the weights

	__host__ __device__ double weight(int64_t row) const { return scale * (weights ? static_cast<double>(weights[row]) : 1.0); }
};

template <class T> double sum(const handle_t &handle, const T *values, int64_t n) {
	return thrust::reduce(handle.get_thrust_policy(), values, values + n, 0.0);
}

// row_cost answers a row's part of the cost.
template <class T> struct row_cost {
	matrix<T> x;
	const T *distance;
	__device__ double operator()(int64_t row) const { return x.weight(row) * static_cast<double>(distance[row]); }
};

// nearness keeps for each row of a matrix the nearest of the centroids seen so far,
// and its squared distance.
template <class T> class nearness {
public:
	nearness(const handle_t &handle, const matrix<T> &x)
		: handle_(handle), x_(x), label_(make_buffer<int32_t>(handle, x.rows)), distance_(make_buffer<T>(handle, x.rows)) {}

	// reset forgets the centroids; every row is at this distance.
	void reset(T distance) {
		raft::matrix::fill(handle_, raft::make_device_vector_view<T, int64_t>(distance_.data(), x_.rows), distance);
	}

	// see looks at count centroids, which are numbered from first. Which is nearest is
	// found by ||c||^2 - 2xc, a product for each tile of rows; how near it is, exactly.
	void see(const T *centroids, int64_t count, int32_t first) {
		constexpr int64_t tile_elements = 16 << 20;
		const auto tile = std::clamp<int64_t>(tile_elements / count, 1, x_.rows);
		auto norms = make_buffer<T>(handle_, count), scores = make_buffer<T>(handle_, count > 1 ? tile * count : 0);
		auto nearest = make_buffer<int32_t>(handle_, count > 1 ? tile : 0);
		const auto norm = raft::make_device_vector_view<T, int64_t>(norms.data(), count);
		raft::linalg::norm<raft::linalg::L2Norm, raft::Apply::ALONG_ROWS>(
			handle_, raft::make_device_matrix_view<const T, int64_t>(centroids, count, x_.cols), norm);
		for (int64_t begin = 0; begin < x_.rows; begin += tile) {
			const auto n = std::min(tile, x_.rows - begin), d = x_.cols;
			const T *x = x_.data + begin * d;
			if (count > 1) {
				const auto score = raft::make_device_matrix_view<T, int64_t>(scores.data(), n, count);
				T alpha = -2, beta = 0;
				const auto scalar = [](T *at) { return std::make_optional(raft::make_host_scalar_view<T, uint32_t>(at)); };
				raft::linalg::gemm(handle_, raft::make_device_matrix_view<T, int64_t>(const_cast<T *>(x), n, d),
				                   raft::make_device_matrix_view<T, int64_t, raft::col_major>(const_cast<T *>(centroids), d, count),
				                   score, scalar(&alpha), scalar(&beta));
				raft::linalg::matrix_vector_op<raft::Apply::ALONG_ROWS>(handle_, raft::make_const_mdspan(score),
				                                                        raft::make_const_mdspan(norm), score, raft::add_op{});
				raft::matrix::argmin(handle_, raft::make_const_mdspan(score),
				                     raft::make_device_vector_view<int32_t, int64_t>(nearest.data(), n));
			}
			const int32_t *choice = count > 1 ? nearest.data() : nullptr;
			T *distance = distance_.data() + begin;
			int32_t *label = label_.data() + begin;
			thrust::for_each_n(handle_.get_thrust_policy(), thrust::counting_iterator<int64_t>(0), n, [=] __device__(int64_t i) -> void {
				const int32_t c = choice ? choice[i] : 0;
				T squared = 0;
				for (int64_t j = 0; j < d; j++) {
					const T difference = x[i * d + j] - centroids[c * d + j];
					squared += difference * difference;
				}
				if (squared < distance[i]) {
					distance[i] = squared;
					label[i] = first + c;
				}
			});
		}
	}

	// cost is the weighted sum of the distances.
	double cost() const {
		return thrust::transform_reduce(handle_.get_thrust_policy(), thrust::counting_iterator<int64_t>(0),
		                                thrust::counting_iterator<int64_t>(x_.rows), row_cost<T>{x_, distance_.data()}, 0.0, thrust::plus<double>());
	}

	// draw answers the row in which the running sum of the cost passes the fraction u
	// of it.
	int64_t draw(double u) const {
		auto running = make_buffer<double>(handle_, x_.rows);
		const auto &policy = handle_.get_thrust_policy();
		thrust::transform(policy, thrust::counting_iterator<int64_t>(0), thrust::counting_iterator<int64_t>(x_.rows),
		                  running.begin(), row_cost<T>{x_, distance_.data()});
		thrust::inclusive_scan(policy, running.begin(), running.end(), running.begin());
		const double total = running.back_element(handle_.get_stream());
		const auto row = thrust::upper_bound(policy, running.begin(), running.end(), u * total) - running.begin();
		return row < x_.rows ? row : static_cast<int64_t>(u * static_cast<double>(x_.rows)); // no row costs anything
	}

	// sample answers the rows that are drawn each with the probability factor times
	// its part of the cost.
	std::vector<int64_t> sample(double factor, uint64_t seed) const {
		auto drawn = make_buffer<int64_t>(handle_, x_.rows);
		const double total = cost();
		const row_cost<T> part{x_, distance_.data()};
		const auto end = thrust::copy_if(handle_.get_thrust_policy(), thrust::counting_iterator<int64_t>(0),
		                                 thrust::counting_iterator<int64_t>(x_.rows), drawn.begin(), [=] __device__(int64_t i) -> bool {
			                                 return random_unit(seed, static_cast<uint64_t>(i)) * total < factor * part(i);
		                                 });
		std::vector<int64_t> rows(static_cast<std::size_t>(end - drawn.begin()));
		copy(handle_, rows.data(), drawn.data(), static_cast<int64_t>(rows.size()));
		handle_.sync_stream();
		return rows;
	}

	// weigh writes how much weight each of count centroids has.
	template <class W> void weigh(W *weights, int64_t count) const {
		const int32_t *label = label_.data();
		const auto x = x_;
		raft::matrix::fill(handle_, raft::make_device_vector_view<W, int64_t>(weights, count), W(0));
		thrust::for_each_n(handle_.get_thrust_policy(), thrust::counting_iterator<int64_t>(0), x_.rows,
		                   [=] __device__(int64_t i) -> void { atomicAdd(weights + label[i], static_cast<W>(x.weight(i))); });
	}

	// move moves centroids to the means of the rows that are nearest to them, and
	// answers the squared shift. One that has no rows stays.
	double move(T *centroids, int64_t count) const {
		const auto d = x_.cols, elements = count * d;
		auto sums = make_buffer<double>(handle_, elements), totals = make_buffer<double>(handle_, count);
		auto scratch = make_buffer<char>(handle_, x_.rows);
		weigh(totals.data(), count);
		raft::linalg::reduce_rows_by_key(x_.data, d, label_.data(), x_.weights, scratch.data(), x_.rows, d, count,
		                                 sums.data(), handle_.get_stream().get());
		const double *sum = sums.data(), *total = totals.data(), scale = x_.scale;
		return thrust::transform_reduce(
			handle_.get_thrust_policy(), thrust::counting_iterator<int64_t>(0), thrust::counting_iterator<int64_t>(elements),
			[=] __device__(int64_t i) -> double {
				if (!(total[i / d] > 0)) return 0;
				const T now = static_cast<T>(scale * sum[i] / total[i / d]);
				const double shift = static_cast<double>(now) - static_cast<double>(centroids[i]);
				centroids[i] = now;
				return shift * shift;
			},
			0.0, thrust::plus<double>());
	}

	const int32_t *labels() const { return label_.data(); }

private:
	const handle_t &handle_;
	const matrix<T> x_;
	buffer<int32_t> label_;
	buffer<T> distance_;
};

template <class T>
void make_blobs(const handle_t &handle, T *x, int32_t *labels, int64_t n, int64_t d, int32_t clusters, double deviation,
                bool shuffle, double center_min, double center_max, uint64_t seed) {
	const auto rows = static_cast<int32_t>(n), cols = static_cast<int32_t>(d);
	if (n == 0 || d == 0) return;
	raft::random::make_blobs<T, int32_t, raft::row_major>(
		handle, raft::make_device_matrix_view<T, int32_t>(x, rows, cols), raft::make_device_vector_view<int32_t, int32_t>(labels, rows),
		clusters, std::nullopt, std::nullopt, static_cast<T>(deviation), shuffle, static_cast<T>(center_min),
		static_cast<T>(center_max), seed);
}

// members is the owner of a deposit: a cluster's rows.
template <class T> struct members {
	explicit members(int on) : device(on), indices(0, cudaStreamLegacy), rows(0, cudaStreamLegacy) {}

	// find looks for the rows of the cluster and answers how many there are.
	int64_t find(const handle_t &handle, const T *x, const int32_t *labels, int64_t n, int64_t d, int32_t cluster) {
		const auto stream = handle.get_stream();
		indices.set_stream(stream);
		rows.set_stream(stream);
		indices.resize(static_cast<std::size_t>(n), stream);
		const auto end = thrust::copy_if(handle.get_thrust_policy(), thrust::counting_iterator<int64_t>(0),
		                                 thrust::counting_iterator<int64_t>(n), indices.begin(),
		                                 [=] __device__(int64_t i) -> bool { return labels[i] == cluster; });
		const int64_t m = end - indices.begin();
		rows.resize(static_cast<std::size_t>(m * d), stream);
		if (m)
			raft::matrix::gather(handle, raft::make_device_matrix_view<const T, int64_t>(x, n, d),
			                     raft::make_device_vector_view<const int64_t, int64_t>(indices.data(), m),
			                     raft::make_device_matrix_view<T, int64_t>(rows.data(), m, d));
		return m;
	}

	// rest lets go of the handle's stream, which may end before the owner's next use.
	void rest() noexcept {
		indices.set_stream(cuda::stream_ref(cudaStreamLegacy));
		rows.set_stream(cuda::stream_ref(cudaStreamLegacy));
	}

	const int device;
	buffer<int64_t> indices;
	buffer<T> rows;
};

} // namespace kc
