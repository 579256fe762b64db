//go:build cuda

package cuda

// #include "notify.h"
// #cgo noescape weir_notes_take
// #cgo noescape weir_notes_free
import "C"

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/weirgo/weir/internal/driver"
)

// patience is how often the reader looks after pending notifications, whatever
// arrives in between.
const patience = 50 * time.Millisecond

// notices is the process's one list of pending notifications.
//
// Its reader runs from the first notification until none is pending and no
// context is left; then the eventfd is closed too. Rejected: a reader that ends
// whenever nothing is pending (each wait would open an eventfd and start a
// goroutine), and one for each device (a thread more for each in a poll).
var notices notifications

// notifications: mu guards all fields. No driver call and no waker runs under
// it.
type notifications struct {
	mu       sync.Mutex
	pending  map[C.uintptr_t]notice
	serial   uint64 // of the last notice
	contexts int
	reading  bool
}

// notice is a pending notification. Its stream was entered for it, and is left
// before the waker is woken.
type notice struct {
	stream    *stream
	waker     driver.Waker
	serial    uint64 // never used again, as the note's address may be
	submitted bool   // the host function is in the stream
	covered   bool   // and a look's event behind it
}

func (s *stream) Notify(w driver.Waker) error {
	const op = "Stream.Notify"
	if err := s.enter(op); err != nil {
		return err
	}
	if s.capturing != nil { // each launch would announce a note that is gone
		s.leave()
		return s.device.unsupported(op, "a notification cannot be captured")
	}
	note := C.weir_note_new()
	if note == 0 {
		s.leave()
		return s.device.outOfMemory(op, "no memory for a note")
	}
	serial, err := notices.add(note, s, w)
	if err != nil {
		C.weir_note_free(note)
		s.leave()
		return s.device.unsupported(op, "an eventfd cannot be made: "+err.Error())
	}
	result := C.weir_notify(s.context.handle, s.handle, note)
	if result == 0 {
		notices.submitted(note, serial)
		if s.device.dead.Load() != nil { // mourn may have looked before
			go notices.mourn(s.device)
		}
		return nil
	}
	err = s.device.check(op, result)
	if !notices.remove(note) {
		return nil // the device died meanwhile, and the waker knows
	}
	C.weir_note_free(note)
	s.leave()
	return err
}

// opened and closed count contexts.
func (n *notifications) opened() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.contexts++
}

func (n *notifications) closed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.contexts--
	if n.contexts == 0 && n.reading {
		C.weir_notes_poke()
	}
}

// add makes a note known, answers the notice's serial, and starts the reader.
func (n *notifications) add(note C.uintptr_t, s *stream, w driver.Waker) (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.reading {
		fd := C.weir_notes_open()
		if fd < 0 {
			return 0, syscall.Errno(-fd)
		}
		n.reading = true
		go n.read(os.NewFile(uintptr(fd), "eventfd"))
	}
	if n.pending == nil {
		n.pending = map[C.uintptr_t]notice{}
	}
	n.serial++
	n.pending[note] = notice{stream: s, waker: w, serial: n.serial}
	return n.serial, nil
}

// submitted says that a notice's host function is in its stream. It may have
// arrived since, and another notice have the note's address.
func (n *notifications) submitted(note C.uintptr_t, serial uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if what, ok := n.pending[note]; ok && what.serial == serial {
		what.submitted = true
		n.pending[note] = what
	}
}

// remove forgets a note; false if it was no longer known.
func (n *notifications) remove(note C.uintptr_t) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.pending[note]
	delete(n.pending, note)
	return ok
}

// read wakes the wakers of notes as they arrive, and looks after those that do
// not.
func (n *notifications) read(file *os.File) {
	var count [8]byte
	var arrived [64]C.uintptr_t
	ready := make([]notice, 0, len(arrived))
	under := looks{}
	next := time.Now().Add(patience)
	for {
		_ = file.SetReadDeadline(next)
		_, _ = file.Read(count[:])
		for {
			k := C.weir_notes_take(&arrived[0], C.size_t(len(arrived)))
			if k == 0 {
				break
			}
			ready = n.known(arrived[:k], ready[:0], under)
			C.weir_notes_free(&arrived[0], k)
			wake(ready, nil)
			clear(ready)
		}
		if now := time.Now(); !now.Before(next) {
			n.look(under)
			next = now.Add(patience)
		}
		if n.over(file) {
			return
		}
	}
}

// wake ends notices that are off the list. The stream comes first: who is woken
// may destroy it.
func wake(all []notice, err error) {
	for _, what := range all {
		what.stream.leave()
		what.waker.Wake(err)
	}
}

// known takes notes off the list and answers what they announced. A note whose
// device died is off it already.
func (n *notifications) known(notes []C.uintptr_t, ready []notice, under looks) []notice {
	n.mu.Lock()
	for _, note := range notes {
		if what, ok := n.pending[note]; ok {
			delete(n.pending, note)
			ready = append(ready, what)
		}
	}
	n.mu.Unlock()
	for _, what := range ready {
		if what.covered {
			under.arrived(what.stream)
		}
	}
	return ready
}

// over ends the reader when it has nothing to wait for.
func (n *notifications) over(file *os.File) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pending) > 0 || n.contexts > 0 {
		return false
	}
	C.weir_notes_close()
	_ = file.Close() // an eventfd has nothing to lose
	n.reading = false
	return true
}

// mourn wakes every waker of a dead device.
func (n *notifications) mourn(d *device) {
	var left []notice
	n.mu.Lock()
	for note, what := range n.pending {
		if what.stream.device == d {
			delete(n.pending, note)
			C.weir_note_abandon(note)
			left = append(left, what)
		}
	}
	n.mu.Unlock()
	wake(left, d.Err())
}
