package devicetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// options is what a world is made of.
type options struct {
	runtime.ResourceOptions
	counted bool // calls go through plan
	plain   bool // devices have no stream-ordered pools
	mayFail bool // Close's error is looked at by the test
}

// world is a runtime over the harness's families. Of the family under test at
// most two devices are enrolled, and where deaths spread the one that is spared.
type world struct {
	*fixture
	plan      *fault.Plan // of a counted world
	rt        *runtime.Runtime
	r         *runtime.Resources // of the first device
	m         *buffer.Memory     // of the first device
	raw       driver.Device      // the first device, without the plan
	name      string             // of the first device
	stalls    []func()
	rehearsed bool
}

// wrapped are the families as a world of o sees them.
func (f *fixture) wrapped(o options, plan *fault.Plan) []driver.Family {
	fams := slices.Clone(f.families)
	for i := range fams {
		if o.plain {
			fams[i] = poolless{fams[i]}
		}
		if o.counted {
			fams[i] = fault.New(fams[i], plan)
		}
	}
	return fams
}

// chosen are the names of the devices that a world enrols.
func (f *fixture) chosen() []string {
	var names []string
	for i := range min(2, f.families[0].Count()) {
		names = append(names, f.device(i).Name())
	}
	return names
}

// spared is the name of a device that lives when the first dies; the test is
// skipped without it.
func (f *fixture) spared() string {
	f.t.Helper()
	if !f.h.DeathSpreads {
		return f.device(1).Name()
	}
	if len(f.families) < 2 {
		f.t.Skip("there is no other family")
	}
	d, err := f.families[1].Open(0)
	f.ok(err)
	return d.Name()
}

func (f *fixture) world(o options) *world {
	f.t.Helper()
	enrolled := f.chosen()
	if f.h.DeathSpreads {
		enrolled = append(enrolled, f.spared())
	}
	w := &world{fixture: f, plan: &fault.Plan{}, raw: f.device(0), name: f.device(0).Name()}
	rt, err := runtime.StartFamilies(f.wrapped(o, w.plan), runtime.Options{Devices: enrolled, ResourceOptions: o.ResourceOptions})
	f.ok(err)
	w.rt = rt
	w.afterwards("Runtime.Close", func() error {
		if err := rt.Close(); err != nil && !o.mayFail {
			return fmt.Errorf("%s", weir.Report(err))
		}
		return nil
	})
	w.r = must(runtime.For(must(runtime.Get(w.name))))
	return w
}

// memory is a world whose memory has been made.
func (f *fixture) memory(o options) *world {
	f.t.Helper()
	w := f.world(o)
	m, err := buffer.Of(w.r)
	f.ok(err)
	w.m = m
	return w
}

// far is the second device's resources; the test is skipped without it.
func (w *world) far() *runtime.Resources {
	w.t.Helper()
	return must(runtime.For(must(runtime.Get(w.device(1).Name()))))
}

// afterwards makes a call when the test ends and every stall is released. Once
// something hangs, the rest is left as it is.
func (w *world) afterwards(what string, call func() error) {
	w.t.Cleanup(func() {
		w.releaseAll()
		if w.hung {
			return
		}
		if err, came := await(w.start(what, call).done); !came {
			w.hung = true
			w.t.Errorf("cleaning up: %s did not end in %v", what, patience)
		} else if err != nil && w.raw.Err() == nil {
			w.t.Errorf("cleaning up: %s: %v", what, err)
		}
	})
}

func (w *world) releaseAll() {
	for _, release := range w.stalls {
		release()
	}
	w.stalls = nil
}

// lease leases a stream of r until the test ends.
func (w *world) lease(r *runtime.Resources) stream.Stream {
	w.t.Helper()
	var s stream.Stream
	w.within("acquiring a stream", func() (err error) {
		s, err = r.Streams().Acquire(context.Background())
		return err
	})
	w.afterwards("releasing a stream", s.Release)
	return s
}

// streams leases n streams of the first device.
func (w *world) streams(n int) []stream.Stream {
	w.t.Helper()
	var all []stream.Stream
	for range n {
		all = append(all, w.lease(w.r))
	}
	return all
}

// words is how many numbers most buffers hold.
const words = 64

// new makes a buffer of n numbers, which is freed when the test ends.
func (w *world) new(n int64) *buffer.Buffer { return w.bytes(8 * n) }

func (w *world) bytes(n int64) *buffer.Buffer {
	w.t.Helper()
	return w.own(w.m.New(n))
}

func (w *world) pinned(n int64) *buffer.Buffer {
	w.t.Helper()
	return w.own(w.m.NewPinned(n))
}

func (w *world) own(b *buffer.Buffer, err error) *buffer.Buffer {
	w.t.Helper()
	w.ok(err)
	w.afterwards("freeing a buffer", b.Free)
	return b
}

func (w *world) free(all ...*buffer.Buffer) {
	w.t.Helper()
	for _, b := range all {
		w.within("Buffer.Free", b.Free)
	}
}

