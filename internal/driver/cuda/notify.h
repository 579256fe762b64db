/*
 * Notifications. A host function pushes its note on a list and wakes the one
 * reader through an eventfd; it makes no driver call, enters no Go code and
 * takes no lock.
 *
 * A note is pending until its host function runs or it is abandoned, whichever
 * comes first. Who wins is one exchange, so that a callback that comes after it
 * was given up touches nothing but its own note.
 */
#ifndef WEIR_NOTIFY_H
#define WEIR_NOTIFY_H

#include <stddef.h>
#include <stdint.h>

/* Opens the eventfd and answers it, or -errno. One at a time is open. */
int weir_notes_open(void);
/* No note may be pending. The caller closes the descriptor after it. */
void weir_notes_close(void);
/* Wakes the reader for nothing. */
void weir_notes_poke(void);
/* Answers up to room notes whose host functions ran, oldest first. */
size_t weir_notes_take(uintptr_t *notes, size_t room);
/* Frees notes that take answered. */
void weir_notes_free(const uintptr_t *notes, size_t count);

/* Answers a new note, 0 without memory. */
uintptr_t weir_note_new(void);
/* For a note whose host function was never submitted. */
void weir_note_free(uintptr_t note);
/* Gives up a note whose host function may never come; 0 if it has come. */
int weir_note_abandon(uintptr_t note);
int weir_notify(uintptr_t context, uintptr_t stream, uintptr_t note);

#endif
