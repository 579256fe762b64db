package devicetest

import (
	"context"
	"errors"
	goruntime "runtime"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
)

var deviceTests = []test{
	{"lookups share one snapshot", func(f *fixture) {
		w := f.world(options{})
		want := w.raw.Capabilities()
		d := must(runtime.Get(w.name))
		for i, other := range []runtime.Device{must(runtime.Get(w.name)), must(runtime.Get(f.families[0].Name())),
			must(runtime.Enumerate())[0], must(runtime.Default()), w.r.Device()} {
			if other != d || other.Capabilities() != want {
				w.t.Errorf("lookup %d answers %v with a snapshot of its own", i, other)
			}
		}
		if n := runtime.Count(); n != len(must(runtime.Enumerate())) {
			w.t.Errorf("Count is %d and Enumerate lists %d", n, len(must(runtime.Enumerate())))
		}
	}},
	{"a snapshot says what the device is", func(f *fixture) {
		w := f.world(options{})
		c := w.r.Device().Capabilities()
		if c.Name == "" || c.MemoryBytes <= 0 || c.Multiprocessors <= 0 || !c.ConcurrentKernels || c.PriorityGreatest > c.PriorityLeast {
			w.t.Errorf("got %+v", *c)
		}
		if !c.UnifiedHostAddresses && (c.UUID == "" || c.PCI == "" || c.ComputeMajor == 0 || c.MaxThreadsPerBlock == 0 ||
			c.WarpSize == 0 || c.SharedBytesPerBlock == 0 || c.CopyEngines == 0) {
			w.t.Errorf("of a GPU, got %+v", *c)
		}
		if free, total, err := w.r.Device().Memory(); err != nil || free <= 0 || free > total {
			w.t.Errorf("%d of %d bytes are free, %v", free, total, err)
		}
	}},
	{"discovery creates nothing", func(f *fixture) {
		for i := range f.families[0].Count() {
			_ = f.device(i).Capabilities()
		}
		if f.h.Held != nil {
			if held := f.h.Held(); held != "" {
				f.t.Errorf("the devices were only looked at, and hold %s", held)
			}
		}
		w := f.world(options{counted: true})
		before := w.plan.Counts()
		for _, d := range must(runtime.Enumerate()) {
			_ = must(runtime.Get(d.Name())).Capabilities()
		}
		_, _, _ = runtime.Count(), runtime.NoGPU(), must(runtime.Default())
		for call, n := range w.plan.Counts() {
			if call != fault.FamilyOpen && call != fault.Any && n != before[call] {
				w.t.Errorf("discovery made %d calls of %s", n-before[call], call)
			}
		}
	}},
	{"the device that is current on a thread changes nothing", func(f *fixture) {
		w := f.memory(options{})
		far := w.far()
		here, there := w.lease(w.r), w.lease(far)
		a, b := w.new(words), w.own(must(buffer.Of(far)).New(8*words))
		for _, d := range []runtime.Device{far.Device(), w.r.Device()} {
			w.ok(d.Do(func() error {
				c, err := w.m.New(8 * words)
				if err != nil {
					return err
				}
				return errors.Join(fill(here, a, 1), fill(there, b, 2), fill(here, c, 3), move(here, c, a), holds(here, c, 1), holds(there, b, 2), c.Free())
			}))
			w.expect("afterwards, the near buffer", here, a, 1)
			w.expect("afterwards, the far buffer", there, b, 2)
		}
	}},
	{"goroutines that move between threads hit their own device", func(f *fixture) {
		w := f.memory(options{})
		all := []*runtime.Resources{w.r, w.far()}
		var tasks []*task
		for g := range 6 {
			r := all[g%2]
			m := must(buffer.Of(r))
			tasks = append(tasks, w.start("a goroutine", func() error {
				for i := range 25 {
					s, err := r.Streams().Acquire(context.Background())
					if err != nil {
						return err
					}
					b, err := m.New(8 * words)
					if err != nil {
						return err
					}
					value := int64(100*g + i)
					err = fill(s, b, value)
					goruntime.Gosched()
					if err := errors.Join(err, holds(s, b, value), b.Free(), s.Release()); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		w.all(tasks)
	}},
	{"a context names the device of leases", func(f *fixture) {
		w := f.world(options{})
		far := w.far()
		for _, r := range []*runtime.Resources{far, w.r} {
			l, err := blas.Acquire(runtime.On(context.Background(), r.Device()))
			w.ok(err)
			if d := l.Stream().Device(); d != r.Device().Driver() {
				w.t.Errorf("on %v the lease is of %s", r.Device(), d.Name())
			}
			w.ok(l.Release())
		}
		l := must(blas.Acquire(context.Background()))
		if d := l.Stream().Device(); d.Name() != w.name {
			w.t.Errorf("without a device in the context the lease is of %s; expected the default", d.Name())
		}
		w.ok(l.Release())
	}},
}