// stall holds s back until release, at the latest until the test ends.
func (w *world) stall(s stream.Stream) (release func()) {
	w.t.Helper()
	w.rehearse()
	d, err := s.Submit()
	w.ok(err)
	release, err = w.h.Stall(fault.Unwrap(d))
	if errors.Is(err, weir.ErrNotSupported) {
		w.t.Skipf("streams cannot be stalled: %v", err)
	}
	w.ok(err)
	w.stalls = append(w.stalls, release)
	return release
}

// rehearse makes each submission that tests use once before the first stall:
// loading code for it would wait for the stalled stream.
func (w *world) rehearse() {
	w.t.Helper()
	if w.rehearsed {
		return
	}
	w.rehearsed = true
	if len(w.chosen()) > 1 {
		w.rehearseAcross()
	}
	for i := range len(w.chosen()) {
		d := w.device(i)
		s, err := d.NewStream(0)
		w.ok(err)
		p, err := d.Alloc(64)
		w.ok(err)
		view := func(p driver.Ptr) driver.View {
			return driver.View{Ptr: p, DType: dtype.Int64, Shape: []int64{4}, Strides: []int64{1}}
		}
		w.within("a rehearsal", func() error {
			return errors.Join(
				s.Zero(p, 64), s.CopyIn(p, make([]byte, 32)), s.Copy(p+32, p, 32), s.CopyOut(make([]byte, 32), p),
				s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: view(p)}),
				s.Launch(&driver.Kernel{Op: driver.KernelAxpby, Out: view(p), A: view(p + 32), Alpha: 1, Beta: 1}),
				s.Synchronize(), d.Free(p), s.Destroy())
		})
	}
}

// rehearseAcross copies from the first device to the second, which is slow once.
func (w *world) rehearseAcross() {
	w.t.Helper()
	d, far := w.device(0), w.device(1)
	s, err := d.NewStream(0)
	w.ok(err)
	p, err := d.Alloc(8)
	w.ok(err)
	q, err := far.Alloc(8)
	w.ok(err)
	w.within("a rehearsal", func() error {
		return errors.Join(s.CopyPeer(q, 1, p, 0, 8), s.Synchronize(), far.Free(q), d.Free(p), s.Destroy())
	})
}

// count is how often call was made while do ran.
func (w *world) count(call fault.Call, do func()) int {
	before := w.plan.Counts()[call]
	do()
	return w.plan.Counts()[call] - before
}

// counts renders the states of a pool.
func counts(p interface {
	Counts() (idle, leased, pending, waiting int)
}) string {
	idle, leased, pending, waiting := p.Counts()
	return fmt.Sprintf("%d idle, %d leased, %d pending, %d waiting", idle, leased, pending, waiting)
}

// expectCounts compares what counts renders.
func (f *fixture) expectCounts(what string, p interface {
	Counts() (idle, leased, pending, waiting int)
}, want string) {
	f.t.Helper()
	if got := counts(p); got != want {
		f.t.Errorf("%s: %s; expected %s", what, got, want)
	}
}

// untilWaiting waits until n callers wait for something of the pool.
func (f *fixture) untilWaiting(p interface {
	Counts() (idle, leased, pending, waiting int)
}, n int) {
	f.t.Helper()
	f.until(fmt.Sprintf("%d waiters", n), func() bool {
		_, _, _, waiting := p.Counts()
		return waiting == n
	})
}

// tail is a completion of all that s was given.
func (w *world) tail(s stream.Stream) stream.Completion {
	w.t.Helper()
	c, err := s.Tail()
	w.ok(err)
	return c
}

// pending ends the test unless the work of c is unfinished.
func (w *world) pending(what string, c stream.Completion) {
	w.t.Helper()
	yield()
	if done, err := c.Done(); done || err != nil {
		w.t.Fatalf("%s: done is %v, %v; expected unfinished work", what, done, err)
	}
}

// finish waits for the work of c, which must end without further help.
func (w *world) finish(what string, c stream.Completion) {
	w.t.Helper()
	w.within(what, func() error { return c.Wait(context.Background()) })
}

// sync waits for all work of s.
func (w *world) sync(s stream.Stream) {
	w.t.Helper()
	w.within("Stream.Synchronize", func() error { return s.Synchronize(context.Background()) })
}

// poolless is a family whose devices have no stream-ordered memory.
type poolless struct{ driver.Family }

func (f poolless) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return poollessDevice{d}, nil
}

type poollessDevice struct{ driver.Device }

func (d poollessDevice) Capabilities() *driver.Capabilities {
	c := *d.Device.Capabilities()
	c.StreamOrderedPools = false
	return &c
}

func (d poollessDevice) NewPool(driver.PoolConfig) (driver.Pool, error) {
	return nil, &weir.Error{Op: "Device.NewPool", Device: d.Name(), Message: "no stream-ordered pools", Err: weir.ErrNotSupported}
}
