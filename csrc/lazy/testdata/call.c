/*
 * Calls the function that the argument names, first of all, and prints what it
 * answers, one line a call.
 */
#include "fake.h"
#include "weir_lazy.h"

#include <stdio.h>
#include <string.h>

static void many(void) {
	char text[512];
	fakeMany(text, 1, 2.5, 3, 4.5f, "five", 6, 7, 8.5, 9, 10, 11.5, 12.5, 13.5, 14.5, 15.5, 16.5, 17.5f, "eighteen");
	puts(text);
}

static void variadic(void) {
	char text[512];
	fakeVariadic(text, "%d %g %s %ld %g", 1, 2.5, "three", 4L, 5.5);
	puts(text);
}

static void complexes(void) {
	double complex c = fakeComplex(1 + 2 * I, 3 + 4 * I);
	printf("%g %g\n", creal(c), cimag(c));
}

static void large(void) {
	struct large l = fakeLarge(1, 2.0);
	printf("%ld %ld %ld %ld\n", l.a, l.b, l.c, l.d);
}

static void ask(void) {
	printf("path %s\nreason %s\nhas %d %d\n", weir_lazy_path("fake"), weir_lazy_reason("fake"), weir_lazy_has("fake", "fakeMany"), weir_lazy_has("fake", "fakeAbsent"));
	printf("other path %s\nother reason %s\nother has %d\n", weir_lazy_path("other"), weir_lazy_reason("other"), weir_lazy_has("other", "fakeMany"));
}

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "version"))
			printf("%d\n", fakeVersion());
		else if (!strcmp(argv[i], "many"))
			many();
		else if (!strcmp(argv[i], "variadic"))
			variadic();
		else if (!strcmp(argv[i], "complex"))
			complexes();
		else if (!strcmp(argv[i], "large"))
			large();
		else if (!strcmp(argv[i], "absent"))
			printf("%d\n", fakeAbsent(1));
		else if (!strcmp(argv[i], "text"))
			printf("'%s'\n", fakeText(5));
		else if (!strcmp(argv[i], "missed"))
			printf("missed '%s', other missed '%s'\n", weir_lazy_missed("fake"), weir_lazy_missed("other"));
		else if (!strcmp(argv[i], "swapped"))
			printf("%d\n", fakeSwapped(21));
		else if (!strcmp(argv[i], "ask"))
			ask();
	}
	return 0;
}
