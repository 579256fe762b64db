/* The shared library that fake.txt describes. It has all but fakeAbsent. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>

int fakeVersion(void) { return VERSION; }

int fakeMany(char *into, int a, double b, long c, float d, const char *e, short f, unsigned g, double h, long i, int j, double k,
	double l, double m, double n, double o, double p, float q, const char *r) {
	return sprintf(into, "%d %g %ld %g %s %d %u %g %ld %d %g %g %g %g %g %g %g %s", a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
}

int fakeVariadic(char *into, const char *format, ...) {
	va_list args;
	va_start(args, format);
	int n = vsprintf(into, format, args);
	va_end(args);
	return n;
}

double complex fakeComplex(double complex a, float complex b) { return a * b; }

struct large fakeLarge(int a, double b) { return (struct large){a, (long)b, 3, 4}; }

const char *fakeText(int status) { return status == 5 ? "five" : "other"; }

int fakeSwapped(int a) { return -a; }
