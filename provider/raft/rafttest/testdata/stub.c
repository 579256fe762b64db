/* A double of libraftrkt and libweirraft in one, for the simulated driver: the entry
 * points of package raft as plain loops over what is copied to the host, in stream
 * order. It shows nothing about RAFT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	uint64_t data;
	int32_t dtype, memory, device, rank;
	int64_t shape[8], strides[8];
} view;
typedef struct {
	int32_t device, magic;
} handle;
enum { magic = 0x52414654 };

static _Thread_local char message[256];
static _Thread_local int kind;
static int live;

static int fail(int of, const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	kind = of;
	return 1;
}

const char *rr_last_error(void) { return message; }
int rr_last_error_kind(void) { return kind; }
const char *wr_last_error(void) { return message; }
int wr_last_error_kind(void) { return kind; }

static const int32_t tag[14] = {1};
const void *rr_abi(void) { return tag; }
int wr_check_abi(const int32_t *loaded) { return loaded == tag ? 0 : fail(3, "ABI tag: another one"); }

int rr_resources_create(int32_t device, void *stream, void *cublas, void *cusolver, handle **out) {
	if (stream || cublas || cusolver) return fail(3, "resources: expected NULL");
	handle *h = malloc(sizeof *h);
	*h = (handle){device, magic};
	__atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
	*out = h;
	return 0;
}
int rr_resources_handle(handle *resources, handle **out) { return *out = resources, 0; }
int rr_resources_release(handle *resources) {
	if (resources->magic != magic) return fail(3, "resources: no such");
	resources->magic = 0;
	__atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
	free(resources);
	return 0;
}
int stub_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
static int of_handle(handle *h) { return h && h->magic == magic ? 0 : fail(3, "handle is none"); }
int wr_open(handle *h) { return of_handle(h); }
int wr_close(handle *h) { return of_handle(h); }

/* The driver's functions that it calls. */
static int driver(const char *name, uint64_t a, uint64_t b, uint64_t c) {
	static void *library;
	if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*fn)(uint64_t, uint64_t, uint64_t) = library ? dlsym(library, name) : NULL;
	return fn ? fn(a, b, c) : 999;
}

/* begin waits for the stream with the handle's device current, whatever was, as
 * cudaSetDevice would have it; end gives that up. */
static int end(handle *h) {
	uint64_t context;
	int status = driver("cuCtxPopCurrent_v2", (uint64_t)&context, 0, 0), released = driver("cuDevicePrimaryCtxRelease_v2", h->device, 0, 0);
	return status || released ? fail(2, "CUDA errors %d, %d", status, released) : 0;
}
static int begin(handle *h, void *stream, int32_t dtype) {
	if (of_handle(h)) return 1;
	if (dtype != 0 && dtype != 1) return fail(3, "a: expected float32 or float64, got dtype %d", dtype);
	uint64_t context = 0;
	int status = driver("cuDevicePrimaryCtxRetain", (uint64_t)&context, h->device, 0);
	if (status) return fail(2, "CUDA error %d", status);
	if ((status = driver("cuCtxPushCurrent_v2", context, 0, 0))) {
		driver("cuDevicePrimaryCtxRelease_v2", h->device, 0, 0);
		return fail(2, "CUDA error %d", status);
	}
	if ((status = driver("cuStreamSynchronize", (uint64_t)stream, 0, 0))) {
		end(h);
		return fail(2, "CUDA error %d", status);
	}
	return 0;
}

static int64_t elements(const view *v) {
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++) n *= v->shape[i];
	return n;
}
static size_t size(const view *v) { return v->dtype == 0 ? 4 : 8; }
static size_t span(const view *v) {
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++) n += (v->shape[i] - 1) * v->strides[i];
	return n * size(v);
}
static int64_t place(const view *v, int64_t i) { /* of element i in row-major order */
	return v->rank == 1 ? i * v->strides[0] : i / v->shape[1] * v->strides[0] + i % v->shape[1] * v->strides[1];
}
static double *fetch(const view *v) {
	char *raw = malloc(span(v));
	double *x = malloc(elements(v) * sizeof *x);
	driver("cuMemcpyDtoH_v2", (uint64_t)raw, v->data, span(v));
	for (int64_t i = 0; i < elements(v); i++) x[i] = v->dtype == 0 ? ((float *)raw)[place(v, i)] : ((double *)raw)[place(v, i)];
	free(raw);
	return x;
}
static void store(const view *v, double *x) { /* and frees x */
	char *raw = malloc(span(v));
	driver("cuMemcpyDtoH_v2", (uint64_t)raw, v->data, span(v));
	for (int64_t i = 0; i < elements(v); i++) switch (v->dtype) {
		case 0: ((float *)raw)[place(v, i)] = x[i]; break;
		case 1: ((double *)raw)[place(v, i)] = x[i]; break;
		default: ((int64_t *)raw)[place(v, i)] = x[i];
		}
	driver("cuMemcpyHtoD_v2", v->data, (uint64_t)raw, span(v));
	free(raw), free(x);
}

