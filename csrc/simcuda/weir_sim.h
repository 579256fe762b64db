/*
 * The simulator's controls, for tests. libcuda.so.1 of build/simcuda exports
 * them; a real driver does not, so find them with dlsym. They may be called at
 * any time, from any thread, but not in a host function.
 *
 * Devices are ordinals, streams are CUstream, errors are the numbers of the
 * library whose function is named. README.md says more of each.
 */
#ifndef WEIR_SIM_H
#define WEIR_SIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* weir_sim_kill makes a device die of an error, now, and with it every other, as
 * the real driver does. The first error stays. */
void weir_sim_kill(int device, int error);

/* weir_sim_drop_callbacks loses the next count host functions: none of them is
 * called, and their streams go on. */
void weir_sim_drop_callbacks(long long count);

/* weir_sim_stall holds back what is submitted to the stream after it. It
 * answers a ticket for weir_sim_release, or 0 if there is no such stream or its
 * device is dead. */
unsigned long long weir_sim_stall(void *stream);

/* weir_sim_release ends a stall. Again, or with a ticket that there is not, it
 * does nothing. */
void weir_sim_release(unsigned long long ticket);

/* weir_sim_slow has the stream wait before each operation. */
void weir_sim_slow(void *stream, long long microseconds);

/* weir_sim_fail makes the nth call of a function from now (1 is the next)
 * answer error and do nothing else. An error that ends a context ends it. */
void weir_sim_fail(const char *function, long long nth, int error);

/* weir_sim_count says how often a function was called, by the name that the
 * library exports: cuMemAlloc_v2. */
long long weir_sim_count(const char *function);

/* weir_sim_misuse says how much misuse was seen, and copies what it was to
 * text, a line each, as far as size bytes go. */
long long weir_sim_misuse(char *text, size_t size);

/* weir_sim_live counts what is live: context, stream, event, pool, module,
 * function, allocation (plain and of pools), host-allocation, byte (of device
 * memory, held by pools or not), graph, graph-exec, cublas, cusolver, thread. -1:
 * no such kind. */
long long weir_sim_live(const char *kind);

/* weir_sim_revive gives the devices that died back their lives, and takes all
 * that they had: their contexts, streams, events, pools and memory are gone. */
void weir_sim_revive(void);

/* weir_sim_reset revives every device, and forgets misuse, counts, stalls and
 * planned failures. */
void weir_sim_reset(void);

#ifdef __cplusplus
}
#endif

#endif
