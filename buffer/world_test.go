package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// options is what a world is made of; the zero value is two asynchronous host
// devices of 256 MiB each.
type options struct {
	runtime.ResourceOptions
	inline      bool // small work runs where it is submitted
	plain       bool // no stream-ordered pools
	bare        bool // calls do not go through the plan, which is one lock for all
	memoryBytes int64
	mayFail     bool // Close's error is looked at by the test
}

// world is a runtime over host devices whose calls go through plan.
type world struct {
	tb    testing.TB
	plan  *fault.Plan
	rt    *runtime.Runtime
	inner driver.Device // host:0 without the plan
	r     *runtime.Resources
	m     *buffer.Memory // of host:0
	other *buffer.Memory // of host:1
}

func newWorld(tb testing.TB, o options) *world {
	tb.Helper()
	if o.memoryBytes == 0 {
		o.memoryBytes = 256 << 20
	}
	family := host.New(host.Options{HandOver: !o.inline, Devices: 2, MemoryBytes: o.memoryBytes})
	w := &world{tb: tb, plan: &fault.Plan{}, inner: must(family.Open(0))}
	if o.plain {
		family = plainFamily{family}
	}
	if !o.bare {
		family = fault.New(family, w.plan)
	}
	rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{ResourceOptions: o.ResourceOptions})
	if err != nil {
		tb.Fatal(err)
	}
	w.rt = rt
	tb.Cleanup(func() {
		if err := rt.Close(); err != nil && !o.mayFail {
			tb.Errorf("Close: %s", weir.Report(err))
		}
	})
	all := must(runtime.Enrolled())
	w.r, w.m, w.other = all[0], must(buffer.Of(all[0])), must(buffer.Of(all[1]))
	return w
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (w *world) new(bytes int64) *buffer.Buffer {
	w.tb.Helper()
	b, err := w.m.New(bytes)
	if err != nil {
		w.tb.Fatal(err)
	}
	return b
}

func (w *world) free(all ...*buffer.Buffer) {
	w.tb.Helper()
	for _, b := range all {
		w.ok(b.Free())
	}
}

func (w *world) ok(err error) {
	w.tb.Helper()
	if err != nil {
		w.tb.Fatal(err)
	}
}

// streams leases n streams of host:0 until the test ends.
func (w *world) streams(n int) []stream.Stream {
	w.tb.Helper()
	var all []stream.Stream
	for range n {
		all = append(all, w.lease(w.r))
	}
	return all
}

func (w *world) lease(r *runtime.Resources) stream.Stream {
	w.tb.Helper()
	s, err := r.Streams().Acquire(context.Background())
	w.ok(err)
	w.tb.Cleanup(func() {
		if err := s.Release(); err != nil && r.Device().Err() == nil {
			w.tb.Errorf("releasing a stream: %v", err)
		}
	})
	return s
}

// stall keeps s from going on until the answered function is called, at the
// latest when the test ends.
func (w *world) stall(s stream.Stream) (release func()) {
	w.tb.Helper()
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	w.ok(s.Call(func() { <-gate }))
	w.tb.Cleanup(release)
	return release
}

// wait waits for all work of s.
func (w *world) wait(s stream.Stream) {
	w.tb.Helper()
	var err error
	soon(w.tb, func() { err = s.Synchronize(context.Background()) })
	w.ok(err)
}

// soon fails the test if do takes longer than anything that does not hang.
func soon(tb rapid.TB, do func()) {
	tb.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	arrives(tb, done)
}

const patience = time.Minute

// arrives waits for what must happen without further help.
func arrives(tb rapid.TB, done <-chan struct{}) {
	tb.Helper()
	watchdog := time.NewTimer(patience)
	defer watchdog.Stop()
	select {
	case <-done:
	case <-watchdog.C:
		tb.Fatal("it did not happen; something waits that must not")
	}
}

// count is how often call was made while do ran.
func (w *world) count(call fault.Call, do func()) int {
	before := w.plan.Counts()[call]
	do()
	return w.plan.Counts()[call] - before
}

// write submits fn to s under a write access of b, and answers a channel that
// is closed when fn ran.
func (w *world) write(s stream.Stream, b *buffer.Buffer, fn func(p buffer.Ptr)) <-chan struct{} {
	w.tb.Helper()
	return w.access(s, b, (*buffer.Access).Write, fn)
}

func (w *world) read(s stream.Stream, b *buffer.Buffer, fn func(p buffer.Ptr)) <-chan struct{} {
	w.tb.Helper()
	return w.access(s, b, (*buffer.Access).Read, fn)
}

func (w *world) access(s stream.Stream, b *buffer.Buffer, open func(*buffer.Access, *buffer.Buffer) buffer.Ptr, fn func(p buffer.Ptr)) <-chan struct{} {
	w.tb.Helper()
	ran := make(chan struct{})
	acc := buffer.Begin(s)
	p := open(&acc, b)
	w.ok(acc.Err())
	w.ok(s.Call(func() {
		defer close(ran)
		if fn != nil {
			fn(p)
		}
	}))
	w.ok(acc.End())
	return ran
}

func happened(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// refuses checks an error's sentinel and its whole text.
func refuses(tb testing.TB, err, sentinel error, format string, args ...any) {
	tb.Helper()
	if !errors.Is(err, sentinel) {
		tb.Errorf("%v does not match %v", err, sentinel)
	}
	if want := fmt.Sprintf(format, args...); err == nil || err.Error() != want {
		tb.Errorf("\ngot      %v\nexpected %s", err, want)
	}
}

// plainFamily is a family whose devices have no stream-ordered memory.
type plainFamily struct{ driver.Family }

func (f plainFamily) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return plainDevice{d}, nil
}

type plainDevice struct{ driver.Device }

func (d plainDevice) Capabilities() *driver.Capabilities {
	c := *d.Device.Capabilities()
	c.StreamOrderedPools = false
	return &c
}

func (d plainDevice) NewPool(driver.PoolConfig) (driver.Pool, error) {
	return nil, &weir.Error{Op: "Device.NewPool", Device: d.Name(), Message: "no stream-ordered pools", Err: weir.ErrNotSupported}
}
