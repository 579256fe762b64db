// The entry points: what is asked of each argument, and the rules that every one of
// them keeps. It throws nothing, selects the handle's device, refuses arrays of
// another, reads views through raftrkt/view.hpp alone, and synchronises the handle's
// stream on every way out.
#include "canary.h"

#include "kmeans.hpp"
#include "owners.hpp"

#include <raftrkt/deposit.hpp>
#include <raftrkt/job.hpp>

namespace {

using raftrkt::layout;
using raftrkt::matrix_data;
using raftrkt::vector_data;
using std::to_string;

raftrkt::error_slot &last_error_slot() {
	static thread_local raftrkt::error_slot slot;
	return slot;
}

template <class Body>
int call(void *handle, std::initializer_list<std::pair<const char *, const rr_view *>> views, Body &&body) {
	return raftrkt::translate_exceptions(last_error_slot(), [&] {
		const auto &on = raftrkt::handle_of(handle);
		raftrkt::device_scope device(raftrkt::device_of(on));
		raftrkt::require_on_device(raftrkt::device_of(on), views);
		raftrkt::sync_guard guard(on);
		body(on);
		guard.finish();
	});
}

// expect refuses an argument unless the condition holds.
void expect(bool condition, const char *name, const std::string &expected, const std::string &got) {
	if (!condition) throw raftrkt::logic_error(std::string(name) + ": expected " + expected + ", got " + got);
}

// of_its_type calls body with a T() of the view's element type.
template <class Body> void of_its_type(const rr_view *view, const char *name, Body &&body) {
	raftrkt::require(view, name);
	switch (view->dtype) {
	case RR_DTYPE_FLOAT32: return body(float());
	case RR_DTYPE_FLOAT64: return body(double());
	default: expect(false, name, "float32 or float64", raftrkt::dtype_name(view->dtype));
	}
}

// rows_of reads a matrix with at least one row, and the weights of its rows.
template <class T> kc::matrix<T> rows_of(const rr_view *x, const rr_view *weights) {
	const auto *data = matrix_data<const T, int>(x, "X", layout::row_major);
	expect(x->shape[0] > 0 && x->shape[1] > 0, "X", "rows and columns",
	       to_string(x->shape[0]) + "x" + to_string(x->shape[1]));
	return {data, x->shape[0], x->shape[1],
	        weights ? vector_data<const T, int>(weights, "weights", x->shape[0]) : nullptr};
}

} // namespace

const char *kc_last_error(void) { return last_error_slot().message; }
int kc_last_error_kind(void) { return last_error_slot().kind; }

int kc_check_abi(const rr_abi_tag *loaded) {
	return raftrkt::translate_exceptions(last_error_slot(), [&] { raftrkt::require_abi(loaded); });
}

int kc_make_blobs(void *handle, const rr_view *x, const rr_view *labels, int32_t clusters, double deviation,
                  int32_t shuffle, double center_min, double center_max, uint64_t seed) {
	return call(handle, {{"X", x}, {"labels", labels}}, [&](const auto &on) {
		of_its_type(x, "X", [&]<class T>(T) {
			auto *data = matrix_data<T, int>(x, "X", layout::row_major);
			auto *label = vector_data<int32_t, int>(labels, "labels", x->shape[0]);
			expect(clusters >= 1, "clusters", "at least 1", to_string(clusters));
			expect(deviation >= 0, "deviation", "no negative number", to_string(deviation));
			expect(center_min <= center_max, "center_max", "at least center_min, " + to_string(center_min),
			       to_string(center_max));
			kc::make_blobs(on, data, label, x->shape[0], x->shape[1], clusters, deviation, shuffle != 0, center_min,
			               center_max, seed);
		});
	});
}

