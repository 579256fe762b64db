package host

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostblas"
)

// stream is an ordered queue.
//
// Invariants:
//  1. running is true from the submission that starts a drain until that drain
//     finds the queue empty; at most one goroutine drains. A stream that waits
//     for an event stays running, in the event's list and with no goroutine;
//     whoever takes it out of the list starts the next drain.
//  2. finished counts work that ended; submitted counts work that was accepted.
//     The stream is idle when they are equal. What tells others that work ended
//     (a record, a notification) is counted before they are told.
//  3. An idle stream records an event by marking it done on the spot, and waits
//     for one by joining its list, so that neither starts a goroutine.
//  4. Work that takes less time than handing it over runs on the submitting
//     goroutine if the stream is idle (see small), unless it would have to wait
//     for a processor core.
//  5. A drain whose queue is empty goes on with a stream that its last record
//     released, so that a chain over several streams stays on one goroutine.
//  6. On a dead device no work begins; its queues are flushed at once, even
//     behind work that never ends: records and notifications end, the rest is
//     dropped.
//
// mu guards queue, running, destroyed and submitted. No work, event or waker
// runs under it; an event's mutex may be taken under it. Rejected: a goroutine
// per stream that lives as long as the stream (it must be stopped, and an idle
// one costs a wake-up just the same); always handing over (5 us for each product
// of 64×64, which takes 8).
type stream struct {
	dev   *device
	start func() // s.drain, made once so that starting it allocates nothing

	mu        sync.Mutex
	queue     ring
	running   bool
	destroyed bool
	submitted atomic.Uint64 // written under mu
	finished  atomic.Uint64

	// Where the stream waits; under the mutex of the event whose list it is in.
	nextParked *stream
	parkedFor  uint64

	waiting atomic.Pointer[event] // the event whose list it is in, for Kill
}

func (d *device) NewStream(priority int) (driver.Stream, error) {
	const op = "Device.NewStream"
	if err := d.alive(op); err != nil {
		return nil, err
	}
	if priority > d.caps.PriorityLeast || priority < d.caps.PriorityGreatest {
		return nil, d.argument(op, "priority %d; expected %d (greatest) to %d (least)",
			priority, d.caps.PriorityGreatest, d.caps.PriorityLeast)
	}
	s := &stream{dev: d}
	s.start = s.drain
	d.mu.Lock()
	d.streams = append(d.streams, s)
	d.mu.Unlock()
	return s, nil
}

// usable is nil, or why call op cannot be made.
func (s *stream) usable(op string) error {
	if err := s.dev.alive(op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(op)
}

// open is nil, or says that the stream was destroyed; under mu.
func (s *stream) open(op string) error {
	if !s.destroyed {
		return nil
	}
	return &weir.Error{Op: op, Device: s.dev.name, Kind: weir.KindLogic, Message: "the stream was destroyed", Err: weir.ErrClosed}
}

// submit accepts w, or answers why not. A wait counts as work: it is what
// keeps the rest of the queue back.
func (s *stream) submit(op string, w *work) error {
	if err := s.dev.alive(op); err != nil {
		return err
	}
	s.mu.Lock()
	if err := s.open(op); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.running {
		s.enqueue(w)
		s.mu.Unlock()
		s.checkDeath()
		return nil
	}
	s.submitted.Add(1)
	s.running = true
	s.mu.Unlock()
	switch {
	case w.kind == doWait:
		if s.park(w.event, w.gen) {
			return nil
		}
		s.finished.Add(1)
	case !s.dev.handOver && w.small() && s.here(w):
		s.finished.Add(1)
		w.tell()
	default:
		w.keep()
		s.mu.Lock()
		s.queue.pushFront(w)
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.running = s.queue.n > 0
	more := s.running
	s.mu.Unlock()
	if more {
		go s.start()
		s.checkDeath()
	} else {
		s.retire()
	}
	return nil
}

// enqueue adds work to a running stream; under mu.
func (s *stream) enqueue(w *work) {
	w.keep() // already done, unless the stream was idle a moment ago
	s.submitted.Add(1)
	s.queue.push(w)
}

// checkDeath flushes what was queued while Kill was flushing.
func (s *stream) checkDeath() {
	if s.dev.dead.Load() != nil {
		s.flush()
	}
}

// here does small work on the submitting goroutine; false if it would have to
// wait. The stream is marked running.
func (s *stream) here(w *work) (done bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			s.dev.faulted(r)
			done = true
		}
	}()
	s.dev.active.Add(1)
	defer s.dev.active.Add(-1)
	if w.kind == doGemm {
		return w.blas.tryRun(w)
	}
	w.do()
	return true
}

// drain runs the queue until it is empty or waits for an event, and goes on
// with a stream that it released last.
func (s *stream) drain() {
	debug.SetPanicOnFault(true)
	for s != nil {
		s = s.work()
	}
}

