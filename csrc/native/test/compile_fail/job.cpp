// Entry points that cannot be jobs: with REFUSED defined as one of the numbers below
// this must not compile, with 0 it must. compile_fail.sh goes through them.
#include "raftrkt/job.hpp"

#include <string>

enum choice : int { one };
struct record {
	int number;
};

#if REFUSED == 0
int f(void *, const rr_view *, rr_deposit *, int32_t, int64_t, uint64_t, float, double, int32_t *, int64_t *,
      uint64_t *, float *, double *);
#elif REFUSED == 1
int f(void *, bool);
#elif REFUSED == 2
int f(void *, char);
#elif REFUSED == 3
int f(void *, int16_t);
#elif REFUSED == 4
int f(void *, uint32_t);
#elif REFUSED == 5
int f(void *, long double);
#elif REFUSED == 6
int f(void *, const char *);
#elif REFUSED == 7
int f(void *, std::string);
#elif REFUSED == 8
int f(void *, rr_view *);
#elif REFUSED == 9
int f(void *, rr_view);
#elif REFUSED == 10
int f(void *, const rr_deposit *);
#elif REFUSED == 11
int f(void *, const double *);
#elif REFUSED == 12
int f(void *, double &);
#elif REFUSED == 13
int f(void *, double **);
#elif REFUSED == 14
int f(void *, uint32_t *);
#elif REFUSED == 15
int f(const void *, double);
#elif REFUSED == 16
int f(void *, choice);
#elif REFUSED == 17
int f(void *, record);
#elif REFUSED == 18
int f(void *, int (*)(int));
#elif REFUSED == 19
int f(void *, ...);
#elif REFUSED == 20
void f(void *, double);
#elif REFUSED == 21
double f(void *, double);
#endif

void f_job(void *args, size_t args_len, rr_job_outcome *outcome) {
	static thread_local raftrkt::error_slot slot;
	raftrkt::run_job<&f>(args, args_len, outcome, slot);
}
