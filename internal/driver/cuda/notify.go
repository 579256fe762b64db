//go:build cuda

package cuda

// #include "notify.h"
// #cgo noescape weir_notes_take
// #cgo noescape weir_notes_free
import "C"

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weirgo/weir/internal/driver"
)

// patience is how long the reader sleeps before it asks whether the contexts of
// pending notifications still live.
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
	contexts int
	reading  bool
}

// notice is a pending notification; it holds its device's context.
type notice struct {
	stream *stream
	waker  driver.Waker
}

func (s *stream) Notify(w driver.Waker) error {
	const op = "Stream.Notify"
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	note := C.weir_note_new()
	if note == 0 {
		return s.device.outOfMemory(op, "no memory for a note")
	}
	s.device.again()
	if err := notices.add(note, notice{s, w}); err != nil {
		C.weir_note_free(note)
		s.device.release()
		return s.device.unsupported(op, "an eventfd cannot be made: "+err.Error())
	}
	result := C.weir_notify(s.context.handle, s.handle, note)
	if result == 0 {
		if s.device.dead.Load() != nil { // mourn may have looked before
			go notices.mourn(s.device)
		}
		return nil
	}
	err := s.device.check(op, result)
	if !notices.remove(note) {
		return nil // the device died meanwhile, and the waker knows
	}
	C.weir_note_free(note)
	s.device.release()
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

// add makes a note known, and starts the reader.
func (n *notifications) add(note C.uintptr_t, what notice) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.reading {
		fd := C.weir_notes_open()
		if fd < 0 {
			return syscall.Errno(-fd)
		}
		n.reading = true
		go n.read(os.NewFile(uintptr(fd), "eventfd"))
	}
	if n.pending == nil {
		n.pending = map[C.uintptr_t]notice{}
	}
	n.pending[note] = what
	return nil
}

// remove forgets a note; false if it was no longer known.
func (n *notifications) remove(note C.uintptr_t) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.pending[note]
	delete(n.pending, note)
	return ok
}

// read wakes the wakers of notes as they arrive.
func (n *notifications) read(file *os.File) {
	var count [8]byte
	var arrived [64]C.uintptr_t
	ready := make([]notice, 0, len(arrived))
	for {
		_ = file.SetReadDeadline(time.Now().Add(patience))
		_, late := file.Read(count[:])
		for {
			k := C.weir_notes_take(&arrived[0], C.size_t(len(arrived)))
			if k == 0 {
				break
			}
			ready = n.known(arrived[:k], ready[:0])
			C.weir_notes_free(&arrived[0], k)
			for _, r := range ready {
				r.waker.Wake(nil)
				r.stream.device.release()
			}
			clear(ready)
		}
		if late != nil {
			for _, c := range n.awaited() {
				c.ask()
			}
		}
		if n.over(file) {
			return
		}
	}
}

// known takes notes off the list and answers what they announced. A note whose
// device died is off it already.
func (n *notifications) known(notes []C.uintptr_t, ready []notice) []notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, note := range notes {
		if what, ok := n.pending[note]; ok {
			delete(n.pending, note)
			ready = append(ready, what)
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

// awaited answers the contexts that have pending notifications, each with one
// more reference.
func (n *notifications) awaited() []*context {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*context
	for _, what := range n.pending {
		if c := what.stream.context; !slices.Contains(all, c) {
			all = append(all, c)
			c.device.again()
		}
	}
	return all
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
	for _, what := range left {
		what.waker.Wake(d.Err())
		d.release()
	}
}