int kc_fit(void *handle, const rr_view *x, const rr_view *weights, const rr_view *centroids, int32_t init,
           int32_t max_iter, double tol, int32_t n_init, double oversampling, uint64_t seed, double *inertia,
           int32_t *n_iter) {
	return call(handle, {{"X", x}, {"weights", weights}, {"centroids", centroids}}, [&](const auto &on) {
		of_its_type(x, "X", [&]<class T>(T) {
			const auto rows = rows_of<T>(x, weights);
			auto *to = matrix_data<T, int>(centroids, "centroids", layout::row_major, raftrkt::any_extent, rows.cols);
			const auto k = centroids->shape[0];
			expect(k >= 1 && k <= rows.rows, "centroids", "1 to " + to_string(rows.rows) + " rows", to_string(k));
			expect(init >= KC_INIT_FAR_APART && init <= KC_INIT_GIVEN, "init", "0, 1 or 2", to_string(init));
			expect(max_iter >= 1, "max_iter", "at least 1", to_string(max_iter));
			expect(tol >= 0, "tol", "no negative number", to_string(tol));
			expect(n_init >= 1, "n_init", "at least 1", to_string(n_init));
			expect(oversampling >= 0, "oversampling", "no negative number", to_string(oversampling));
			raftrkt::require(inertia, "inertia");
			raftrkt::require(n_iter, "n_iter");
			const auto result = kc::fit(on, rows, to, k, {init, max_iter, tol, n_init, oversampling, seed});
			*inertia = result.inertia;
			*n_iter = result.n_iter;
		});
	});
}

int kc_predict(void *handle, const rr_view *centroids, const rr_view *x, const rr_view *weights, int32_t normalize,
               const rr_view *labels, double *inertia) {
	return call(handle, {{"centroids", centroids}, {"X", x}, {"weights", weights}, {"labels", labels}},
	            [&](const auto &on) {
		            of_its_type(x, "X", [&]<class T>(T) {
			            auto rows = rows_of<T>(x, weights);
			            const auto *from = matrix_data<const T, int>(centroids, "centroids", layout::row_major,
			                                                         raftrkt::any_extent, rows.cols);
			            expect(centroids->shape[0] >= 1, "centroids", "at least 1 row", "0");
			            auto *to = vector_data<int32_t, int>(labels, "labels", rows.rows);
			            raftrkt::require(inertia, "inertia");
			            if (normalize && weights)
				            rows.scale = static_cast<double>(rows.rows) / kc::sum(on, rows.weights, rows.rows);
			            *inertia = kc::predict(on, rows, from, centroids->shape[0], to);
		            });
	            });
}

int kc_cluster_members(void *handle, const rr_view *x, const rr_view *labels, int32_t cluster, rr_deposit *out) {
	return call(handle, {{"X", x}, {"labels", labels}}, [&](const auto &on) {
		of_its_type(x, "X", [&]<class T>(T) {
			const auto *data = matrix_data<const T, int>(x, "X", layout::row_major);
			const auto n = x->shape[0], d = x->shape[1];
			const auto *label = vector_data<const int32_t, int>(labels, "labels", n);
			auto owner = kc::pool<kc::members<T>>::take(raftrkt::device_of(on));
			const auto m = owner->find(on, data, label, n, d, cluster);
			// The regions are read before deposit takes owner: std::move is only a cast.
			raftrkt::deposit(out, "out", on, std::move(owner),
			                 {raftrkt::region(owner->indices.data(), m),
			                  raftrkt::region(owner->rows.data(), m, d, layout::row_major)});
		});
	});
}

void kc_make_blobs_job(void *args, size_t args_len, rr_job_outcome *outcome) {
	raftrkt::run_job<&kc_make_blobs>(args, args_len, outcome, last_error_slot());
}
void kc_fit_job(void *args, size_t args_len, rr_job_outcome *outcome) {
	raftrkt::run_job<&kc_fit>(args, args_len, outcome, last_error_slot());
}
void kc_predict_job(void *args, size_t args_len, rr_job_outcome *outcome) {
	raftrkt::run_job<&kc_predict>(args, args_len, outcome, last_error_slot());
}
void kc_cluster_members_job(void *args, size_t args_len, rr_job_outcome *outcome) {
	raftrkt::run_job<&kc_cluster_members>(args, args_len, outcome, last_error_slot());
}
