/*
 * The kernels' twins on the processor, for the simulated driver: kernels.cu
 * compiled as C++ (g++ -x c++ -std=c++17 -fno-strict-aliasing kernels.cu)
 * defines them.
 *
 * A twin does the whole launch, whatever the grid, at the addresses that its
 * parameters name; who keeps device memory elsewhere changes them first. It
 * reads and writes nothing else.
 */
#ifndef WEIR_KERNELS_TWINS_H
#define WEIR_KERNELS_TWINS_H

#include "params.h"

#include <stddef.h>

struct weir_twin {
	const char *name;                    /* the kernel's, NULL at the end of the list */
	int operands;                        /* of weir_views, the result first; 0: a weir_product */
	size_t bytes;                        /* of its one parameter */
	void (*run)(const void *parameters); /* does the work */
};

extern const struct weir_twin weir_twins[];

#endif
