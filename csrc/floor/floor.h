/* The loops; doc.go says what each does. A result is 0, a CUresult, or the
   negative of a cuBLAS status. Times are in nanoseconds. */
#ifndef WEIR_FLOOR_H
#define WEIR_FLOOR_H

#include <stddef.h>
#include <stdint.h>

struct floor_gpu;

struct floor_times {
	int64_t submit; /* on the host, until all was submitted */
	int64_t done;   /* on the host, until all was done */
	int64_t device; /* on the device, from before the first to after the last */
};

enum floor_kind { floor_single, floor_double, floor_tf32 };

enum floor_call {
	floor_record,
	floor_wait,
	floor_query_event,
	floor_query_stream,
	floor_event_pair,
	floor_memory_pair,
	floor_host_function,
	floor_block,
	floor_empty,
};

const char *floor_name(int result);

int floor_open(int ordinal, int lanes, struct floor_gpu **gpu);
int floor_close(struct floor_gpu *gpu);
int floor_synchronize(struct floor_gpu *gpu);
int floor_memory(struct floor_gpu *gpu, size_t *free, size_t *total);
int floor_alloc(struct floor_gpu *gpu, size_t bytes, uint64_t *address);
int floor_free(struct floor_gpu *gpu, uint64_t address);
int floor_alloc_host(struct floor_gpu *gpu, size_t bytes, void **memory);
int floor_free_host(struct floor_gpu *gpu, void *memory);

int floor_chain(struct floor_gpu *gpu, enum floor_kind kind, int n, uint64_t x, uint64_t b, const uint64_t *turns, int lanes, int count,
	struct floor_times *times);
int floor_products(struct floor_gpu *gpu, enum floor_kind kind, int n, uint64_t a, uint64_t b, const uint64_t *results, int result_count,
	int lanes, int64_t count, int burst, struct floor_times *times);
int floor_copy_in(struct floor_gpu *gpu, uint64_t dst, const void *src, size_t bytes, struct floor_times *times);
int floor_copy_out(struct floor_gpu *gpu, void *dst, uint64_t src, size_t bytes, struct floor_times *times);
int floor_calls(struct floor_gpu *gpu, enum floor_call call, int64_t count, int64_t *spent);
int floor_start(int ordinal, int lanes, int64_t *spent);
void floor_nothing(void);

struct floor_batch;

enum floor_way { floor_strided, floor_pointers, floor_copied_pointers };

int floor_batch_open(struct floor_gpu *gpu, int n, uint64_t a, uint64_t b, uint64_t c, int count, struct floor_batch **batch);
int floor_batch_run(struct floor_batch *batch, enum floor_way way, struct floor_times *times);
int floor_batch_close(struct floor_batch *batch);

struct floor_program;

struct floor_step {
	uint64_t a, b, c;
	int32_t m, n, k;
	int32_t first, waits; /* which of the list of steps it waits for */
};

int floor_program_open(struct floor_gpu *gpu, const struct floor_step *steps, int count, const int32_t *list, int listed, int lanes,
	struct floor_program **program);
int floor_program_run(struct floor_program *program, struct floor_times *times);
int floor_program_replay(struct floor_program *program, int64_t count, struct floor_times *times);
int floor_program_close(struct floor_program *program);

#endif
