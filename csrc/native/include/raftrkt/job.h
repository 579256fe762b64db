/* Jobs: calls that can run long, on the worker thread of their resources. */
#ifndef RAFTRKT_JOB_H
#define RAFTRKT_JOB_H

#include "raftrkt/core.h"

#define RR_JOB_MESSAGE_BYTES 4096

/* rr_job_outcome is how a job ended: what the entry point answered and, if it
 * failed, the kind and the message of its error. */
typedef struct rr_job_outcome {
	int32_t status;
	int32_t kind;
	char message[RR_JOB_MESSAGE_BYTES]; /* UTF-8, ended by NUL */
} rr_job_outcome;

RR_SIZE(rr_job_outcome, 4104);
RR_LAYOUT(rr_job_outcome, status, 0);
RR_LAYOUT(rr_job_outcome, kind, 4);
RR_LAYOUT(rr_job_outcome, message, 8);

RR_BEGIN_C

/* rr_job_fn is a job entry of a downstream library; raftrkt::run_job is its body.
 * It runs after the previous job on the same resources returned. It must neither
 * throw nor call back into the program that made the job. */
typedef void (*rr_job_fn)(void *args, size_t args_len, rr_job_outcome *outcome);

/* rr_resources_job queues the job. Jobs of one rr_resources run one at a time, in
 * the order in which they were queued. After entry returned, the worker writes a
 * uint64_t of 1 to done_fd, an eventfd or a pipe (none if negative); args and
 * outcome must live until then. A thread that cannot be started is generic; either
 * way of failing leaves nothing queued. */
RR_API int rr_resources_job(rr_resources *resources, rr_job_fn entry, void *args, size_t args_len,
                            rr_job_outcome *outcome, int done_fd);

RR_END_C

#endif
