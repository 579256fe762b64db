/* The view of an array that a native call borrows: element type, shape, strides
 * and, while it is bound, where the elements are. */
#ifndef RAFTRKT_ARRAY_H
#define RAFTRKT_ARRAY_H

#include "raftrkt/core.h"

#define RR_MAX_RANK 8

#define RR_DTYPE_FLOAT32 0
#define RR_DTYPE_FLOAT64 1
#define RR_DTYPE_INT32 2
#define RR_DTYPE_INT64 3

#define RR_MEMORY_HOST 0
#define RR_MEMORY_PINNED 1
#define RR_MEMORY_DEVICE 2
#define RR_MEMORY_MANAGED 3

/* RR_RANK_ABSENT is the rank of a view in a job's arguments that stands for no
 * array: the entry point gets NULL. */
#define RR_RANK_ABSENT (-1)

/* rr_view: rr_buffer_view fills data, device and memory. A view that is not bound
 * has NULL, -1 and -1 there. */
typedef struct rr_view {
	void *data;                   /* of the element at index 0, 0, ... */
	int32_t dtype;                /* RR_DTYPE_* */
	int32_t memory;               /* RR_MEMORY_*, or -1 */
	int32_t device;               /* ordinal, or -1 */
	int32_t rank;                 /* 0 to RR_MAX_RANK */
	int64_t shape[RR_MAX_RANK];   /* axis 0 first; past rank: 0 */
	int64_t strides[RR_MAX_RANK]; /* in elements, likewise */
} rr_view;

RR_SIZE(rr_view, 152);
RR_LAYOUT(rr_view, data, 0);
RR_LAYOUT(rr_view, dtype, 8);
RR_LAYOUT(rr_view, memory, 12);
RR_LAYOUT(rr_view, device, 16);
RR_LAYOUT(rr_view, rank, 20);
RR_LAYOUT(rr_view, shape, 24);
RR_LAYOUT(rr_view, strides, 88);

#endif
