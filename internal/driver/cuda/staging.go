//go:build cuda

package cuda

// #include "driver.h"
// #cgo noescape weir_alloc_host
// #cgo nocallback weir_copy_marked
import "C"

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// Plain Go memory travels through pinned blocks. A copy of at most one block is
// one region of the current block, so that it is submitted as one piece and
// never waits; a larger one is cut into blocks that several goroutines fill
// while earlier blocks travel.
const (
	blockBytes = 4 << 20
	// ringBlocks is how many blocks one large copy uses. A core fills a block at
	// about 8 GB/s and the link takes it at 50: with fewer than six the link waits.
	ringBlocks = 8
	// align keeps regions apart as the copy engines like them.
	align = 256
)

// staging is a context's pinned blocks. mu guards everything below it and is not
// held across a driver call or a copy of memory.
type staging struct {
	context *context

	mu      sync.Mutex
	current *pinned   // takes small copies
	resting []*pinned // copies from or to them may be under way
	idle    []*pinned
	blocks  int // that there are
}

// pinned is one block. Its regions are given out from its start to its end; it
// starts anew when they are all given back and the marks are done.
type pinned struct {
	at    uintptr
	fill  int64
	users int
	marks []mark
}

// mark is an event after the last copy of a stream from the block.
type mark struct {
	stream uint64
	event  C.uintptr_t
}

func (b *pinned) bytes(offset, n int64) []byte {
	return hostmem.Bytes(b.at+uintptr(offset), n)
}

// region answers n bytes of the current block, of which the caller is a user.
func (s *staging) region(op string, n int64) (*pinned, int64, error) {
	for {
		s.mu.Lock()
		if b := s.current; b != nil && b.fill+n <= blockBytes {
			offset := b.fill
			b.fill = min(blockBytes, (b.fill+n+align-1)&^(align-1))
			b.users++
			s.mu.Unlock()
			return b, offset, nil
		}
		s.mu.Unlock()
		fresh, err := s.take(op)
		if err != nil {
			return nil, 0, err
		}
		s.mu.Lock()
		if s.current != nil {
			s.resting = append(s.resting, s.current)
		}
		s.current = fresh
		s.mu.Unlock()
	}
}

// leave gives a region back.
func (s *staging) leave(b *pinned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.users--
}

// take answers a block that nothing uses.
func (s *staging) take(op string) (*pinned, error) {
	if b := s.spare(); b != nil {
		return b, nil
	}
	c := s.context
	var at C.uint64_t
	if err := c.device.check(op, C.weir_alloc_host(c.handle, blockBytes, &at)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocks++
	return &pinned{at: uintptr(at)}, nil
}

// more is take for a further block of one large copy: nil where the ring is used
// up.
func (s *staging) more(op string) *pinned {
	s.mu.Lock()
	full := s.blocks >= ringBlocks
	s.mu.Unlock()
	if full {
		return s.spare()
	}
	b, err := s.take(op)
	if err != nil {
		return nil // the copy goes on with the blocks that it has
	}
	return b
}

// spare answers an idle block, or one that has become idle; else nil.
func (s *staging) spare() *pinned {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		b := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return b
	}
	s.mu.Unlock()
	for tried := 0; ; tried++ {
		s.mu.Lock()
		if tried >= len(s.resting) {
			s.mu.Unlock()
			return nil
		}
		b := s.resting[0] // it goes to the end, or out
		s.resting = append(s.resting[:0], s.resting[1:]...)
		unused := b.users == 0
		s.mu.Unlock()
		if unused && s.travelled(b) {
			b.fill = 0
			return b
		}
		s.mu.Lock()
		s.resting = append(s.resting, b)
		s.mu.Unlock()
	}
}

// travelled says whether the copies of a block that nobody uses are done.
func (s *staging) travelled(b *pinned) bool {
	for n := len(b.marks); n > 0; n-- {
		if C.weir_event_query(s.context.handle, b.marks[n-1].event) != 0 {
			return false
		}
		s.context.events.give(b.marks[n-1].event)
		b.marks = b.marks[:n-1]
	}
	return true
}

// rest gives blocks back whose copies may be under way.
func (s *staging) rest(b *pinned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resting = append(s.resting, b)
}

// markFor answers an event to record on the stream after a copy: the block's
// mark of that stream, which may move on, or another.
func (s *staging) markFor(op string, b *pinned, stream uint64) (C.uintptr_t, error) {
	s.mu.Lock()
	for i, m := range b.marks {
		if m.stream == stream {
			last := len(b.marks) - 1
			b.marks[i] = b.marks[last]
			b.marks = b.marks[:last]
			s.mu.Unlock()
			return m.event, nil
		}
	}
	s.mu.Unlock()
	return s.context.events.take(op, s.context)
}

func (s *staging) mark(b *pinned, stream uint64, event C.uintptr_t) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.marks = append(b.marks, mark{stream, event})
}

