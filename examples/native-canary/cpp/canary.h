/* canary: k-means, as a library of its own that a Weir program calls through the
 * native interface. Every function answers RR_OK, or RR_ERROR with the reason in
 * kc_last_error() of the calling thread. Matrices are row-major, float32 or float64,
 * all of one type; labels are int32. They lie on the handle's device. */
#ifndef CANARY_H
#define CANARY_H

#include <raftrkt/c_api.h>

#define KC_API __attribute__((visibility("default")))

/* How a fit begins: with rows drawn far apart (k-means++, or k-means|| if oversampling
 * is not 0), with any rows, with the centroids given. */
#define KC_INIT_FAR_APART 0
#define KC_INIT_RANDOM 1
#define KC_INIT_GIVEN 2

RR_BEGIN_C

KC_API const char *kc_last_error(void);
KC_API int kc_last_error_kind(void);

/* kc_check_abi refuses a libraftrkt of another tag than the canary was built with. */
KC_API int kc_check_abi(const rr_abi_tag *loaded);

/* kc_make_blobs writes clusters of normally distributed rows to x, n by d, around
 * centres uniform in [center_min, center_max), and each row's cluster to labels, n. */
KC_API int kc_make_blobs(void *handle, const rr_view *x, const rr_view *labels, int32_t clusters, double deviation,
                         int32_t shuffle, double center_min, double center_max, uint64_t seed);

/* kc_fit writes k centroids, k by d, of the rows of x, n by d, and their weights, n, or
 * NULL for 1 each. It runs Lloyd's iterations until the squared shift of the centroids
 * is at most tol, n_init times, and keeps the run with the least inertia: the weighted
 * sum of squared distances of rows from their centroids. */
KC_API int kc_fit(void *handle, const rr_view *x, const rr_view *weights, const rr_view *centroids, int32_t init,
                  int32_t max_iter, double tol, int32_t n_init, double oversampling, uint64_t seed, double *inertia,
                  int32_t *n_iter);

/* kc_predict writes the nearest centroid of each row to labels, and their inertia.
 * With normalize, weights are scaled to a sum of n. */
KC_API int kc_predict(void *handle, const rr_view *centroids, const rr_view *x, const rr_view *weights,
                      int32_t normalize, const rr_view *labels, double *inertia);

/* kc_cluster_members deposits the rows of one cluster: their indices, int64[m], and
 * the rows, m by d. */
KC_API int kc_cluster_members(void *handle, const rr_view *x, const rr_view *labels, int32_t cluster, rr_deposit *out);

/* The same as jobs. */
KC_API void kc_make_blobs_job(void *args, size_t args_len, rr_job_outcome *outcome);
KC_API void kc_fit_job(void *args, size_t args_len, rr_job_outcome *outcome);
KC_API void kc_predict_job(void *args, size_t args_len, rr_job_outcome *outcome);
KC_API void kc_cluster_members_job(void *args, size_t args_len, rr_job_outcome *outcome);

RR_END_C

#endif
