//go:build cuda

#include "notify.h"

#include "driver.h"

#include <cuda.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { pending, fired, abandoned };

struct note {
	atomic_int state;
	struct note *next;
};

static _Atomic(struct note *) arrived; /* the latest first */
static struct note *taken;             /* the reader's, the oldest first */
static atomic_int descriptor = -1;
static atomic_int running; /* host functions between their first and last step */

int weir_notes_open(void) {
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	atomic_store(&descriptor, fd);
	return fd;
}

void weir_notes_close(void) {
	while (atomic_load(&running))
		sched_yield(); /* it has its note behind it: a few instructions */
	atomic_store(&descriptor, -1);
}

void weir_notes_poke(void) {
	uint64_t one = 1;
	ssize_t written = write(atomic_load(&descriptor), &one, sizeof one);
	(void)written; /* fails only when the reader has more to read than it can count */
}

size_t weir_notes_take(uintptr_t *notes, size_t room) {
	if (!taken) {
		struct note *note = atomic_exchange(&arrived, NULL);
		while (note) {
			struct note *next = note->next;
			note->next = taken;
			taken = note;
			note = next;
		}
	}
	size_t count = 0;
	for (; taken && count < room; count++) {
		struct note *note = taken;
		taken = note->next;
		notes[count] = (uintptr_t)note;
	}
	return count;
}

void weir_notes_free(const uintptr_t *notes, size_t count) {
	for (size_t i = 0; i < count; i++)
		free((void *)notes[i]);
}

uintptr_t weir_note_new(void) {
	struct note *note = malloc(sizeof *note);
	if (note)
		atomic_init(&note->state, pending);
	return (uintptr_t)note;
}

void weir_note_free(uintptr_t note) { free((void *)note); }

int weir_note_abandon(uintptr_t name) {
	struct note *note = (struct note *)name;
	int was = pending;
	/* The note stays: its host function frees it, if it comes. */
	return atomic_compare_exchange_strong(&note->state, &was, abandoned);
}

static void CUDA_CB arrive(void *data) {
	struct note *note = data;
	atomic_fetch_add(&running, 1);
	int was = pending;
	if (atomic_compare_exchange_strong(&note->state, &was, fired)) {
		note->next = atomic_load(&arrived);
		while (!atomic_compare_exchange_weak(&arrived, &note->next, note))
			;
		weir_notes_poke();
	} else {
		free(note);
	}
	atomic_fetch_sub(&running, 1);
}

int weir_notify(uintptr_t context, uintptr_t stream, uintptr_t note) {
	WEIR_WITH(context, cuLaunchHostFunc((CUstream)stream, arrive, (void *)note));
}