// work runs the queue and answers a stream to go on with.
func (s *stream) work() (next *stream) {
	var w work
	defer func() {
		if r := recover(); r != nil {
			s.dev.active.Add(-1)
			s.dev.faulted(r)
			s.finished.Add(1)
			w.tell()
			go s.start()
		}
	}()
	for s.next(&w) {
		if next != nil { // more has come: it must not wait for this
			go next.start()
			next = nil
		}
		switch w.kind {
		case doWait:
			if s.dev.dead.Load() == nil && s.park(w.event, w.gen) {
				return nil
			}
			s.finished.Add(1)
		case doRecord, doNotify:
			s.finished.Add(1)
			next = s.tell(&w)
		default:
			s.dev.active.Add(1)
			if s.dev.dead.Load() == nil {
				w.do()
			} else {
				w.drop()
			}
			s.dev.active.Add(-1)
			s.finished.Add(1)
			w.tell()
		}
		w = work{} // lets go of what the entry held
	}
	s.retire()
	return next
}

func (s *stream) next(w *work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.pop(w) {
		return true
	}
	s.running = false
	return false
}

// tell ends a record or a notification. Of the streams that waited for a record
// it answers one for the caller to go on with, and starts the others.
func (s *stream) tell(w *work) (next *stream) {
	if w.kind == doNotify {
		w.waker.Wake(s.dev.Err())
		return nil
	}
	for ready := w.event.fire(w.gen); ready != nil; {
		r := ready
		ready, r.nextParked = r.nextParked, nil
		r.waiting.Store(nil)
		r.finished.Add(1)
		if next == nil {
			next = r
		} else {
			go r.start()
		}
	}
	return next
}

// flush ends the queue of a dead device's stream, whatever its drain is at.
func (s *stream) flush() {
	s.unpark()
	for {
		s.mu.Lock()
		var w work
		ok := s.queue.pop(&w)
		s.mu.Unlock()
		if !ok {
			return
		}
		s.finished.Add(1)
		switch w.kind {
		case doRecord, doNotify:
			if next := s.tell(&w); next != nil {
				go next.start()
			}
		default:
			w.drop()
		}
	}
}

// park joins e's list until record gen is done; false if it is.
func (s *stream) park(e *event, gen uint64) bool {
	s.waiting.Store(e)
	if !e.park(s, gen) {
		s.waiting.Store(nil)
		return false
	}
	if s.dev.dead.Load() != nil { // Kill may have looked before
		s.unpark()
	}
	return true
}

// unpark starts the stream again if it waits for an event.
func (s *stream) unpark() {
	if e := s.waiting.Load(); e != nil && e.unpark(s) {
		s.waiting.Store(nil)
		s.finished.Add(1)
		go s.start()
	}
}

func (s *stream) Record(ev driver.Event) error { return s.record("Stream.Record", ev) }

