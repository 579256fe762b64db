package devicetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// enrolled are the names of the enrolled devices.
func enrolled() []string {
	var names []string
	for _, r := range must(runtime.Enrolled()) {
		names = append(names, r.Device().Name())
	}
	return names
}

var runtimeTests = []test{
	{"every visible device is enrolled, and the first is the default", func(f *fixture) {
		var visible []string
		for _, fam := range f.families {
			for i := range fam.Count() {
				visible = append(visible, must(fam.Open(i)).Name())
			}
		}
		rt, err := runtime.StartFamilies(f.families, runtime.Options{})
		f.ok(err)
		if got := enrolled(); !slices.Equal(got, visible) {
			f.t.Errorf("enrolled are %v; expected %v", got, visible)
		}
		if d := must(runtime.Default()); d.Name() != visible[0] || must(runtime.At(context.Background())) != d {
			f.t.Errorf("the default is %v; expected %s", d, visible[0])
		}
		f.within("Close", rt.Close)
		_, err = runtime.Default()
		f.refused(err, weir.ErrNotStarted, "runtime.Default: call runtime.Start first")
	}},
	{"an explicit list limits the devices and its first is the default", func(f *fixture) {
		first, second := f.device(0).Name(), f.device(1).Name()
		rt, err := runtime.StartFamilies(f.families, runtime.Options{Devices: []string{second}})
		f.ok(err)
		if got := enrolled(); slices.Contains(got, first) || !slices.Contains(got, second) {
			f.t.Errorf("enrolled are %v; expected %s and not %s", got, second, first)
		}
		for i, fam := range f.families[1:] { // the list is of one family
			if name := must(fam.Open(0)).Name(); !slices.Contains(enrolled(), name) {
				f.t.Errorf("family %d: %s is not enrolled", i+1, name)
			}
		}
		if d := must(runtime.Default()); d.Name() != second {
			f.t.Errorf("the default is %v; expected %s", d, second)
		}
		_, err = runtime.For(must(runtime.Get(first)))
		f.refused(err, weir.ErrNoDevice, "runtime.For: %s is not enrolled; enrolled are %s", first, strings.Join(enrolled(), ", "))
		_, err = runtime.StartFamilies(f.families, runtime.Options{})
		if !errors.Is(err, weir.ErrBusy) || !strings.Contains(err.Error(), "a runtime is already started, at ") || !strings.Contains(err.Error(), "devicetest/runtime.go:") {
			f.t.Errorf("a second start answers %v; expected where the first was made", err)
		}
		f.within("Close", rt.Close)
	}},
	{"starting makes streams and nothing else", func(f *fixture) {
		w := f.world(options{counted: true, ResourceOptions: runtime.ResourceOptions{Streams: 3}})
		want := (3 + 2) * len(enrolled())
		for call, n := range w.plan.Counts() {
			switch {
			case call == fault.DeviceNewStream && n != want:
				w.t.Errorf("%d streams were made; expected %d", n, want)
			case call != fault.DeviceNewStream && call != fault.FamilyOpen && call != fault.Any:
				w.t.Errorf("starting made %d calls of %s", n, call)
			}
		}
		if n := w.r.Streams().Size(); n != 3 {
			w.t.Errorf("the pool has %d streams; expected 3", n)
		}
	}},
	{"Close takes the lookup away, drains, then destroys handles, memory and streams", func(f *fixture) {
		const streams = 3
		w := f.memory(options{counted: true, ResourceOptions: runtime.ResourceOptions{Streams: streams}})
		l := must(blas.AcquireOn(context.Background(), w.r))
		w.ok(l.Release())
		s, b := w.lease(w.r), w.new(words)
		release := w.stall(s)
		w.fill(s, b, 1)
		w.free(b)
		work := w.tail(s)
		w.ok(s.Release())

		var mu sync.Mutex // guards log
		var log []fault.Call
		for _, call := range []fault.Call{fault.StreamSynchronize, fault.BLASDestroy, fault.PoolDestroy, fault.StreamDestroy} {
			w.plan.Delay(call, func() {
				mu.Lock()
				defer mu.Unlock()
				log = append(log, call)
			})
		}
		early := sync.OnceFunc(func() { w.t.Error("a driver call of Close came before the lookup was gone") })
		w.plan.Delay(fault.Any, func() {
			if _, err := runtime.Default(); !errors.Is(err, weir.ErrNotStarted) {
				early()
			}
		})
		w.plan.Delay(fault.StreamSynchronize, release) // the work goes on when the drain waits for it
		w.plan.Delay(fault.BLASDestroy, sync.OnceFunc(func() {
			if done, err := work.Done(); !done || err != nil {
				w.t.Errorf("a handle was destroyed with the work done: %v, %v", done, err)
			}
		}))
		w.within("Close", w.rt.Close)

		// Every device's drain, then every device's handles, then the rest; handles
		// were made on one device, and memory too.
		drained := streams * len(must(w.names()))
		handles := log[drained : drained+streams]
		if slices.ContainsFunc(log[:drained], func(c fault.Call) bool { return c != fault.StreamSynchronize }) ||
			slices.ContainsFunc(handles, func(c fault.Call) bool { return c != fault.BLASDestroy }) {
			w.t.Errorf("the calls were %v; expected %d waits, then %d handles", log, drained, streams)
		}
		if memory := slices.Index(log, fault.PoolDestroy); w.raw.Capabilities().StreamOrderedPools && memory < drained+streams ||
			slices.Index(log, fault.StreamDestroy) < memory {
			w.t.Errorf("the calls were %v; expected memory before streams", log)
		}
	}},
	{"Close gives everything back", func(f *fixture) {
		w := f.memory(options{counted: true})
		s := w.lease(w.r)
		for _, bytes := range []int64{1, 5000, 900_000, 1 << 20, 50 << 20} {
			b := w.bytes(bytes)
			w.ok(operate(s, b, nil, func(d driver.Stream, at []driver.Ptr) error { return d.Zero(at[0], bytes) }))
			w.free(b)
		}
		w.free(w.pinned(100))
		l := must(blas.AcquireOn(context.Background(), w.r))
		e := must(blas.Of(w.r))
		w.ok(errors.Join(s.Release(), l.Release()))
		w.within("Close", w.rt.Close)
		if s := w.m.Stats(); s.Buffers != 0 || s.Used != 0 || s.Cached != 0 || s.Held != 0 {
			w.t.Errorf("memory counts %+v", s)
		}
		if n := e.WorkspaceBytes(); n != 0 {
			w.t.Errorf("%d bytes of workspace are counted", n)
		}
		c := w.plan.Counts()
		for made, gone := range map[fault.Call]fault.Call{
			fault.DeviceNewStream: fault.StreamDestroy, fault.DeviceNewEvent: fault.EventDestroy, fault.DeviceNewPool: fault.PoolDestroy,
			fault.DeviceNewBLAS: fault.BLASDestroy, fault.PoolAlloc: fault.PoolFree, fault.DeviceAlloc: fault.DeviceFree,
			fault.DeviceAllocHost: fault.DeviceFreeHost,
		} {
			if c[made] != c[gone] || c[made]+c[fault.DeviceAlloc]+c[fault.PoolAlloc] == 0 {
				w.t.Errorf("%d calls of %s and %d of %s", c[made], made, c[gone], gone)
			}
		}
		w.expectNothingHeld()
	}},
	{"what is still held is reported with kind, size and device", func(f *fixture) {
		w := f.memory(options{mayFail: true})
		// Page-locked memory can be given back all the same; a device's stays with the
		// process.
		b, s, l := must(w.m.NewPinned(512)), w.lease(w.r), must(blas.AcquireOn(context.Background(), w.r))
		var err error
		w.within("Close", func() error {
			err = w.rt.Close()
			return nil
		})
		w.leaks(err, "runtime.Close", "buffer of 512 bytes", "blas handle 0", "stream "+w.name+"/0", "stream "+w.name+"/1")
		if err := b.HostRead(context.Background(), func([]byte) error { return nil }); !errors.Is(err, weir.ErrClosed) {
			w.t.Errorf("using a buffer that outlived the runtime answers %v; expected ErrClosed", err)
		}
		for _, late := range []error{b.Free(), s.Release(), l.Release()} { // harmless
			if late != nil && !errors.Is(late, weir.ErrClosed) {
				w.t.Errorf("giving it back afterwards answers %v", late)
			}
		}
	}},
	{"unreachable buffers are no leak", func(f *fixture) {
		w := f.memory(options{})
		s := w.lease(w.r)
		func() {
			for range 8 {
				w.ok(fill(s, must(w.m.New(1<<20)), 1))
			}
			must(must(w.m.New(100)).Partition(buffer.Range{Bytes: 50}, buffer.Range{Offset: 50, Bytes: 50}))
		}()
		w.ok(s.Release())
		w.within("Close", w.rt.Close)
		w.expectNothingHeld()
	}},
	{"direct resources are apart and refuse to close while things live", func(f *fixture) {
		w := f.memory(options{counted: true})
		r, err := runtime.NewResources(w.r.Device(), runtime.ResourceOptions{Streams: 2})
		w.ok(err)
		m := must(buffer.Of(r))
		if m == w.m || r.Device() != w.r.Device() {
			w.t.Error("direct resources share the installed ones' memory, or have another device")
		}
		l, s, b := must(blas.AcquireOn(context.Background(), r)), w.lease(r), must(m.New(64))
		if live := w.r.Live(); len(live) != 0 {
			w.t.Errorf("the installed resources list %v", live)
		}
		before := w.plan.Counts()
		w.leaks(r.Close(), "runtime.Close", "buffer of 64 bytes", "blas handle 0", "stream "+w.name+"/0", "stream "+w.name+"/1")
		after := w.plan.Counts()
		if after[fault.StreamDestroy] != before[fault.StreamDestroy] || after[fault.BLASDestroy] != before[fault.BLASDestroy] {
			w.t.Error("a refused Close destroyed something")
		}
		w.ok(fill(s, b, 3)) // all of it still works
		w.expect("after a refused Close", s, b, 3)
		w.ok(errors.Join(l.Release(), s.Release(), b.Free()))
		w.within("Close", r.Close)
		w.ok(r.Close())
	}},
	{"nothing is made or leased after Close", func(f *fixture) {
		w := f.memory(options{counted: true})
		w.within("Close", w.rt.Close)
		if n := w.count(fault.Any, func() {
			_, err := w.m.New(8)
			w.refused(err, weir.ErrClosed, "buffer.New on %s: the device's memory is closed", w.name)
			_, err = w.m.New(8 << 20)
			w.refused(err, weir.ErrClosed, "buffer.New on %s: the device's memory is closed", w.name)
			_, err = w.r.Streams().Acquire(context.Background())
			w.refused(err, weir.ErrClosed, "stream.Acquire on %s: the pool is closed", w.name)
			_, err = blas.AcquireOn(context.Background(), w.r)
			w.refused(err, weir.ErrClosed, "runtime.Use on %s: the resources are closed", w.name)
		}); n != 0 {
			w.t.Errorf("%d driver calls were made after Close", n)
		}
	}},
	{"Close wakes whoever waits and waits for the work", func(f *fixture) {
		w := f.memory(options{counted: true, mayFail: true, ResourceOptions: runtime.ResourceOptions{Streams: 1}})
		must(blas.Of(w.r))
		s, b := w.lease(w.r), w.new(words)
		release := w.stall(s)
		w.fill(s, b, 5)
		work := w.tail(s)
		w.free(b)
		held := must(must(blas.Of(w.r)).Pool.Acquire(context.Background()))
		waiters := []*task{
			w.start("a waiter for a stream", func() error { return second(w.r.Streams().Acquire(context.Background())) }),
			w.start("a waiter for a handle", func() error { return second(blas.AcquireOn(context.Background(), w.r)) }),
		}
		w.untilWaiting(w.r.Streams(), 1)
		w.untilWaiting(must(blas.Of(w.r)), 1)
		var released, early bool
		w.plan.Delay(fault.StreamSynchronize, sync.OnceFunc(func() {
			released = true
			release()
		}))
		w.plan.Delay(fault.StreamDestroy, func() { early = early || !released })
		closing := w.start("Close", w.rt.Close)
		w.refused(waiters[0].join(), weir.ErrClosed, "stream.Acquire on %s: the pool is closed", w.name)
		w.refused(waiters[1].join(), weir.ErrClosed, "blas handle.Acquire on %s: the pool is closed", w.name)
		if err := closing.join(); !errors.Is(err, weir.ErrLeak) || early {
			w.t.Errorf("Close answers %v, before the work was done: %v; expected what is still held", err, early)
		}
		if done, err := work.Done(); !done || err != nil {
			w.t.Errorf("after Close the work is done: %v, %v", done, err)
		}
		held.Release(stream.Completion{})
	}},
}

