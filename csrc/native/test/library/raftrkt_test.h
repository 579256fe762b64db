/* A downstream library whose entry points do what tests tell them. Those with a
 * _job take the same parameters as jobs. It is compiled in either flavour. */
#ifndef RAFTRKT_TEST_H
#define RAFTRKT_TEST_H

#include "raftrkt/c_api.h"

RR_BEGIN_C

RR_API const char *rt_last_error(void);
RR_API int rt_last_error_kind(void);
RR_API int rt_check_abi(const rr_abi_tag *loaded);

/* What rt_throw throws. */
#define RT_NOTHING 0
#define RT_BAD_ALLOC 1         /* std::bad_alloc */
#define RT_STD_LOGIC 2         /* std::logic_error "a logic_error of std" */
#define RT_LOGIC 3             /* raftrkt::logic_error "a logic_error of raftrkt" */
#define RT_RUNTIME 4           /* std::runtime_error "a runtime_error" */
#define RT_CUDA 5              /* raftrkt::cuda_error of status 700 "a cuda_error" */
#define RT_CUDA_OUT_OF_MEMORY 6 /* raftrkt::cuda_error of status 2 "a cuda_error of memory" */
#define RT_UNKNOWN 7           /* 42 */
#define RT_NESTED 8            /* std::runtime_error "outer" around std::logic_error "inner" */
#define RT_BAD_UTF8 9          /* std::runtime_error "bad \xff byte" */
#define RT_LONG 10             /* std::runtime_error of 2000 times U+20AC, 6000 bytes */
#define RT_EMPTY 11            /* std::runtime_error "" */
/* On the RAFT flavour alone, each with a message that names its type. */
#define RT_RMM_OUT_OF_MEMORY 20
#define RT_RMM_BAD_ALLOC 21
#define RT_RMM_CUDA 22
#define RT_RMM_LOGIC 23
#define RT_RAFT_LOGIC 24
#define RT_RAFT_CUDA 25
#define RT_RAFT_CUDA_OUT_OF_MEMORY 26
#define RT_RAFT_CUBLAS 27
#define RT_RAFT_CUBLAS_OUT_OF_MEMORY 28
#define RT_RAFT_CUSOLVER 29
#define RT_RAFT_CUSOLVER_OUT_OF_MEMORY 30
#define RT_RAFT_CUSPARSE 31
#define RT_RAFT_CUSPARSE_OUT_OF_MEMORY 32
#define RT_RAFT_EXCEPTION 33

RR_API int rt_throw(int32_t which);
RR_API void rt_throw_job(void *args, size_t args_len, rr_job_outcome *outcome);

/* rt_fail answers the status, with a message "failed as told" of that kind. */
RR_API int rt_fail(int32_t status, int32_t kind);
RR_API void rt_fail_job(void *args, size_t args_len, rr_job_outcome *outcome);

/* rt_echo writes each number to the output of its type. */
RR_API int rt_echo(int32_t a, int64_t b, uint64_t c, float d, double e, int32_t *out_a, int64_t *out_b, uint64_t *out_c,
                   float *out_d, double *out_e);
RR_API void rt_echo_job(void *args, size_t args_len, rr_job_outcome *outcome);

/* rt_wait writes a byte to started and then reads one from proceed, of pipes or
 * eventfds; a negative descriptor is none. It answers how many calls of it ran at
 * once, itself included, when it began. */
RR_API int rt_wait(void *handle, int32_t started, int32_t proceed, int32_t *running);
RR_API void rt_wait_job(void *args, size_t args_len, rr_job_outcome *outcome);

/* rt_fields writes data, dtype, memory, device, rank, the 8 extents and the 8 strides
 * of the view to fields, 21 numbers; view may be NULL, which writes rank -1 alone.
 * rt_rank answers the rank, or -1 for NULL. */
RR_API int rt_fields(const rr_view *view, int64_t *fields);
RR_API int rt_rank(const rr_view *view, int32_t *rank);
RR_API void rt_rank_job(void *args, size_t args_len, rr_job_outcome *outcome);

/* rt_add adds value to each element of a contiguous view, of any type, rank 1. */
RR_API int rt_add(void *handle, const rr_view *x, int32_t value);
RR_API void rt_add_job(void *args, size_t args_len, rr_job_outcome *outcome);

/* rt_deposit deposits so many vectors of n float64 each: number r has r, r+1, ... */
RR_API int rt_deposit(void *handle, int32_t regions, int64_t n, rr_deposit *out);
RR_API void rt_deposit_job(void *args, size_t args_len, rr_job_outcome *outcome);
/* How many owners of rt_deposit there are, and how many were ever released. */
RR_API int64_t rt_owners(void);
RR_API int64_t rt_releases(void);

RR_END_C

#endif
