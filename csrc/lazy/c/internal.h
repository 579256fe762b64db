/* What the generated tables, the loader and the hand-written functions share. */
#ifndef WEIR_LAZY_INTERNAL_H
#define WEIR_LAZY_INTERNAL_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

typedef void (*weir_lazy_function)(void);

struct weir_lazy_entry {
	const char *name;
	weir_lazy_function always;    /* takes the calls, if it is not NULL */
	weir_lazy_function otherwise; /* takes them where the library has no such function */
};

struct weir_lazy_library {
	const char *name;
	const char *const *sonames; /* the best first, NULL last */
	const struct weir_lazy_entry *entries;
	size_t count;
	weir_lazy_function *slots; /* what the trampolines jump through, one for each entry */
	void (*load)(void);        /* loads once, whoever comes first */

	/* Written once, by load. */
	void *handle;
	const char *path;
	/* NULL, or texts that are never freed. Atomic. */
	const char *reason;
	const char *missed; /* a function that was called and is not there */
};

/* weir_lazy_libraries lists what is linked in; NULL stands for what is not. */
extern struct weir_lazy_library *const weir_lazy_libraries[];
extern const size_t weir_lazy_library_count;

/* weir_lazy_open does the work of load. */
void weir_lazy_open(struct weir_lazy_library *library);

/* weir_lazy_symbol is the loaded library's own function, or NULL. */
weir_lazy_function weir_lazy_symbol(struct weir_lazy_library *library, const char *name);

/* weir_lazy_explain sets the reason, and with a NULL format clears it. */
void weir_lazy_explain(struct weir_lazy_library *library, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* weir_lazy_no_text stands for functions that answer a text by status. */
const char *weir_lazy_no_text(int status);

#pragma GCC visibility pop

#endif
