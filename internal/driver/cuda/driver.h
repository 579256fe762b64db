/*
 * The driver calls of the hot path. Each function selects the device and does the
 * work, so that a goroutine may move between threads from one call to the next. A
 * thread with no current context, or with one that a call of Weir's left, is left
 * with the last call's: to restore it costs two driver calls, and has cuBLAS find
 * its state anew each time. A context that others made current, Device.Select
 * among them, is restored.
 *
 * Handles are integers here: Go's pointer checks would cost time and find
 * nothing. A result is 0, a CUresult, or weir_unfinished.
 */
#ifndef WEIR_DRIVER_H
#define WEIR_DRIVER_H

#include <stddef.h>
#include <stdint.h>

enum { weir_unfinished = -1 };

/* Makes the context current for a call; weir_leave ends what it answers. */
int weir_enter(uintptr_t context, int *entered);
void weir_leave(int entered);

/* WEIR_WITH runs an expression with the context current, and returns its value. */
#define WEIR_WITH(context, expression)                            \
	do {                                                      \
		int entered_, result_ = weir_enter(context, &entered_); \
		if (result_ != 0)                                 \
			return result_;                           \
		result_ = (expression);                           \
		weir_leave(entered_);                             \
		return result_;                                   \
	} while (0)

const char *weir_error_name(int code);
const char *weir_error_text(int code);

/* The device's primary context, with a stream that only asks how it is. */
int weir_context_open(int device, uintptr_t *context, uintptr_t *probe);
int weir_context_close(int device, uintptr_t context, uintptr_t probe);
int weir_context_synchronize(uintptr_t context);
int weir_context_push(uintptr_t context);
int weir_context_pop(void);
int weir_memory_info(uintptr_t context, size_t *free, size_t *total);

int weir_stream_new(uintptr_t context, int priority, uintptr_t *stream);
int weir_stream_destroy(uintptr_t context, uintptr_t stream);
int weir_stream_query(uintptr_t context, uintptr_t stream);
/* Waits for an idle stream, which takes no time and has memory pools notice. */
int weir_stream_settle(uintptr_t context, uintptr_t stream);
/* Has a stream whose last event is done notice it. */
int weir_stream_noticed(uintptr_t context, uintptr_t stream);

int weir_event_new(uintptr_t context, uintptr_t *event);
int weir_event_destroy(uintptr_t context, uintptr_t event);
int weir_event_query(uintptr_t context, uintptr_t event);
/* Waits for at most limit ns; then CUDA_ERROR_NOT_READY. */
int weir_event_wait(uintptr_t context, uintptr_t event, int64_t limit);
/* With moves, answers weir_unfinished if the event's last record is. */
int weir_record(uintptr_t context, uintptr_t stream, uintptr_t event, int moves);
int weir_wait(uintptr_t context, uintptr_t stream, uintptr_t event);

int weir_copy(uintptr_t context, uintptr_t stream, uint64_t dst, uint64_t src, size_t bytes);
/* A copy from one device's context to another's. */
int weir_copy_peer(uintptr_t context, uintptr_t stream, uint64_t dst, uintptr_t to, uint64_t src, uintptr_t from, size_t bytes);
/* A copy and the event's record after it. */
int weir_copy_marked(uintptr_t context, uintptr_t stream, uint64_t dst, uint64_t src, size_t bytes, uintptr_t event);
int weir_zero(uintptr_t context, uintptr_t stream, uint64_t dst, size_t bytes);

int weir_alloc(uintptr_t context, size_t bytes, uint64_t *address);
/* Waits for all work of the device first. */
int weir_free(uintptr_t context, uint64_t address);
int weir_alloc_host(uintptr_t context, size_t bytes, uint64_t *address);
int weir_free_host(uintptr_t context, uint64_t address);

/* A limit of 0 is none. */
int weir_pool_new(uintptr_t context, int device, uint64_t threshold, size_t limit, uintptr_t *pool);
/* Gives another device access to the memory that the pool has and will have, if
   that device can have it. */
int weir_pool_admit(uintptr_t context, uintptr_t pool, int device, int peer);
/* Out of memory is also what exceeds the limit; held is what the pool has then. */
int weir_pool_alloc(uintptr_t context, uintptr_t pool, uintptr_t stream, size_t bytes, uint64_t limit, uint64_t *address, uint64_t *held);
int weir_pool_free(uintptr_t context, uintptr_t stream, uint64_t address);
/* Keeps at most that many unused bytes. */
int weir_pool_trim(uintptr_t context, uintptr_t pool, uint64_t keep);
int weir_pool_held(uintptr_t context, uintptr_t pool, uint64_t *held, uint64_t *high);
/* Waits for all work of the device first. */
int weir_pool_destroy(uintptr_t context, uintptr_t pool);

int weir_module_load(uintptr_t context, const void *image, uintptr_t *module);
int weir_module_unload(uintptr_t context, uintptr_t module);
int weir_module_function(uintptr_t context, uintptr_t module, const char *name, uintptr_t *function);
/* The kernel's one parameter is copied before the call returns. */
int weir_launch(uintptr_t context, uintptr_t stream, uintptr_t function, unsigned blocks, unsigned threads, void *parameter);

#endif
