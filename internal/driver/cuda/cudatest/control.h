#ifndef WEIR_TEST_CONTROL_H
#define WEIR_TEST_CONTROL_H

#include <stddef.h>
#include <stdint.h>

/* Answers 0 or a CUresult; release takes the flag. */
int weir_test_stall(uintptr_t stream, uintptr_t *flag);
void weir_test_release(uintptr_t flag);

/* The simulator's own controls (csrc/simcuda/weir_sim.h); a driver that has none
   is left alone, and answers 0. */
int weir_test_simulated(void);
void weir_test_kill(int device, int error);
void weir_test_revive(void);
void weir_test_drop_callbacks(long long count);
void weir_test_fail(const char *function, long long nth, int error);
long long weir_test_count(const char *function);
long long weir_test_live(const char *kind);
long long weir_test_misuse(char *text, size_t size);

/* Bytes that the process has from malloc. */
long long weir_test_heap(void);

#endif
