/*
 * Events with the time, for profiling alone. Results are those of driver.h,
 * whose functions record, await and destroy them as they do other events.
 */
#ifndef WEIR_MARK_H
#define WEIR_MARK_H

#include <stdint.h>

int weir_mark_new(uintptr_t context, uintptr_t *mark);
/* Waits for both, and answers the milliseconds from one to the other. */
int weir_mark_elapsed(uintptr_t context, uintptr_t from, uintptr_t to, float *milliseconds);

#endif
