/*
 * The loader: it finds a library, fills the slots of its trampolines, and keeps
 * the reason if it cannot. It runs once for each library, on the first call of
 * any of its functions, so that a program that never multiplies on a GPU does
 * not pay for mapping cuBLAS (50 ms and 150 MB of memory). Slots are written
 * with one store each; a thread that still sees the old one comes here, waits,
 * and jumps again.
 */
#define _GNU_SOURCE
#include "internal.h"
#include "weir_lazy.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A text that grows up to its size and is cut there. */
struct text {
	char bytes[4096];
	size_t length;
};

__attribute__((format(printf, 2, 3)))
static void append(struct text *t, const char *format, ...) {
	va_list args;
	va_start(args, format);
	int n = vsnprintf(t->bytes + t->length, sizeof t->bytes - t->length, format, args);
	va_end(args);
	if (n > 0) {
		t->length += (size_t)n;
		if (t->length >= sizeof t->bytes)
			t->length = sizeof t->bytes - 1;
	}
}

__attribute__((format(printf, 2, 3)))
static void note(struct text *errors, const char *format, ...) {
	struct text one = {.length = 0};
	va_list args;
	va_start(args, format);
	vsnprintf(one.bytes, sizeof one.bytes, format, args);
	va_end(args);
	append(errors, "%s%s", errors->length ? "; " : "", one.bytes);
}

/* file_of is the file of an open library. */
static const char *file_of(void *handle, const char *otherwise) {
	struct link_map *map = NULL;
	return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] ? map->l_name : otherwise;
}

/*
 * try opens one file or soname, and notes why it would not. A library of
 * somebody else's by this name is closed again, so that the system does not
 * answer it to those who ask for the name later.
 */
static bool try(struct weir_lazy_library *library, const char *name, struct text *errors) {
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *why = dlerror();
		note(errors, "%s", why ? why : name);
		return false;
	}
	for (size_t i = 0; i < library->count; i++)
		if (dlsym(handle, library->entries[i].name)) {
			library->handle = handle;
			library->path = strdup(file_of(handle, name));
			return true;
		}
	note(errors, "%s: it has none of the functions of this library", file_of(handle, name));
	dlclose(handle);
	return false;
}

/*
 * in_folders looks where the user said. A folder that lacks the file is no
 * error. What is no file is not opened, for a pipe would never answer.
 */
static bool in_folders(struct weir_lazy_library *library, const char *folders, struct text *errors) {
	while (*folders) {
		size_t length = strcspn(folders, ":");
		for (const char *const *soname = library->sonames; length && *soname; soname++) {
			struct text path = {.length = 0};
			struct stat info;
			append(&path, "%.*s/%s", (int)length, folders, *soname);
			if (stat(path.bytes, &info) != 0) {
				if (errno != ENOENT)
					note(errors, "%s: %s", path.bytes, strerror(errno));
			} else if (!S_ISREG(info.st_mode))
				note(errors, "%s: it is not a file", path.bytes);
			else if (try(library, path.bytes, errors))
				return true;
		}
		folders += length + (folders[length] == ':');
	}
	return false;
}

static void find(struct weir_lazy_library *library) {
	struct text errors = {.length = 0};
	const char *folders = secure_getenv("WEIR_CUDA_LIBRARY_PATH");
	if (folders && in_folders(library, folders, &errors))
		return;
	for (const char *const *soname = library->sonames; *soname; soname++)
		if (try(library, *soname, &errors))
			return;

	struct text names = {.length = 0};
	for (const char *const *soname = library->sonames; *soname; soname++)
		append(&names, "%s%s", names.length ? " or " : "", *soname);
	if (folders && *folders)
		weir_lazy_explain(library, "%s was found neither in WEIR_CUDA_LIBRARY_PATH (%s) nor where the system keeps libraries: %s",
			names.bytes, folders, errors.bytes);
	else
		weir_lazy_explain(library, "%s was not found where the system keeps libraries, and WEIR_CUDA_LIBRARY_PATH names no folder: %s",
			names.bytes, errors.bytes);
}

void weir_lazy_open(struct weir_lazy_library *library) {
	find(library);
	for (size_t i = 0; i < library->count; i++) {
		const struct weir_lazy_entry *entry = &library->entries[i];
		weir_lazy_function own = weir_lazy_symbol(library, entry->name);
		weir_lazy_function f = entry->always ? entry->always : own ? own : entry->otherwise;
		__atomic_store_n(&library->slots[i], f, __ATOMIC_RELEASE);
	}
}

weir_lazy_function weir_lazy_symbol(struct weir_lazy_library *library, const char *name) {
	return library->handle ? (weir_lazy_function)dlsym(library->handle, name) : NULL;
}

void weir_lazy_explain(struct weir_lazy_library *library, const char *format, ...) {
	char *text = NULL;
	if (format) {
		va_list args;
		va_start(args, format);
		if (vasprintf(&text, format, args) < 0)
			text = NULL;
		va_end(args);
	}
	/* The old text stays: somebody may be reading it. */
	__atomic_store_n(&library->reason, text, __ATOMIC_RELEASE);
}

const char *weir_lazy_no_text(int status) {
	(void)status;
	return "";
}

static struct weir_lazy_library *loaded(const char *name) {
	for (size_t i = 0; i < weir_lazy_library_count; i++) {
		struct weir_lazy_library *library = weir_lazy_libraries[i];
		if (library && strcmp(library->name, name) == 0) {
			library->load();
			return library;
		}
	}
	return NULL;
}

const char *weir_lazy_path(const char *name) {
	struct weir_lazy_library *library = loaded(name);
	return library && library->path ? library->path : "";
}

const char *weir_lazy_reason(const char *name) {
	struct weir_lazy_library *library = loaded(name);
	if (!library)
		return "it is not linked into this program";
	const char *reason = __atomic_load_n(&library->reason, __ATOMIC_ACQUIRE);
	return reason ? reason : "";
}

const char *weir_lazy_missed(const char *name) {
	struct weir_lazy_library *library = loaded(name);
	const char *missed = library ? __atomic_exchange_n(&library->missed, NULL, __ATOMIC_ACQ_REL) : NULL;
	return missed ? missed : "";
}

int weir_lazy_has(const char *name, const char *function) {
	struct weir_lazy_library *library = loaded(name);
	return library && weir_lazy_symbol(library, function) != NULL;
}
