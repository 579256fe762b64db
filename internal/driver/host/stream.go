package host

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// stream is an ordered queue.
//
// Invariants:
//  1. running is true from the submission that starts a drain until that drain
//     finds the queue empty; at most one goroutine drains. A stream that waits
//     for an event stays running, in the event's list and with no goroutine;
//     whoever takes it out of the list starts the next drain.
//  2. finished counts work that ran; submitted counts work that was accepted.
//     The stream is idle when they are equal.
//  3. An idle stream records an event by marking it done on the spot, and waits
//     for one by joining its list, so that neither starts a goroutine.
//  4. Work that takes less time than handing it over runs on the submitting
//     goroutine if the stream is idle (see small).
//  5. A drain whose queue is empty goes on with a stream that its last record
//     released, so that a chain over several streams stays on one goroutine.
//
// mu guards queue, running, destroyed and submitted; no work, event or waker
// runs under it. Rejected: a goroutine per stream that lives as long as the
// stream (it must be stopped, and an idle one costs a wake-up just the same);
// always handing over (5 us for each product of 64×64, which takes 8).
type stream struct {
	dev   *device
	start func() // s.drain, made once so that starting it allocates nothing

	mu        sync.Mutex
	queue     ring
	running   bool
	destroyed bool
	submitted uint64
	finished  atomic.Uint64

	// Where the stream waits; under the mutex of the event whose list it is in.
	nextParked *stream
	parkedFor  uint64

	waiting atomic.Pointer[event] // the event whose list it is in, for Kill
}

// work is one entry of a queue.
type work struct {
	kind  workKind
	event *event
	gen   uint64
	waker driver.Waker
	fn    func()
	dst   driver.Ptr
	src   driver.Ptr
	bytes int64 // of doKernel: what it writes
	blas  *blas
	gemm  driver.Gemm
}

type workKind uint8

const (
	doRecord workKind = iota
	doWait
	doNotify
	doCall
	doKernel
	doCopy
	doZero
	doGemm
)

func (d *device) NewStream(priority int) (driver.Stream, error) {
	if err := d.alive("Device.NewStream"); err != nil {
		return nil, err
	}
	if priority > d.caps.PriorityLeast || priority < d.caps.PriorityGreatest {
		return nil, d.argument("Device.NewStream", "priority %d; expected %d (greatest) to %d (least)",
			priority, d.caps.PriorityGreatest, d.caps.PriorityLeast)
	}
	s := &stream{dev: d}
	s.start = s.drain
	d.mu.Lock()
	d.streams = append(d.streams, s)
	d.mu.Unlock()
	return s, nil
}

func (d *device) NewEvent() (driver.Event, error) {
	if err := d.alive("Device.NewEvent"); err != nil {
		return nil, err
	}
	return &event{dev: d}, nil
}

// submit accepts w, or answers why not. A wait counts as work: it is what
// keeps the rest of the queue back.
func (s *stream) submit(op string, w *work) error {
	if err := s.dev.alive(op); err != nil {
		return err
	}
	s.mu.Lock()
	if s.destroyed {
		s.mu.Unlock()
		return s.destroyedError(op)
	}
	s.submitted++
	if !s.running {
		s.running = true
		switch {
		case w.kind == doWait:
			s.mu.Unlock()
			if !s.park(w.event, w.gen) {
				s.finished.Add(1)
				go s.start()
			}
			return nil
		case !s.dev.handOver && w.small():
			s.mu.Unlock()
			s.inline(w)
			return nil
		}
		s.queue.push(w)
		s.mu.Unlock()
		go s.start()
		return nil
	}
	s.queue.push(w)
	s.mu.Unlock()
	return nil
}

// Handing work over costs about 5 us: a goroutine is started, often on a
// processor that has to be woken. Less work than that (at some tens of GFLOP/s
// and GB/s) is done sooner than handed over.
const (
	smallFLOPs = 1 << 20
	smallBytes = 1 << 15
)

