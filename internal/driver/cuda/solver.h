/* Handles of cuSOLVER; driver.h says how calls are made. A result is 0, a
   CUresult, or the negative of the library's status. */
#ifndef WEIR_SOLVER_H
#define WEIR_SOLVER_H

#include <stddef.h>
#include <stdint.h>

struct weir_solver;

/* A decomposition with m >= n; the elements are those that cuBLAS has, with the
   numbers of package dtype, and factors those of package driver. */
struct weir_svd {
	int32_t dtype, factors;
	int64_t m, n, lda, ldu, ldvh;
	uint64_t a, s, u, vh;
	uint64_t work, info; /* work_bytes, and an int32_t that is 0 for success */
	size_t work_bytes, host_bytes;
};

int weir_solver_new(uintptr_t context, struct weir_solver **solver);
/* The library's own handle. */
uintptr_t weir_solver_native(const struct weir_solver *solver);
/* Waits for the handle's last work. */
int weir_solver_destroy(uintptr_t context, struct weir_solver *solver);
/* For a handle whose context is dead, as in blas.h. */
void weir_solver_forget(struct weir_solver *solver);
/* Makes the workspace at least so large, and answers where it is and what it has;
   growing waits for the handle's last work. */
int weir_solver_reserve(uintptr_t context, struct weir_solver *solver, size_t bytes, uint64_t *address, size_t *has);
/* What the handle does between begin and end, on one stream, comes after what it
   did before. serial is the stream's own number. */
int weir_solver_begin(uintptr_t context, struct weir_solver *solver, uintptr_t stream, uint64_t serial);
int weir_solver_end(uintptr_t context, struct weir_solver *solver, uintptr_t stream);
/* Copies bytes from the device, and waits for the stream. */
int weir_solver_read(uintptr_t context, uintptr_t stream, uint64_t from, size_t bytes, void *to);

/* Fills in work_bytes and host_bytes; reads no address. */
int weir_solver_svd_sizes(uintptr_t context, struct weir_solver *solver, struct weir_svd *svd);
/* Waits for the stream: cuSOLVER looks at its results in between. */
int weir_solver_svd(uintptr_t context, struct weir_solver *solver, const struct weir_svd *svd);

#endif
