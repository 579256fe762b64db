// The canary against what k-means is, its refusals, and its memory.
#include "canary.h"
#include "owners.hpp"

#include "raftrkt/flavour.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace {

#define OK(call) ASSERT_EQ((call), RR_OK) << kc_last_error()

template <class T> constexpr int32_t code = RR_DTYPE_FLOAT32;
template <> constexpr int32_t code<double> = RR_DTYPE_FLOAT64;
template <> constexpr int32_t code<int32_t> = RR_DTYPE_INT32;

// array is memory that the test and the canary both reach. copied answers what lies in
// a deposit.
#ifdef RAFTRKT_RAFT
constexpr int32_t memory_kind = RR_MEMORY_MANAGED;
template <class T> struct managed {
	using value_type = T;
	managed() = default;
	template <class U> managed(const managed<U> &) {}
	// Without a GPU nothing is done with it.
	T *allocate(std::size_t n) {
		void *memory;
		if (cudaMallocManaged(&memory, n * sizeof(T)) == cudaSuccess) return static_cast<T *>(memory);
		return std::allocator<T>().allocate(n);
	}
	void deallocate(T *memory, std::size_t n) {
		if (cudaFree(memory) != cudaSuccess) std::allocator<T>().deallocate(memory, n);
	}
	bool operator==(const managed &) const = default;
};
template <class T> using array = std::vector<T, managed<T>>;
template <class T> std::vector<T> copied(const rr_view &from, int64_t n) {
	std::vector<T> out(static_cast<std::size_t>(n));
	EXPECT_EQ(cudaMemcpy(out.data(), from.data, out.size() * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
	return out;
}
constexpr bool on_host = false;
struct session_stream {
	session_stream() : there(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess) {}
	~session_stream() {
		if (there) (void)cudaStreamDestroy(stream);
	}
	cudaStream_t stream = nullptr;
	const bool there;
};
#else
constexpr int32_t memory_kind = RR_MEMORY_HOST;
template <class T> using array = std::vector<T>;
template <class T> std::vector<T> copied(const rr_view &from, int64_t n) {
	const auto *data = static_cast<const T *>(from.data);
	return std::vector<T>(data, data + n);
}
constexpr bool on_host = true;
struct session_stream {
	void *stream = nullptr;
	static constexpr bool there = true;
};
#endif

template <class T> rr_view bind(array<T> &memory, std::vector<int64_t> shape) {
	rr_view v{};
	v.dtype = code<T>;
	v.rank = static_cast<int32_t>(shape.size());
	int64_t stride = 1;
	for (auto axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
		v.shape[axis] = shape[axis];
		v.strides[axis] = stride;
	}
	EXPECT_EQ(rr_view_bind(memory.data(), memory.size() * sizeof(T), memory_kind, 0, 0, &v), RR_OK) << rr_last_error();
	return v;
}

template <class T> struct Canary : testing::Test {
	session_stream on;
	rr_resources *r = nullptr;
	void *handle = nullptr;
	void SetUp() override {
		if (!on.there) GTEST_SKIP() << "no GPU";
		ASSERT_EQ(rr_resources_create(0, on.stream, nullptr, nullptr, &r), RR_OK) << rr_last_error();
		ASSERT_EQ(rr_resources_handle(r, &handle), RR_OK);
	}
	void TearDown() override { EXPECT_EQ(rr_resources_release(r), RR_OK); } // NULL is fine

	static constexpr double close = std::is_same_v<T, float> ? 1e-4 : 1e-10;
	array<T> x = array<T>(600);
	array<int32_t> labels = array<int32_t>(300);
	rr_view vx = bind(x, {300, 2}), vlabels = bind(labels, {300});

	void blobs(double deviation = 0.5, uint64_t seed = 7) {
		OK(kc_make_blobs(handle, &vx, &vlabels, 3, deviation, 1, -10, 10, seed));
	}
	struct result {
		array<T> centroids;
		double inertia;
		int32_t n_iter;
	};
	result fit(int64_t k, int32_t init, double oversampling = 0, int32_t n_init = 1, int32_t max_iter = 300,
	           const rr_view *weights = nullptr, uint64_t seed = 42) {
		result out{array<T>(static_cast<std::size_t>(2 * k)), -1, -1};
		auto vc = bind(out.centroids, {k, 2});
		EXPECT_EQ(kc_fit(handle, &vx, weights, &vc, init, max_iter, 1e-4, n_init, oversampling, seed, &out.inertia,
		                 &out.n_iter), RR_OK) << kc_last_error();
		return out;
	}
	// nearest answers the nearest centroid of row i, and its squared distance.
	std::pair<int32_t, double> nearest(const array<T> &centroids, std::size_t i) const {
		std::pair<int32_t, double> best{-1, INFINITY};
		for (std::size_t c = 0; 2 * c < centroids.size(); c++) {
			const double dx = static_cast<double>(x[2 * i]) - static_cast<double>(centroids[2 * c]),
						 dy = static_cast<double>(x[2 * i + 1]) - static_cast<double>(centroids[2 * c + 1]);
			if (dx * dx + dy * dy < best.second) best = {static_cast<int32_t>(c), dx * dx + dy * dy};
		}
		return best;
	}
	double inertia(const array<T> &centroids) const {
		double total = 0;
		for (std::size_t i = 0; i < x.size() / 2; i++) total += nearest(centroids, i).second;
		return total;
	}
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Canary, Types);

TYPED_TEST(Canary, BlobsLieAroundTheirCentres) {
	this->blobs(0.5);
	std::map<int32_t, std::vector<std::size_t>> of;
	for (std::size_t i = 0; i < 300; i++) of[this->labels[i]].push_back(i);
	ASSERT_EQ(of.size(), 3u);
	for (const auto &[label, rows] : of) {
		EXPECT_EQ(rows.size(), 100u) << label;
		for (std::size_t j : {0u, 1u}) {
			double mean = 0, square = 0;
			for (auto i : rows) mean += static_cast<double>(this->x[2 * i + j]) / 100;
			for (auto i : rows) square += std::pow(static_cast<double>(this->x[2 * i + j]) - mean, 2) / 99;
			EXPECT_TRUE(mean > -11 && mean < 11);
			EXPECT_NEAR(std::sqrt(square), 0.5, 0.15); // four standard errors
		}
	}
	const auto in_turn = [this] {
		std::size_t i = 0;
		while (i < 300 && this->labels[i] == static_cast<int32_t>(i % 3)) i++;
		return i == 300;
	};
	EXPECT_FALSE(in_turn()); // shuffled
	OK(kc_make_blobs(this->handle, &this->vx, &this->vlabels, 3, 0.0, 0, -1, 1, 3));
	EXPECT_TRUE(!on_host || in_turn()); // RAFT's order is its own
	std::map<int32_t, TypeParam> center;
	for (std::size_t i = 0; i < 300; i++) // without deviation
		EXPECT_EQ(this->x[2 * i], center.emplace(this->labels[i], this->x[2 * i]).first->second);
	const auto before = this->x;
	this->blobs(0.5, 8);
	const auto a = this->x;
	this->blobs(0.5, 8);
	EXPECT_EQ(a, this->x);
	this->blobs(0.5, 9);
	EXPECT_NE(a, this->x);
}

TYPED_TEST(Canary, AFitIsAtRest) {
	this->blobs(2.0);
	const struct {
		int32_t init;
		double oversampling;
	} ways[] = {{KC_INIT_FAR_APART, 0}, {KC_INIT_FAR_APART, 2}, {KC_INIT_RANDOM, 0}};
	for (const auto &way : ways) {
		const auto fitted = this->fit(3, way.init, way.oversampling, 5);
		EXPECT_GE(fitted.n_iter, 1);
		EXPECT_NEAR(fitted.inertia, this->inertia(fitted.centroids), fitted.inertia * this->close);
		// Each centroid is the mean of the rows that are nearest to it.
		double sums[3][3]{};
		for (std::size_t i = 0; i < 300; i++) {
			auto &s = sums[this->nearest(fitted.centroids, i).first];
			s[0] += static_cast<double>(this->x[2 * i]);
			s[1] += static_cast<double>(this->x[2 * i + 1]);
			s[2]++;
		}
		for (std::size_t c = 0; c < 3; c++)
			for (std::size_t j = 0; j < 2; j++)
				EXPECT_NEAR(static_cast<double>(fitted.centroids[2 * c + j]), sums[c][j] / sums[c][2], 2e-2);
	}
}

TYPED_TEST(Canary, MoreRunsAreNoWorseAndGivenCentroidsAreTheStart) {
	this->blobs(2.0);
	const auto one = this->fit(8, KC_INIT_RANDOM, 0, 1), ten = this->fit(8, KC_INIT_RANDOM, 0, 10);
	EXPECT_LE(ten.inertia, one.inertia);
	auto again = ten;
	auto vc = bind(again.centroids, {8, 2});
	OK(kc_fit(this->handle, &this->vx, nullptr, &vc, KC_INIT_GIVEN, 300, 1e-4, 1, 0, 0, &again.inertia, &again.n_iter));
	EXPECT_EQ(again.n_iter, 1);
	EXPECT_NEAR(again.inertia, ten.inertia, ten.inertia * 1e-3);
	EXPECT_EQ(this->fit(8, KC_INIT_RANDOM, 0, 1, 3).n_iter, 3); // max_iter
	const auto a = this->fit(8, 0), b = this->fit(8, 0); // the same seed; RAFT adds in any order
	for (std::size_t i = 0; i < 16; i++)
		EXPECT_NEAR(a.centroids[i], b.centroids[i], on_host ? 0 : 1e-3);
	const auto all = this->fit(300, KC_INIT_RANDOM, 0, 1, 1); // every row once
	EXPECT_NEAR(all.inertia, 0, 1e-6);
	this->fit(300, KC_INIT_FAR_APART, 0.001, 1, 1); // too few candidates
}

// Rows at eight places far apart: one centroid is drawn in each, whatever the seed.
TYPED_TEST(Canary, CentroidsAreDrawnFarApart) {
	for (std::size_t i = 0; i < 300; i++) {
		this->x[2 * i] = static_cast<TypeParam>(100 * (i % 4)) + static_cast<TypeParam>(i % 5) / 1000;
		this->x[2 * i + 1] = static_cast<TypeParam>(100 * (i / 4 % 2));
	}
	for (double oversampling : {0.0, 2.0})
		for (uint64_t seed = 0; seed < 20; seed++) {
			const auto fitted = this->fit(8, KC_INIT_FAR_APART, oversampling, 1, 1, nullptr, seed);
			EXPECT_LT(fitted.inertia, 1) << oversampling << " " << seed;
		}
}

TYPED_TEST(Canary, AWeightCountsARowSoOften) {
	this->blobs(2.0);
	array<TypeParam> weights(300);
	array<TypeParam> repeated;
	for (std::size_t i = 0; i < 300; i++) {
		weights[i] = static_cast<TypeParam>(i % 4);
		for (std::size_t n = 0; n < i % 4; n++) repeated.insert(repeated.end(), {this->x[2 * i], this->x[2 * i + 1]});
	}
	array<TypeParam> a{-5, -5, 0, 0, 5, 5}, b = a;
	auto va = bind(a, {3, 2}), vb = bind(b, {3, 2}), vw = bind(weights, {300});
	const auto n = static_cast<int64_t>(repeated.size() / 2);
	auto vr = bind(repeated, {n, 2});
	double ia, ib;
	int32_t na, nb;
	OK(kc_fit(this->handle, &this->vx, &vw, &va, KC_INIT_GIVEN, 50, 1e-4, 1, 0, 0, &ia, &na));
	OK(kc_fit(this->handle, &vr, nullptr, &vb, KC_INIT_GIVEN, 50, 1e-4, 1, 0, 0, &ib, &nb));
	EXPECT_EQ(na, nb);
	EXPECT_NEAR(ia, ib, ib * this->close);
	for (std::size_t i = 0; i < 6; i++) EXPECT_NEAR(a[i], b[i], 1e-3);
	double plain, scaled;
	OK(kc_predict(this->handle, &va, &this->vx, &vw, 0, &this->vlabels, &plain));
	OK(kc_predict(this->handle, &va, &this->vx, &vw, 1, &this->vlabels, &scaled));
	EXPECT_NEAR(scaled, plain * 300 / static_cast<double>(n), plain * this->close);
}

TYPED_TEST(Canary, PredictNamesTheNearest) {
	this->blobs(2.0);
	auto fitted = this->fit(5, 0);
	auto vc = bind(fitted.centroids, {5, 2});
	double inertia;
	OK(kc_predict(this->handle, &vc, &this->vx, nullptr, 1, &this->vlabels, &inertia));
	EXPECT_NEAR(inertia, this->inertia(fitted.centroids), inertia * this->close);
	int others = 0; // a row in the middle may be either's, by rounding
	for (std::size_t i = 0; i < 300; i++) others += this->labels[i] != this->nearest(fitted.centroids, i).first;
	EXPECT_LE(others, on_host ? 0 : 2);
}

TYPED_TEST(Canary, MembersAreTheRowsOfACluster) {
	this->blobs();
	int64_t all = 0;
	for (int32_t cluster : {0, 1, 2, 7, -1}) {
		rr_deposit out{};
		out.handle = this->handle;
		OK(kc_cluster_members(this->handle, &this->vx, &this->vlabels, cluster, &out));
		ASSERT_EQ(out.count, 2);
		const auto m = out.regions[0].shape[0];
		all += m;
		EXPECT_EQ(m, std::count(this->labels.begin(), this->labels.end(), cluster));
		EXPECT_EQ(out.regions[0].dtype, RR_DTYPE_INT64);
		EXPECT_EQ(out.regions[1].dtype, code<TypeParam>);
		EXPECT_EQ(out.regions[1].shape[0], m);
		EXPECT_EQ(out.regions[1].shape[1], 2);
		const auto indices = copied<int64_t>(out.regions[0], m);
		const auto rows = copied<TypeParam>(out.regions[1], 2 * m);
		for (std::size_t i = 0; i < indices.size(); i++) {
			const auto row = static_cast<std::size_t>(indices[i]);
			EXPECT_EQ(this->labels[row], cluster);
			EXPECT_LT(i ? indices[i - 1] : -1, indices[i]);
			for (std::size_t j = 0; j < 2; j++) EXPECT_EQ(rows[2 * i + j], this->x[2 * row + j]);
		}
		EXPECT_EQ(kc_cluster_members(this->handle, &this->vx, &this->vlabels, cluster, &out), RR_ERROR);
		EXPECT_STREQ(kc_last_error(), "out: already filled");
		OK(rr_deposit_release(this->r, &out));
	}
	EXPECT_EQ(all, 300);
}

TYPED_TEST(Canary, OwnersAreUsedAgain) {
	this->blobs();
	std::set<void *> owners;
	for (int i = 0; i < 100; i++) {
		rr_deposit a{}, b{};
		a.handle = b.handle = this->handle;
		OK(kc_cluster_members(this->handle, &this->vx, &this->vlabels, 0, &a));
		OK(kc_cluster_members(this->handle, &this->vx, &this->vlabels, 1, &b));
		EXPECT_NE(a.owner, b.owner);
		owners.insert({a.owner, b.owner});
		OK(rr_deposit_release(this->r, &b));
		OK(rr_deposit_release(this->r, &a));
	}
	EXPECT_EQ(owners.size(), 2u);
	// A refused deposit gives its owner back too.
	rr_deposit closed{};
	closed.state = RR_DEPOSIT_CLOSED;
	for (int i = 0; i < 100; i++) EXPECT_EQ(kc_cluster_members(this->handle, &this->vx, &this->vlabels, 0, &closed), RR_ERROR);
	rr_deposit last{};
	last.handle = this->handle;
	OK(kc_cluster_members(this->handle, &this->vx, &this->vlabels, 0, &last));
	EXPECT_EQ(owners.count(last.owner), 1u);
	OK(rr_deposit_release(this->r, &last));
}

TEST(Pool, LendsWhatCameBack) {
	struct owner {
		explicit owner(int on) : device(on) { made()++; }
		~owner() { freed()++; }
		void rest() noexcept { rested()++; }
		static int &made() { static int n; return n; }
		static int &freed() { static int n; return n; }
		static int &rested() { static int n; return n; }
		const int device;
	};
	using pool = kc::pool<owner>;
	for (int i = 0; i < 100; i++) {
		auto a = pool::take(0), b = pool::take(0), c = pool::take(1);
		EXPECT_EQ(c->device, 1);
	}
	EXPECT_EQ(owner::made(), 3);
	EXPECT_EQ(owner::rested(), 300);
	{
		std::vector<pool::loan> many;
		for (int i = 0; i < 10; i++) many.push_back(pool::take(0));
	}
	EXPECT_EQ(owner::made(), 11);
	EXPECT_EQ(owner::freed(), 6); // four stay
}

// Deposits on several sessions, made and released at once.
TYPED_TEST(Canary, ThePoolServesThreads) {
	this->blobs();
	std::vector<std::thread> threads;
	for (int t = 0; t < 4; t++)
		threads.emplace_back([this] {
			session_stream stream;
			rr_resources *mine;
			void *h;
			ASSERT_EQ(rr_resources_create(0, stream.stream, nullptr, nullptr, &mine), RR_OK);
			ASSERT_EQ(rr_resources_handle(mine, &h), RR_OK);
			for (int i = 0; i < 100; i++) {
				rr_deposit out{};
				out.handle = h;
				EXPECT_EQ(kc_cluster_members(h, &this->vx, &this->vlabels, i % 3, &out), RR_OK) << kc_last_error();
				EXPECT_EQ(out.regions[0].shape[0], 100);
				EXPECT_EQ(rr_deposit_release(mine, &out), RR_OK);
			}
			EXPECT_EQ(rr_resources_release(mine), RR_OK);
		});
	for (auto &thread : threads) thread.join();
}

struct Refusals : Canary<float> {
	array<float> centroids = array<float>(6), wide = array<float>(15);
	rr_view vc = bind(centroids, {3, 2});
	double inertia = 0;
	int32_t n_iter = 0;

	std::string said(int status, int kind = RR_KIND_LOGIC) {
		EXPECT_EQ(status, RR_ERROR);
		EXPECT_EQ(kc_last_error_kind(), kind);
		return kc_last_error();
	}
	std::string fit(const rr_view *given, const rr_view *weights, const rr_view *to, int32_t init = 0, int32_t max_iter = 300,
	                double tol = 1e-4, int32_t n_init = 1, double oversampling = 0) {
		return said(kc_fit(handle, given, weights, to, init, max_iter, tol, n_init, oversampling, 42, &inertia, &n_iter));
	}
};

TEST_F(Refusals, OfTheDocument) {
	array<int32_t> ints(6);
	auto vints = bind(ints, {3, 2}), vwide = bind(wide, {3, 5});
	EXPECT_EQ(fit(&vints, nullptr, &vc), "X: expected float32 or float64, got int32");
	EXPECT_EQ(fit(&vx, nullptr, &vwide), "centroids: expected 2 columns, got 5");
	auto f = vx;
	f.strides[0] = 1;
	f.strides[1] = 300;
	EXPECT_EQ(fit(&f, nullptr, &vc), "X: expected row-major, got col-major 300x2");
	auto stale = vx;
	stale.data = nullptr;
	stale.memory = stale.device = -1;
	EXPECT_EQ(said(kc_predict(handle, &vc, &stale, nullptr, 1, &vlabels, &inertia)),
	          "X: not a view bound to device memory");
	rr_deposit out{};
	int other;
	out.handle = &other;
	EXPECT_EQ(said(kc_cluster_members(handle, &vx, &vlabels, 0, &out)), "out: on resources other than the call's");
	out.handle = handle;
	out.state = RR_DEPOSIT_FILLING;
	EXPECT_EQ(said(kc_cluster_members(handle, &vx, &vlabels, 0, &out)), "out: being filled");
	out.state = RR_DEPOSIT_CLOSED;
	EXPECT_EQ(said(kc_cluster_members(handle, &vx, &vlabels, 0, &out)), "out: closed");
	EXPECT_EQ(said(kc_cluster_members(handle, &vx, &vlabels, 0, nullptr)), "out is NULL");
	auto tag = *rr_abi();
	EXPECT_EQ(kc_check_abi(&tag), RR_OK);
	tag.raft_minor = 11;
	EXPECT_EQ(said(kc_check_abi(&tag)), "RAFT: built against 26.10.00, but libraftrkt has 26.11.00; build both against "
	                                    "the same rapids package set");
	tag = *rr_abi();
	tag.handle_size++;
	const auto size = rr_abi()->handle_size;
	EXPECT_EQ(said(kc_check_abi(&tag)), "raft::handle_t size: built against " + std::to_string(size) + ", but libraftrkt has " +
	                                        std::to_string(size + 1) + "; build both against the same rapids package set");
}

TEST_F(Refusals, OfArguments) {
	EXPECT_EQ(fit(nullptr, nullptr, &vc), "X is NULL");
	EXPECT_EQ(fit(&vx, nullptr, nullptr), "centroids is NULL");
	EXPECT_EQ(said(kc_fit(nullptr, &vx, nullptr, &vc, 0, 1, 0, 1, 0, 0, &inertia, &n_iter)), "handle is NULL");
	EXPECT_EQ(said(kc_fit(handle, &vx, nullptr, &vc, 0, 1, 0, 1, 0, 0, nullptr, &n_iter)), "inertia is NULL");
	EXPECT_EQ(said(kc_fit(handle, &vx, nullptr, &vc, 0, 1, 0, 1, 0, 0, &inertia, nullptr)), "n_iter is NULL");
	array<float> two(2), many(602);
	array<double> doubles(6);
	auto vtwo = bind(two, {2}), vmany = bind(many, {301, 2}), vdoubles = bind(doubles, {3, 2});
	EXPECT_EQ(fit(&vx, &vtwo, &vc), "weights: expected 300 elements, got 2");
	EXPECT_EQ(fit(&vx, &vlabels, &vc), "weights: expected float32, got int32");
	EXPECT_EQ(fit(&vx, nullptr, &vdoubles), "centroids: expected float32, got float64");
	EXPECT_EQ(fit(&vx, nullptr, &vmany), "centroids: expected 1 to 300 rows, got 301");
	auto none = vc;
	none.shape[0] = 0;
	EXPECT_EQ(fit(&vx, nullptr, &none), "centroids: expected 1 to 300 rows, got 0");
	auto empty = vx;
	empty.shape[0] = 0;
	EXPECT_EQ(fit(&empty, nullptr, &vc), "X: expected rows and columns, got 0x2");
	EXPECT_EQ(fit(&vx, nullptr, &vc, 3), "init: expected 0, 1 or 2, got 3");
	EXPECT_EQ(fit(&vx, nullptr, &vc, 0, 0), "max_iter: expected at least 1, got 0");
	EXPECT_EQ(fit(&vx, nullptr, &vc, 0, 1, -1), "tol: expected no negative number, got -1.000000");
	EXPECT_EQ(fit(&vx, nullptr, &vc, 0, 1, NAN), "tol: expected no negative number, got nan");
	EXPECT_EQ(fit(&vx, nullptr, &vc, 0, 1, 0, 0), "n_init: expected at least 1, got 0");
	EXPECT_EQ(fit(&vx, nullptr, &vc, 0, 1, 0, 1, -2), "oversampling: expected no negative number, got -2.000000");
	EXPECT_EQ(said(kc_make_blobs(handle, &vx, nullptr, 3, 1, 1, 0, 1, 0)), "labels is NULL");
	EXPECT_EQ(said(kc_make_blobs(handle, &vx, &vlabels, 0, 1, 1, 0, 1, 0)), "clusters: expected at least 1, got 0");
	EXPECT_EQ(said(kc_make_blobs(handle, &vx, &vlabels, 3, -1, 1, 0, 1, 0)),
	          "deviation: expected no negative number, got -1.000000");
	EXPECT_EQ(said(kc_make_blobs(handle, &vx, &vlabels, 3, 1, 1, 2, 1, 0)),
	          "center_max: expected at least center_min, 2.000000, got 1.000000");
	auto elsewhere = vc;
	elsewhere.device = 1;
	EXPECT_EQ(fit(&vx, nullptr, &elsewhere), "centroids: on device 1, but the handle is on device 0");
	auto unreachable = vx;
	unreachable.memory = on_host ? RR_MEMORY_DEVICE : RR_MEMORY_HOST;
	EXPECT_EQ(fit(&unreachable, nullptr, &vc),
	          std::string("X: bound to ") + (on_host ? "device" : "host") + " memory, which the call cannot use");
}

#ifndef RAFTRKT_RAFT

// The rule that every exit synchronises the handle's stream.
TEST_F(Refusals, EveryExitSynchronises) {
	static int synchronized, answer;
	auto *h = static_cast<raftrkt::host_handle *>(handle);
	h->stream.synchronize = [](void *) {
		synchronized++;
		return answer;
	};
	synchronized = answer = 0;
	blobs();
	EXPECT_EQ(synchronized, 1);
	OK(kc_fit(handle, &vx, nullptr, &vc, 0, 10, 0, 1, 0, 1, &inertia, &n_iter));
	EXPECT_EQ(synchronized, 2);
	EXPECT_EQ(fit(&vx, nullptr, &vc, 9), "init: expected 0, 1 or 2, got 9");
	EXPECT_EQ(synchronized, 3);
	OK(kc_predict(handle, &vc, &vx, nullptr, 1, &vlabels, &inertia));
	EXPECT_EQ(synchronized, 4);
	rr_deposit out{};
	out.handle = handle;
	OK(kc_cluster_members(handle, &vx, &vlabels, 0, &out));
	EXPECT_EQ(synchronized, 5);
	OK(rr_deposit_release(r, &out));
	EXPECT_EQ(said(kc_cluster_members(handle, &vx, &vlabels, 0, &out)), "out: closed");
	EXPECT_EQ(synchronized, 6);
	answer = 700;
	EXPECT_EQ(said(kc_predict(handle, &vc, &vx, nullptr, 1, &vlabels, &inertia), RR_KIND_CUDA),
	          "cudaStreamSynchronize: error 700");
	EXPECT_EQ(fit(&vx, nullptr, &vc, 9), "init: expected 0, 1 or 2, got 9"); // the first error
	h->stream.synchronize = nullptr;
}

// The rule that a call selects its handle's device.
TEST_F(Refusals, AHandleOfADeviceThatCannotBeSelected) {
	raftrkt::host_handle h;
	h.device = 3;
	EXPECT_EQ(said(kc_fit(&h, &vx, nullptr, &vc, 0, 1, 0, 1, 0, 0, &inertia, &n_iter), RR_KIND_CUDA),
	          "cudaSetDevice: invalid device ordinal");
}

#endif

} // namespace
