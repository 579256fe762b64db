package drivertest

import (
	"errors"
	goruntime "runtime"
	"sync"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// patience is how long anything may take before it counts as hanging. The
// suite's own test shortens it.
var patience = time.Minute

// tb is what *testing.T and *rapid.T have in common.
type tb interface {
	rapid.TB
	Cleanup(func())
}

// fixture makes what a test needs, destroys it afterwards, and fails the test
// when something that must work does not.
type fixture struct {
	t      tb
	h      Harness
	family driver.Family
	hung   bool // something did not end, and may never
}

// ok ends the test unless err is nil.
func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("%v", err)
	}
}

// afterwards cleans up when the test ends. A failure counts unless the device
// is dead; once something hangs, the rest is left as it is.
func (f *fixture) afterwards(d driver.Device, what string, call func() error) {
	f.t.Cleanup(func() {
		if f.hung {
			return
		}
		if err, came := await(f.start(what, call).done); !came {
			f.hung = true
			f.t.Errorf("cleaning up: %s did not end in %v", what, patience)
		} else if err != nil && d.Err() == nil {
			f.t.Errorf("cleaning up: %v", err)
		}
	})
}

// device is the device with that ordinal; the test is skipped without it.
func (f *fixture) device(ordinal int) driver.Device {
	f.t.Helper()
	if n := f.family.Count(); ordinal >= n {
		f.t.Skipf("the family has %d devices; this needs %d", n, ordinal+1)
	}
	d, err := f.family.Open(ordinal)
	f.ok(err)
	return d
}

func (f *fixture) stream(d driver.Device) driver.Stream {
	f.t.Helper()
	s, err := d.NewStream(0)
	f.ok(err)
	f.afterwards(d, "Stream.Destroy", s.Destroy)
	return s
}

func (f *fixture) event(d driver.Device) driver.Event {
	f.t.Helper()
	e, err := d.NewEvent()
	f.ok(err)
	f.afterwards(d, "Event.Destroy", e.Destroy)
	return e
}

// record answers a new event, recorded on s.
func (f *fixture) record(d driver.Device, s driver.Stream) driver.Event {
	f.t.Helper()
	e := f.event(d)
	f.ok(s.Record(e))
	return e
}

// alloc answers device memory. A test allocates before it stalls anything,
// since the plain pair may wait for the device.
func (f *fixture) alloc(d driver.Device, bytes int64) driver.Ptr {
	f.t.Helper()
	p, err := d.Alloc(bytes)
	f.ok(err)
	f.afterwards(d, "Device.Free", func() error { return d.Free(p) })
	return p
}

func (f *fixture) allocHost(d driver.Device, bytes int64) driver.Ptr {
	f.t.Helper()
	p, err := d.AllocHost(bytes)
	f.ok(err)
	f.afterwards(d, "Device.FreeHost", func() error { return d.FreeHost(p) })
	return p
}

func (f *fixture) blas(d driver.Device) driver.BLAS {
	f.t.Helper()
	b, err := d.NewBLAS()
	f.ok(err)
	f.afterwards(d, "BLAS.Destroy", b.Destroy)
	return b
}

// rehearse runs a product of float64 once and clears its result: its first use
// may load code, and would then wait for streams that are stalled.
func (f *fixture) rehearse(b driver.BLAS, s driver.Stream, g *driver.Gemm) {
	f.t.Helper()
	f.ok(b.Gemm(s, g))
	f.ok(s.Zero(g.C, 8*g.LDC*g.N))
	f.sync("a first product", s)
}

// stall holds s back until release, at the latest until the test ends.
func (f *fixture) stall(s driver.Stream) (release func()) {
	f.t.Helper()
	stall := f.h.Stall
	if stall == nil {
		stall = stallByCall
	}
	release, err := stall(s)
	if errors.Is(err, weir.ErrNotSupported) {
		f.t.Skipf("streams cannot be stalled: %v", err)
	}
	f.ok(err)
	f.t.Cleanup(release)
	return release
}

