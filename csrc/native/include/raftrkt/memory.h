/* Memory that views lie in. */
#ifndef RAFTRKT_MEMORY_H
#define RAFTRKT_MEMORY_H

#include "raftrkt/array.h"

RR_BEGIN_C

/* rr_buffer names memory that somebody else owns. */
typedef struct rr_buffer rr_buffer;

/* rr_buffer_wrap names bytes of memory (RR_MEMORY_*) of a device; data may be NULL
 * if there are none. rr_buffer_free frees the name alone; NULL is nothing to free. */
RR_API int rr_buffer_wrap(void *data, uint64_t bytes, int32_t memory, int32_t device, rr_buffer **out);
RR_API int rr_buffer_free(rr_buffer *buffer);

/* rr_buffer_view is the one way a view gets its pointer. The caller fills dtype,
 * rank, shape and strides; offset, in bytes, is where the element at index 0, 0, ...
 * lies. They are checked against the buffer: every element must lie in it, aligned.
 * The call fills data, device and memory, on refusal (logic) with NULL, -1 and -1.
 * data is valid while the memory lives, for work ordered on its stream. */
RR_API int rr_buffer_view(const rr_buffer *buffer, uint64_t offset, rr_view *view);

/* rr_view_bind is rr_buffer_wrap and rr_buffer_view without a buffer in between. */
RR_API int rr_view_bind(void *data, uint64_t bytes, int32_t memory, int32_t device, uint64_t offset, rr_view *view);

RR_END_C

#endif
