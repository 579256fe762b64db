// Package lease is the one pool behind streams and provider handles: a fixed
// set of slots, each idle, leased, or pending (given back, with device work
// still under way). A slot carries the tail of its last user's work and is
// found idle by asking that tail; a notification is armed only while somebody
// waits, because arming costs far more than asking.
//
// Invariants:
//
//  1. A slot goes idle → leased → pending → idle. Nobody gets a pending slot.
//  2. While anybody waits, no newcomer gets a slot: first come, first served.
//  3. mu is never held across a call of a tail, which may enter the driver.
//     Whoever asks a tail holds the slot's probing mark meanwhile, so that no
//     tail is asked by two at once.
//  4. While anybody waits, every pending slot has a notification armed or is
//     being probed, and a probe that found work unfinished arms one. So a
//     wake-up or a waiter that comes during a probe is not lost. A timer asks
//     the tails and the device's health now and then, so that a notification
//     that never comes delays but never hangs.
//  5. A handle names slot, generation and holder. One whose holder is gone is
//     stale: its uses answer ErrStale and its releases do nothing. Which holder
//     is the last is decided under mu, by Leave; only then is the tail made.
//
// Rejected: arming a host function at each release (2.3 us, and 5 us more for
// the stream, against 0.16 us for asking an event); a list of idle slots kept
// in a second place (slots are few; their state is scanned).
//
// A thing that its holder called broken is remade before anyone gets it. While
// that fails, its slot stays pending, and after a few tries whose turn it is
// gets the reason.
//
// Ownership: a handle is released once; more is harmless. Cancellation: a
// cancelled Acquire leaves the queue, and a slot that was on its way to it goes
// to the next. Errors: ErrClosed, ErrStale, and the device's terminal error.
package lease