func stallByCall(s driver.Stream) (release func(), err error) {
	idle, err := s.Query()
	if err != nil {
		return nil, err
	}
	held, gate := make(chan struct{}), make(chan struct{})
	if err := s.Call(func() {
		close(held)
		<-gate
	}); err != nil {
		return nil, err
	}
	if idle {
		<-held
	}
	return sync.OnceFunc(func() { close(gate) }), nil
}

// pending fails the test unless s or an event has unfinished work.
func (f *fixture) pending(what string, q interface{ Query() (bool, error) }) {
	f.t.Helper()
	yield()
	if done, err := q.Query(); err != nil || done {
		f.t.Fatalf("%s: Query is %v, %v; expected unfinished work", what, done, err)
	}
}

// finished fails the test unless s or an event has no unfinished work.
func (f *fixture) finished(what string, q interface{ Query() (bool, error) }) {
	f.t.Helper()
	if done, err := q.Query(); err != nil || !done {
		f.t.Fatalf("%s: Query is %v, %v; expected all work done", what, done, err)
	}
}

// task is a call that runs beside the test.
type task struct {
	f    *fixture
	what string
	done chan error
}

func (f *fixture) start(what string, call func() error) *task {
	t := &task{f, what, make(chan error, 1)}
	go func() { t.done <- call() }()
	return t
}

// startWaiting starts a call that is to wait, and lets it get there.
func (f *fixture) startWaiting(what string, call func() error) *task {
	begun := make(chan struct{})
	t := f.start(what, func() error {
		close(begun)
		return call()
	})
	<-begun
	yield()
	return t
}

// yield gives the processor away for long enough that what must not happen now
// very likely would have happened, if it could. Nothing says for certain that
// it would; a test that looks too early passes without having shown anything.
func yield() {
	for range 1000 {
		goruntime.Gosched()
	}
}

// join waits for the call and answers its error; a call that hangs fails the
// test.
func (t *task) join() error {
	t.f.t.Helper()
	return receive(t.f, t.what, t.done)
}

// all waits for every one of the tasks, which must succeed. It waits for the
// others too when one has failed, since they use what the test is to free.
func (f *fixture) all(tasks []*task) {
	f.t.Helper()
	for _, t := range tasks {
		if err := t.join(); err != nil {
			f.t.Errorf("%s: %v", t.what, err)
		}
	}
}

// within makes a call that must succeed and must not hang.
func (f *fixture) within(what string, call func() error) {
	f.t.Helper()
	if err := f.start(what, call).join(); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

// sync waits for a stream or an event.
func (f *fixture) sync(what string, s interface{ Synchronize() error }) {
	f.t.Helper()
	f.within(what, s.Synchronize)
}

// receive takes one value from c, which must come.
func receive[T any](f *fixture, what string, c <-chan T) T {
	f.t.Helper()
	v, came := await(c)
	if !came {
		f.hung = true
		f.t.Fatalf("%s: nothing after %v", what, patience)
	}
	return v
}

// await takes one value from c, or gives up.
func await[T any](c <-chan T) (v T, came bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v = <-c:
		return v, true
	case <-timer.C:
		return v, false
	}
}

// write copies values to p in the order of s.
func write[T any](f *fixture, s driver.Stream, p driver.Ptr, values ...T) {
	f.t.Helper()
	f.within("CopyIn", func() error { return s.CopyIn(p, bytesOf(values)) })
}

// read copies n values from p after the earlier work of s.
func read[T any](f *fixture, s driver.Stream, p driver.Ptr, n int) []T {
	f.t.Helper()
	values := make([]T, n)
	f.within("CopyOut", func() error { return s.CopyOut(bytesOf(values), p) })
	return values
}

// bytesOf is the memory of values.
func bytesOf[T any](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), uintptr(len(values))*unsafe.Sizeof(values[0]))
}
