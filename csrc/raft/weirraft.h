/* RAFT's operations as package provider/raft calls them: libweirraft, a downstream
 * library of the native interface (csrc/native). Every function answers RR_OK, or
 * RR_ERROR with the reason in wr_last_error() and wr_last_error_kind() of the calling
 * OS thread; none throws. handle is a raft::handle_t of libraftrkt's; stream is the
 * CUstream of its device that the work is submitted to. Views are bound to memory of
 * that device and hold float or double, one type in a call, where nothing else is said.
 *
 * The functions submit and return, but for wr_rsvd. Memory that they need in between is
 * stream-ordered. */
#ifndef WEIRRAFT_H
#define WEIRRAFT_H

#include "raftrkt/abi.h"
#include "raftrkt/array.h"

RR_BEGIN_C

RR_API const char *wr_last_error(void);
RR_API int wr_last_error_kind(void);
/* wr_check_abi refuses a libraftrkt that was built against another RAFT. */
RR_API int wr_check_abi(const rr_abi_tag *loaded);

/* wr_open has a handle take its memory from a pool of its device. wr_close gives what
 * the pool does not use back; the handle's work is done. */
RR_API int wr_open(void *handle);
RR_API int wr_close(void *handle);

/* wr_gemm: c = alpha·a·b + beta·c. Of a and of b one stride is 1, of c that along the
 * columns; the other steps past the extent. beta 0 does not read c. None is empty. */
RR_API int wr_gemm(void *handle, void *stream, const double *alpha, const rr_view *a, const rr_view *b,
                   const double *beta, const rr_view *c);

/* wr_rsvd approximates the k largest singular values of a, m×n and column-major, from
 * large to small, and their vectors: u is m×k, s has k elements and v is n×k, all
 * column-major. k + oversampling < min(m, n), and that times max(m, n) < 2^31. With NaN
 * or infinity in a all results are NaN. It waits for the stream. */
RR_API int wr_rsvd(void *handle, void *stream, const rr_view *a, const rr_view *u, const rr_view *s, const rr_view *v,
                   int64_t oversampling, int64_t iterations);

#define WR_SUM 0
#define WR_MEAN 1
#define WR_NORM 2
#define WR_MIN 3
#define WR_MAX 4

/* wr_reduce reduces each row of a row-major matrix to an element of out. Floats are
 * summed as doubles; NaN in a row makes its result NaN. */
RR_API int wr_reduce(void *handle, void *stream, int32_t operation, const rr_view *a, const rr_view *out);

/* wr_select_k writes the k smallest or largest elements of each row of a row-major
 * matrix, in their order, and where they are in the row: values and indices (int64)
 * are rows×k and row-major. Elements are ordered by their bits, so that NaN lies beyond
 * infinity of its sign. Which of equal ones are taken is not said. */
RR_API int wr_select_k(void *handle, void *stream, int32_t smallest, const rr_view *a, const rr_view *values,
                       const rr_view *indices);

RR_END_C

#endif