func (w *work) small() bool {
	switch w.kind {
	case doCopy, doZero:
		return w.bytes <= smallBytes
	case doKernel:
		return w.bytes <= smallBytes
	case doGemm:
		return float64(w.gemm.M)*float64(w.gemm.N)*float64(max(w.gemm.K, 1))*float64(w.gemm.Batch)*2 <= smallFLOPs
	}
	return false
}

// inline does w here, then leaves what came meanwhile to a drain. The stream is
// marked running.
func (s *stream) inline(w *work) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer s.recover()
	s.run(w)
	s.finished.Add(1)
	s.mu.Lock()
	s.running = s.queue.n > 0
	more := s.running
	s.mu.Unlock()
	if more {
		go s.start()
	}
}

func (s *stream) destroyedError(op string) error {
	return &weir.Error{Op: op, Device: s.dev.name, Kind: weir.KindLogic, Message: "the stream was destroyed", Err: weir.ErrClosed}
}

// drain runs the queue until it is empty or waits for an event, and goes on
// with a stream that it released last.
func (s *stream) drain() {
	debug.SetPanicOnFault(true)
	for s != nil {
		s = s.work()
	}
}

// recover turns a fault or a panic of work into the death of the device: the
// queue is then run through by a fresh drain that skips the work.
func (s *stream) recover() {
	if r := recover(); r != nil {
		s.dev.Kill(&weir.Error{Op: "Stream.run", Device: s.dev.name, Kind: weir.KindCUDA, Name: "HOST_WORK_FAULTED",
			Code: 2, Message: fmt.Sprint(r), Stack: string(debug.Stack()), Err: weir.ErrDeviceLost})
		s.finished.Add(1)
		go s.start()
	}
}

// work runs the queue and answers a stream to go on with.
func (s *stream) work() (next *stream) {
	defer s.recover()
	var w work
	for s.next(&w) {
		if w.kind == doWait {
			if s.dev.dead.Load() == nil && s.park(w.event, w.gen) {
				return next
			}
		} else if ready := s.run(&w); ready != nil {
			next = s.release(ready, next)
		}
		s.finished.Add(1)
		w = work{} // lets go of what the entry held
	}
	return next
}