func (s *stream) record(op string, ev driver.Event) error {
	e, ok := ev.(*event)
	if !ok || e.dev != s.dev {
		return s.dev.argument(op, "an event of another device; expected one of %s", s.dev.name)
	}
	if err := s.dev.alive(op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.checkDeath()
	defer s.mu.Unlock()
	if err := s.open(op); err != nil {
		return err
	}
	gen, err := e.begin(op, s, !s.running)
	if err == nil && s.running {
		s.enqueue(&work{kind: doRecord, event: e, gen: gen})
	}
	return err
}

func (s *stream) Wait(ev driver.Event) error {
	const op = "Stream.Wait"
	e, ok := ev.(*event)
	if !ok {
		return s.submit(op, &work{kind: doCall, fn: func() { _ = ev.Synchronize() }})
	}
	if err := s.usable(op); err != nil {
		return err
	}
	gen := e.recorded.Load()
	if e.done.Load() >= gen {
		return nil
	}
	return s.submit(op, &work{kind: doWait, event: e, gen: gen})
}

func (s *stream) Notify(w driver.Waker) error {
	return s.submit("Stream.Notify", &work{kind: doNotify, waker: w})
}

func (s *stream) Query() (bool, error) { return s.idle("Stream.Query") }

// Idle looks at the counters, in this order: what was submitted before is done
// then. With all work handed over a stream is like a GPU's, which has to be asked.
func (s *stream) Idle() bool {
	submitted := s.submitted.Load()
	return s.finished.Load() >= submitted && !s.dev.handOver && s.dev.dead.Load() == nil
}

func (s *stream) idle(op string) (bool, error) {
	if err := s.dev.alive(op); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(op); err != nil {
		return false, err
	}
	return s.finished.Load() == s.submitted.Load(), nil
}

func (s *stream) Synchronize() error {
	const op = "Stream.Synchronize"
	e := &event{dev: s.dev}
	if err := s.record(op, e); err != nil {
		return err
	}
	return e.synchronize(op)
}

func (s *stream) Destroy() error {
	s.mu.Lock()
	s.destroyed = true
	s.mu.Unlock()
	s.retire()
	return s.dev.alive("Stream.Destroy")
}

// retire forgets a destroyed stream that is idle.
func (s *stream) retire() {
	s.mu.Lock()
	gone := s.destroyed && !s.running
	s.mu.Unlock()
	if !gone {
		return
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if i := slices.Index(s.dev.streams, s); i >= 0 {
		s.dev.streams = slices.Delete(s.dev.streams, i, i+1)
	}
}

// settle waits for the work submitted so far, also of a destroyed stream.
func (s *stream) settle() {
	e := &event{dev: s.dev}
	s.mu.Lock()
	if !s.running {
		s.mu.Unlock()
		return
	}
	gen, _ := e.begin("", s, false)
	s.enqueue(&work{kind: doRecord, event: e, gen: gen})
	s.mu.Unlock()
	s.checkDeath()
	_ = e.synchronize("") // a dead device has nothing left to wait for
}

func (s *stream) Copy(dst, src driver.Ptr, bytes int64) error {
	return s.submitBytes("Stream.Copy", &work{kind: doCopy, dst: dst, src: src, bytes: bytes})
}

func (s *stream) CopyPeer(dst driver.Ptr, to int, src driver.Ptr, from int, bytes int64) error {
	const op = "Stream.CopyPeer"
	if n := s.dev.siblings; to < 0 || to >= n || from < 0 || from >= n || s.dev.ordinal != to && s.dev.ordinal != from {
		return s.dev.argument(op, "from device %d to device %d; there are %d, numbered from 0, and the stream's is one of the two", from, to, n)
	}
	return s.submitBytes(op, &work{kind: doCopy, dst: dst, src: src, bytes: bytes})
}

func (s *stream) Zero(dst driver.Ptr, bytes int64) error {
	return s.submitBytes("Stream.Zero", &work{kind: doZero, dst: dst, bytes: bytes})
}

func (s *stream) submitBytes(op string, w *work) error {
	if w.bytes < 0 || w.bytes > 0 && (!w.dst.Valid() || w.kind == doCopy && !w.src.Valid()) {
		return s.dev.argument(op, "%d bytes from %#x to %#x; expected a size of 0 or more and addresses", w.bytes, w.src, w.dst)
	}
	if w.bytes == 0 {
		return s.usable(op)
	}
	return s.submit(op, w)
}

func (s *stream) CopyIn(dst driver.Ptr, src []byte) error {
	const op = "Stream.CopyIn"
	if len(src) == 0 {
		return s.usable(op)
	}
	if !dst.Valid() {
		return s.dev.argument(op, "%d bytes to %#x; expected an address", len(src), dst)
	}
	w := &work{kind: doCopyIn, dst: dst, host: src}
	if idle, err := s.idle(op); err != nil {
		return err
	} else if !idle || s.dev.handOver {
		w.keep()
	}
	return s.submit(op, w)
}

func (s *stream) CopyOut(dst []byte, src driver.Ptr) error {
	const op = "Stream.CopyOut"
	if len(dst) == 0 {
		return s.Synchronize()
	}
	if !src.Valid() {
		return s.dev.argument(op, "%d bytes from %#x; expected an address", len(dst), src)
	}
	over := make(chan struct{})
	w := &work{kind: doCopyOut, src: src, host: dst, over: over}
	if err := s.submit(op, w); err != nil {
		return err
	}
	<-over // also when it is dropped, so that nothing writes to dst any more
	if err := s.dev.alive(op); err != nil {
		return err
	}
	s.dev.trim()
	return nil
}

func (s *stream) Call(fn func()) error {
	return s.submit("Stream.Call", &work{kind: doCall, fn: fn})
}

func (s *stream) Native() uintptr { return 0 }

// faulted kills the device of work that panicked; called while it panics.
func (d *device) faulted(r any) {
	pcs := make([]uintptr, 64)
	pcs, stack := pcs[:goruntime.Callers(1, pcs)], debug.Stack()
	if p, ok := r.(*hostblas.Panic); ok { // on another goroutine, which is where it happened
		r, pcs, stack = p.Value, p.Callers, p.Stack
	}
	d.Kill(&weir.Error{Op: "Stream.run", Device: d.name, Kind: weir.KindCUDA, Name: "HOST_WORK_FAULTED",
		Code: 2, Message: fmt.Sprintf("work panicked: %v", r), Site: panicSite(pcs), Stack: string(stack), Err: weir.ErrDeviceLost})
}

// panicSite is where the work of a panicking stack does so: its innermost frame
// that is neither Go's runtime nor in this package.
func panicSite(pcs []uintptr) string {
	frames := goruntime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") && !strings.Contains(f.Function, "weir/internal/driver/host.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}