// close gives all blocks back. Nothing uses them.
func (s *staging) close() {
	all := append(s.resting, s.idle...)
	if s.current != nil {
		all = append(all, s.current)
	}
	for _, b := range all {
		for _, m := range b.marks {
			s.context.await(m.event)
			C.weir_event_destroy(s.context.handle, m.event)
		}
		C.weir_free_host(s.context.handle, C.uint64_t(b.at))
	}
}

func (s *stream) CopyIn(dst driver.Ptr, src []byte) error {
	const op = "Stream.CopyIn"
	if len(src) > 0 && !address(dst) {
		return s.device.argument(op, "%d bytes to %#x; expected an address", len(src), dst)
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if s.capturing != nil { // a launch would read the staging memory, which others have then
		return s.device.unsupported(op, "a copy from Go memory cannot be captured")
	}
	switch {
	case len(src) == 0:
		return nil
	case len(src) > blockBytes:
		return s.pieces(op, len(src), func(b *pinned, event C.uintptr_t, from, to int) error {
			if err := s.arrived(op, event); err != nil { // what the block held before
				return err
			}
			copy(b.bytes(0, int64(to-from)), src[from:to])
			return s.copyMarked(op, dst+driver.Ptr(from), driver.Ptr(b.at), to-from, event)
		})
	}
	return s.stage(op, dst, src)
}

// stage copies at most one block to dst, on a stream that was entered.
func (s *stream) stage(op string, dst driver.Ptr, src []byte) error {
	st := &s.context.staging
	b, offset, err := st.region(op, int64(len(src)))
	if err != nil {
		return err
	}
	defer st.leave(b)
	copy(b.bytes(offset, int64(len(src))), src)
	event, err := st.markFor(op, b, s.serial)
	if err != nil {
		return err
	}
	err = s.copyMarked(op, dst, driver.Ptr(b.at)+driver.Ptr(offset), len(src), event)
	st.mark(b, s.serial, event)
	return err
}

func (s *stream) CopyOut(dst []byte, src driver.Ptr) error {
	const op = "Stream.CopyOut"
	if len(dst) == 0 {
		return s.synchronize(op)
	}
	if !address(src) {
		return s.device.argument(op, "%d bytes from %#x; expected an address", len(dst), src)
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if len(dst) > blockBytes {
		return s.pieces(op, len(dst), func(b *pinned, event C.uintptr_t, from, to int) error {
			if err := s.copyMarked(op, driver.Ptr(b.at), src+driver.Ptr(from), to-from, event); err != nil {
				return err
			}
			if err := s.arrived(op, event); err != nil {
				return err
			}
			copy(dst[from:to], b.bytes(0, int64(to-from)))
			return nil
		})
	}
	st := &s.context.staging
	b, offset, err := st.region(op, int64(len(dst)))
	if err != nil {
		return err
	}
	defer st.leave(b)
	event, err := s.context.events.take(op, s.context)
	if err != nil {
		return err
	}
	err = s.copyMarked(op, driver.Ptr(b.at)+driver.Ptr(offset), src, len(dst), event)
	if err == nil {
		err = s.arrived(op, event)
	}
	if err != nil {
		st.mark(b, s.serial, event) // the copy may still be under way
		return err
	}
	s.context.events.give(event)
	copy(dst, b.bytes(offset, int64(len(dst))))
	return nil
}

func (s *stream) copyMarked(op string, dst, src driver.Ptr, n int, event C.uintptr_t) error {
	return s.device.check(op, C.weir_copy_marked(s.context.handle, s.handle, C.uint64_t(dst), C.uint64_t(src), C.size_t(n), event))
}

func (s *stream) arrived(op string, event C.uintptr_t) error {
	return s.device.check(op, s.context.await(event))
}

// pieces goes through n bytes in blocks, several at a time. Each worker has a
// block and an event of its own; the first always gets them, so that no copy
// waits for another's blocks.
func (s *stream) pieces(op string, n int, move func(b *pinned, event C.uintptr_t, from, to int) error) error {
	st := &s.context.staging
	count := (n + blockBytes - 1) / blockBytes
	var next atomic.Int64
	var failed atomic.Pointer[error]
	work := func(b *pinned) {
		defer st.rest(b)
		event, err := s.context.events.take(op, s.context)
		if err == nil {
			defer st.mark(b, s.serial, event)
			for i := next.Add(1) - 1; i < int64(count) && err == nil && failed.Load() == nil; i = next.Add(1) - 1 {
				from := int(i) * blockBytes
				err = move(b, event, from, min(from+blockBytes, n))
			}
		}
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	first, err := st.take(op)
	if err != nil {
		return err
	}
	var workers sync.WaitGroup
	for range min(goruntime.GOMAXPROCS(0), ringBlocks, count) - 1 {
		b := st.more(op)
		if b == nil {
			break
		}
		workers.Go(func() { work(b) })
	}
	work(first)
	workers.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
