#include <complex.h>

struct large {
	long a, b, c, d;
};

int fakeVersion(void);
int fakeMany(char *into, int a, double b, long c, float d, const char *e, short f, unsigned g, double h, long i, int j, double k,
	double l, double m, double n, double o, double p, float q, const char *r);
int fakeVariadic(char *into, const char *format, ...);
double complex fakeComplex(double complex a, float complex b);
struct large fakeLarge(int a, double b);
int fakeAbsent(int a);
const char *fakeText(int status);
int fakeSwapped(int a);
int fakeInstead(int a);