int wr_gemm(handle *h, void *stream, const double *alpha, const view *a, const view *b, const double *beta, const view *c) {
	if (begin(h, stream, c->dtype)) return 1;
	int64_t m = c->shape[0], n = c->shape[1], k = a->shape[1];
	double *x = fetch(a), *y = fetch(b), *z = fetch(c);
	for (int64_t i = 0; i < m * n; i++) {
		double sum = 0;
		for (int64_t l = 0; l < k; l++) sum += x[i / n * k + l] * y[l * n + i % n];
		z[i] = *alpha * sum + (*beta ? *beta * z[i] : 0);
	}
	store(c, z);
	free(x), free(y);
	return end(h);
}

int wr_reduce(handle *h, void *stream, int32_t operation, const view *a, const view *out) {
	if (begin(h, stream, a->dtype)) return 1;
	int64_t rows = a->shape[0], n = a->shape[1];
	double *x = fetch(a), *y = malloc(rows * sizeof *y);
	for (int64_t i = 0; i < rows; i++) {
		double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
		for (int64_t j = 0; j < n; j++) {
			double e = x[i * n + j];
			sum += e, squares += e * e;
			if (!(e >= least) && least == least) least = e;
			if (!(e <= most) && most == most) most = e;
		}
		y[i] = (double[]){sum, sum / n, sqrt(squares), least, most}[operation];
	}
	store(out, y);
	free(x);
	return end(h);
}

static int64_t order(double x) { /* of its bits */
	int64_t bits;
	memcpy(&bits, &x, 8);
	return bits < 0 ? INT64_MIN - bits - 1 : bits;
}

int wr_select_k(handle *h, void *stream, int32_t smallest, const view *a, const view *values, const view *indices) {
	int64_t rows = a->shape[0], n = a->shape[1], k = values->shape[1];
	if (k < 1 || k > n) return fail(3, "values: expected 1 to %lld columns, got %lld", (long long)n, (long long)k);
	if (begin(h, stream, a->dtype)) return 1;
	double *x = fetch(a), *y = malloc(rows * k * sizeof *y), *z = malloc(rows * k * sizeof *z);
	char *taken = calloc(rows, n);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t l = 0; l < k; l++) {
			int64_t best = -1;
			for (int64_t j = 0; j < n; j++)
				if (!taken[i * n + j] && (best < 0 || (smallest ? order(x[i * n + j]) < order(x[i * n + best]) : order(x[i * n + j]) > order(x[i * n + best])))) best = j;
			taken[i * n + best] = 1;
			y[i * k + l] = x[i * n + best], z[i * k + l] = best;
		}
	store(values, y), store(indices, z);
	free(x), free(taken);
	return end(h);
}

/* wr_rsvd turns the columns of a, or of its transpose, until they are orthogonal. */
int wr_rsvd(handle *h, void *stream, const view *a, const view *u, const view *s, const view *v, int64_t oversampling, int64_t iterations) {
	int64_t m = a->shape[0], n = a->shape[1], k = s->shape[0];
	int64_t room = (m < n ? m : n) - k;
	if (k < 1 || iterations < 0 || oversampling < 0 || oversampling >= room)
		return fail(3, "oversampling: expected 0 to %lld, got %lld", (long long)room - 1, (long long)oversampling);
	if (begin(h, stream, a->dtype)) return 1;
	double *x = fetch(a), *w = calloc(n * n, sizeof *w), *lengths = calloc(n, sizeof *lengths);
	double *left = malloc(m * k * sizeof *left), *right = malloc(n * k * sizeof *right), *single = malloc(k * sizeof *single);
	int finite = 1;
	for (int64_t i = 0; i < m * n; i++) finite &= isfinite(x[i]) != 0;
	for (int64_t j = 0; j < n; j++) w[j * n + j] = 1;
	for (int sweep = 0; finite && sweep < 60; sweep++)
		for (int64_t p = 0; p < n; p++)
			for (int64_t q = p + 1; q < n; q++) {
				double pp = 0, qq = 0, pq = 0;
				for (int64_t i = 0; i < m; i++) {
					double e = x[i * n + p], f = x[i * n + q];
					pp += e * e, qq += f * f, pq += e * f;
				}
				if (fabs(pq) <= 1e-17 * sqrt(pp * qq)) continue;
				double zeta = (qq - pp) / (2 * pq), t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));
				double c = 1 / hypot(1, t), d = c * t;
				for (int64_t i = 0; i < m + n; i++) {
					double *row = i < m ? x + i * n : w + (i - m) * n, e = row[p], f = row[q];
					row[p] = c * e - d * f, row[q] = d * e + c * f;
				}
			}
	for (int64_t j = 0; j < n; j++) {
		for (int64_t i = 0; i < m; i++) lengths[j] += x[i * n + j] * x[i * n + j];
		lengths[j] = sqrt(lengths[j]);
	}
	for (int64_t l = 0; l < k; l++) {
		int64_t best = 0;
		for (int64_t j = 0; j < n; j++)
			if (lengths[j] > lengths[best]) best = j;
		single[l] = finite ? lengths[best] : NAN;
		for (int64_t i = 0; i < m; i++) left[i * k + l] = finite ? x[i * n + best] / lengths[best] : NAN;
		for (int64_t i = 0; i < n; i++) right[i * k + l] = finite ? w[i * n + best] : NAN;
		lengths[best] = -1;
	}
	store(u, left), store(s, single), store(v, right);
	free(x), free(w), free(lengths);
	return end(h);
}