// names are the enrolled devices of a world, also after its Close.
func (w *world) names() ([]string, error) {
	names := w.chosen()
	for _, fam := range w.families[1:] {
		for i := range fam.Count() {
			d, err := fam.Open(i)
			if err != nil {
				return nil, err
			}
			names = append(names, d.Name())
		}
	}
	return names, nil
}

// leaks checks that err lists what is still held, in any order.
func (w *world) leaks(err error, op string, what ...string) {
	w.t.Helper()
	var want []string
	for _, x := range what {
		want = append(want, op+" on "+w.name+": "+x+" on "+w.name+" is still held; WEIR_DEBUG=leaks tells where it was made")
	}
	var got []string
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	slices.Sort(want)
	slices.Sort(got)
	if !errors.Is(err, weir.ErrLeak) || !slices.Equal(got, want) {
		w.t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// expectNothingHeld asks the devices, after Close.
func (w *world) expectNothingHeld() {
	w.t.Helper()
	if w.h.Held != nil {
		held := ""
		w.until("nothing held", func() bool { held = w.h.Held(); return held == "" })
	}
	if w.raw.Capabilities().UnifiedHostAddresses { // of whose memory nobody else takes any
		if free, total, err := w.raw.Memory(); free != total || err != nil {
			w.t.Errorf("%d of %d bytes are free, %v", free, total, err)
		}
	}
}
