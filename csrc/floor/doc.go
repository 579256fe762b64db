// Package floor does on a GPU what Weir does, without Weir: loops in C straight
// against the driver and cuBLAS, timed in C by the monotonic clock and by events.
// They are what package bench puts beside Weir's times. It is built with the tag
// cuda and calls nothing of Weir's; the libraries come through csrc/lazy.
//
//   - Chain: products of square matrices, each of the one before, on one stream or
//     on several in turn.
//   - Products: bursts of products over several streams, each stream with a
//     handle of its own; one that writes the result of another stream's waits for
//     that one's event.
//   - CopyIn and CopyOut: copies between the device and plain or page-locked
//     memory.
//   - Batch: independent products of one shape by one call of cuBLAS.
//   - Program: products of any shapes that wait for each other, over several
//     streams, submitted one by one or replayed as a captured graph.
//   - Call: one driver call again and again, or a pair that makes and destroys.
//   - Start: what a process must do before its first work.
//
// Each product of Chain and Products is followed by the record of an event without
// timing, as somebody must learn that it is done; Batch and Program, which are the
// least that the work costs, record none but those that another stream waits for,
// and allocate nothing meanwhile. Matrices are row-major. Device addresses are
// numbers, so that a loop may work on anybody's memory.
//
// Loops wait for what they submit, and leave the calling thread's current device
// as it was. Call has at most 512 operations in flight: beyond about a thousand a
// submission waits for the device, and would be timed as if it cost that much.
//
// Ownership: who opens a GPU closes it, after its batches and programs, and frees what was allocated; memory that
// is left goes with the process's last user of the device. Concurrency: a GPU is
// for one goroutine at a time. Errors are *weir.Error with the driver's or
// cuBLAS's code; those of memory match ErrOutOfMemory.
package floor
