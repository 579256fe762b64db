/* Status codes, kinds of errors, the last error of a thread, and resources: the C
 * side of a session.
 *
 * Every entry point answers RR_OK, or RR_ERROR with the reason in rr_last_error()
 * and rr_last_error_kind() of the calling thread. None throws. */
#ifndef RAFTRKT_CORE_H
#define RAFTRKT_CORE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define RR_API __attribute__((visibility("default")))
#else
#define RR_API
#endif

#ifdef __cplusplus
#define RR_BEGIN_C extern "C" {
#define RR_END_C }
#else
#define RR_BEGIN_C
#define RR_END_C
#endif

/* RR_LAYOUT holds a field's offset, and RR_SIZE a record's size, in whatever
 * language includes the header. */
#if defined(__cplusplus)
#define RR_HOLD(name, condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define RR_HOLD(name, condition) _Static_assert(condition, #condition)
#else
#define RR_HOLD(name, condition) typedef char name[(condition) ? 1 : -1]
#endif
#define RR_LAYOUT(record, field, offset) RR_HOLD(rr_layout_##record##_##field, offsetof(record, field) == (offset))
#define RR_SIZE(record, bytes) RR_HOLD(rr_size_##record, sizeof(record) == (bytes))

/* What an entry point answers. */
#define RR_OK 0
#define RR_ERROR 1
#define RR_BUFFER_TOO_SMALL 2

/* What kind of error it was. Whoever reads another code takes it for generic. */
#define RR_KIND_GENERIC 0
#define RR_KIND_OUT_OF_MEMORY 1
#define RR_KIND_CUDA 2
#define RR_KIND_LOGIC 3

RR_BEGIN_C

/* rr_last_error is the message, in UTF-8, of the calling thread's last failed
 * call; it lasts until that thread's next call. */
RR_API const char *rr_last_error(void);
/* rr_last_error_kind is its RR_KIND_*. */
RR_API int rr_last_error_kind(void);

/* rr_resources has a handle (of the type that downstream libraries take) and a
 * worker thread for jobs, which the first job starts. Any thread may use it, but
 * nobody while or after it is released. */
typedef struct rr_resources rr_resources;

/* rr_resources_create borrows a CUDA stream of the device, and its handles of
 * cuBLAS and cuSOLVER, either of which may be NULL (RAFT makes its own then), until
 * the release. On the host flavour the device is 0 and the rest NULL. */
RR_API int rr_resources_create(int32_t device, void *stream, void *cublas, void *cusolver, rr_resources **out);
/* rr_resources_handle sets out to NULL, then to the handle, which is the
 * resources' own and ends with them. */
RR_API int rr_resources_handle(rr_resources *resources, void **out);
/* rr_resources_synchronize waits for the work queued on the stream. */
RR_API int rr_resources_synchronize(rr_resources *resources);
/* rr_resources_release waits for the jobs that were queued, ends the worker and
 * frees the handle. A job may not release the resources that it runs on (logic).
 * NULL is nothing to release. */
RR_API int rr_resources_release(rr_resources *resources);

RR_END_C

#endif