// release starts the streams of a list that waited, except one that this
// goroutine can go on with because its own queue is empty.
func (s *stream) release(ready, next *stream) *stream {
	for ready != nil {
		r := ready
		ready, r.nextParked = r.nextParked, nil
		r.waiting.Store(nil)
		r.finished.Add(1)
		if next == nil {
			s.mu.Lock()
			done := s.queue.n == 0
			s.mu.Unlock()
			if done {
				next = r
				continue
			}
		}
		go r.start()
	}
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

// run does one entry other than a wait, and answers the streams that it
// released. On a dead device only what others wait for still happens.
func (s *stream) run(w *work) (released *stream) {
	switch w.kind {
	case doRecord:
		return w.event.fire(w.gen)
	case doNotify:
		w.waker.Wake(s.dev.Err())
		return nil
	}
	if s.dev.dead.Load() != nil {
		return nil
	}
	switch w.kind {
	case doCall, doKernel:
		w.fn()
	case doCopy:
		copy(hostmem.Bytes(uintptr(w.dst), w.bytes), hostmem.Bytes(uintptr(w.src), w.bytes))
	case doZero:
		clear(hostmem.Bytes(uintptr(w.dst), w.bytes))
	case doGemm:
		w.blas.run(&w.gemm)
	}
	return nil
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

func (s *stream) Record(ev driver.Event) error {
	const op = "Stream.Record"
	e, ok := ev.(*event)
	if !ok || e.dev != s.dev {
		return s.dev.argument(op, "an event of another device; expected one of %s", s.dev.name)
	}
	if err := s.dev.alive(op); err != nil {
		return err
	}
	gen, err := e.begin(s)
	if err != nil {
		return err
	}
	s.mu.Lock()
	idle := !s.running && !s.destroyed
	s.mu.Unlock()
	if idle {
		e.fire(gen) // nobody can wait for a record that had no number
		return nil
	}
	return s.submit(op, &work{kind: doRecord, event: e, gen: gen})
}

func (s *stream) Wait(ev driver.Event) error {
	const op = "Stream.Wait"
	e, ok := ev.(*event)
	if !ok {
		return s.submit(op, &work{kind: doCall, fn: func() { _ = ev.Synchronize() }})
	}
	if err := s.dev.alive(op); err != nil {
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

func (s *stream) Query() (bool, error) {
	if err := s.dev.alive("Stream.Query"); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished.Load() == s.submitted, nil
}

func (s *stream) Synchronize() error {
	e := &event{dev: s.dev}
	if err := s.Record(e); err != nil {
		return err
	}
	return e.Synchronize()
}

func (s *stream) Destroy() error {
	s.mu.Lock()
	s.destroyed = true
	s.mu.Unlock()
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if i := slices.Index(s.dev.streams, s); i >= 0 && s.dev.dead.Load() == nil {
		s.dev.streams = slices.Delete(s.dev.streams, i, i+1)
	}
	return nil
}

func (s *stream) Copy(dst, src driver.Ptr, bytes int64) error {
	return s.submitBytes("Stream.Copy", &work{kind: doCopy, dst: dst, src: src, bytes: bytes})
}

func (s *stream) Zero(dst driver.Ptr, bytes int64) error {
	return s.submitBytes("Stream.Zero", &work{kind: doZero, dst: dst, bytes: bytes})
}

func (s *stream) submitBytes(op string, w *work) error {
	if w.bytes < 0 || w.bytes > 0 && (w.dst == 0 || w.kind == doCopy && w.src == 0) {
		return s.dev.argument(op, "%d bytes from %#x to %#x; expected a size of 0 or more and addresses", w.bytes, w.src, w.dst)
	}
	if w.bytes == 0 {
		return s.dev.alive(op)
	}
	return s.submit(op, w)
}

func (s *stream) CopyIn(dst driver.Ptr, src []byte) error {
	const op = "Stream.CopyIn"
	if err := s.dev.alive(op); err != nil || len(src) == 0 {
		return err
	}
	if dst == 0 {
		return s.dev.argument(op, "%d bytes to address 0; expected an address", len(src))
	}
	if idle, err := s.Query(); err != nil {
		return err
	} else if !idle {
		src = slices.Clone(src)
		return s.submit(op, &work{kind: doCall, fn: func() { copy(hostmem.Bytes(uintptr(dst), int64(len(src))), src) }})
	}
	copy(hostmem.Bytes(uintptr(dst), int64(len(src))), src)
	return nil
}

func (s *stream) CopyOut(dst []byte, src driver.Ptr) error {
	const op = "Stream.CopyOut"
	if len(dst) > 0 && src == 0 {
		return s.dev.argument(op, "%d bytes from address 0; expected an address", len(dst))
	}
	if err := s.Synchronize(); err != nil {
		return err
	}
	copy(dst, hostmem.Bytes(uintptr(src), int64(len(dst))))
	return nil
}

func (s *stream) Call(fn func()) error {
	return s.submit("Stream.Call", &work{kind: doCall, fn: fn})
}

func (s *stream) Native() uintptr { return 0 }

// settle waits for the work submitted so far, also of a destroyed stream.
func (s *stream) settle() {
	e := &event{dev: s.dev}
	gen, _ := e.begin(s)
	s.mu.Lock()
	if !s.running || s.dev.dead.Load() != nil {
		s.mu.Unlock()
		return
	}
	s.submitted++
	s.queue.push(&work{kind: doRecord, event: e, gen: gen})
	s.mu.Unlock()
	_ = e.Synchronize() // a dead device has nothing left to wait for
}
