//go:build cuda

package cuda

// #include "driver.h"
// #include "notify.h"
import "C"

// looks are what the reader has under way, one for each stream at most: it
// records an event behind the stream's pending host functions. Once the event is
// done, those that have not come never will, and their notices are given up. A
// device that died without anybody's notice answers its error to a look.
//
// Rejected: an event for each notification (a driver call more for each, for what
// hardly happens), and asking whether the stream is idle (one that is kept busy
// never is).
type looks map[*stream]*look

// look holds its stream's context, so that the event can be given back.
type look struct {
	event C.uintptr_t
	left  int // covered notices that are pending; of a device that lives
}

// look ends the looks whose events are done, and begins one for each other stream
// that has notices.
func (n *notifications) look(under looks) {
	const op = "Device.watch"
	for s, l := range under {
		done, err := s.device.done(op, C.weir_event_query(s.context.handle, l.event))
		if done {
			wake(n.lost(s), nil)
		}
		if done || err != nil { // an error that matters is kept by the device
			under.end(s)
		}
	}
	for s, l := range n.cover(under) {
		event, err := s.context.events.take(op, s.context)
		if err != nil {
			s.device.release()
			continue
		}
		l.event = event
		under[s] = l
		if s.device.check(op, C.weir_record(s.context.handle, s.handle, event, 0)) != nil {
			under.end(s)
		}
	}
}

// arrived counts out a covered notice.
func (u looks) arrived(s *stream) {
	if l := u[s]; l != nil {
		if l.left--; l.left == 0 {
			u.end(s)
		}
	}
}

func (u looks) end(s *stream) {
	s.context.events.give(u[s].event)
	delete(u, s)
	s.device.release()
}

// cover answers a look without an event for each stream that needs one, and one
// more reference to its context.
func (n *notifications) cover(under looks) looks {
	begun := looks{}
	n.mu.Lock()
	defer n.mu.Unlock()
	for note, what := range n.pending {
		s := what.stream
		if !what.submitted || under[s] != nil {
			continue
		}
		what.covered = true
		n.pending[note] = what
		if begun[s] == nil {
			begun[s] = &look{}
			s.device.again()
		}
		begun[s].left++
	}
	return begun
}

// lost takes a stream's covered notices off the list, but for those whose host
// functions have come and are about to be read.
func (n *notifications) lost(s *stream) (lost []notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for note, what := range n.pending {
		if what.stream == s && what.covered && C.weir_note_abandon(note) != 0 {
			delete(n.pending, note)
			lost = append(lost, what)
		}
	}
	return lost
}
