package devicetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// mortal skips the test where no device is to be killed.
func (f *fixture) mortal() {
	f.t.Helper()
	if f.h.Kill == nil {
		f.t.Skip("no device of this harness is to be killed")
	}
}

// kill makes a device of the world die and answers the cause.
func (w *world) kill(r *runtime.Resources) (cause error) {
	w.t.Helper()
	d := r.Device().Driver()
	w.within("Kill", func() error {
		cause = w.h.Kill(d)
		return nil
	})
	w.lost("Device.Err", d.Err(), cause)
	return cause
}

// doomed is a world whose first device is to die.
func (f *fixture) doomed(o options) *world {
	f.t.Helper()
	f.mortal()
	o.mayFail = true
	return f.memory(o)
}

var deathTests = []test{
	{"a device that dies wakes everybody with the first cause, and Close ends", func(f *fixture) {
		w := f.doomed(options{counted: true, ResourceOptions: runtime.ResourceOptions{Streams: 2}})
		must(blas.Configure(w.r, 1))
		x := w.take()
		s, b, pinned := w.lease(w.r), w.new(words), w.pinned(8*words)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.stall(s)
		w.fill(s, b, 1)
		w.fill(s, pinned, 1)
		c := w.tail(s)
		w.ok(s.Release())
		w.stall(x.Stream())
		waiters := []*task{
			w.start("a wait for a completion in the driver", func() error { return c.Wait(context.Background()) }),
			w.start("a parked wait for a completion", func() error { return c.Wait(ctx) }),
			w.start("HostRead", func() error { return pinned.HostRead(ctx, func([]byte) error { return nil }) }),
			w.start("Buffer.Wait", func() error { return b.Wait(context.Background()) }),
		}
		for range 3 {
			waiters = append(waiters, w.start("a waiter for a stream", func() error { return second(w.r.Streams().Acquire(context.Background())) }))
		}
		for range 2 {
			waiters = append(waiters, w.start("a waiter for a handle", func() error { return second(blas.AcquireOn(ctx, w.r)) }))
		}
		w.untilWaiting(w.r.Streams(), 3)
		w.untilWaiting(must(blas.Of(w.r)), 2)
		yield()
		cause := w.kill(w.r)
		for _, t := range waiters {
			w.lost(t.what, t.join(), cause)
		}
		w.lost("a later waiter for a stream", second(w.r.Streams().Acquire(context.Background())), cause)
		w.lost("a later waiter for a handle", second(blas.AcquireOn(context.Background(), w.r)), cause)
		w.lost("the completion", second(c.Done()), cause)
		_ = x.Release() // of a dead device
		for _, b := range []*buffer.Buffer{b, pinned} {
			if err := w.start("Free", b.Free).join(); err != nil {
				w.lost("Free", err, cause)
			}
		}
		w.lost("Close", w.start("Close", w.rt.Close).join(), cause)
		w.lost("the completion, after Close", second(c.Done()), cause)
	}},
	{"waiters wake though their notifications never come", func(f *fixture) {
		w := f.doomed(options{counted: true, ResourceOptions: runtime.ResourceOptions{Streams: 1}})
		b := w.new(words)
		for i := range 8 {
			w.plan.DropNotify(i + 1)
		}
		s := w.lease(w.r)
		w.stall(s)
		w.fill(s, b, 1)
		c := w.tail(s)
		w.ok(s.Release())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		waiters := []*task{
			w.start("a waiter for a stream", func() error { return second(w.r.Streams().Acquire(context.Background())) }),
			w.start("a parked wait for a completion", func() error { return c.Wait(ctx) }),
		}
		w.untilWaiting(w.r.Streams(), 1)
		w.until("both notifications", func() bool { return w.plan.Counts()[fault.StreamNotify] >= 2 })
		cause := w.kill(w.r)
		for _, t := range waiters {
			w.lost(t.what, t.join(), cause)
		}
	}},
	{"everything of a dead device answers its error and can be given up", func(f *fixture) {
		w := f.doomed(options{})
		s := w.streams(3)
		small, big, open, pinned, idle := w.new(words), w.bytes(3<<20), w.new(words), w.pinned(8*words), w.bytes(3<<20)
		l := w.take()
		w.ok(l.Stream().Synchronize(context.Background()))
		w.stall(s[0])
		w.fill(s[0], small, 1)
		w.move(s[0], big, small)
		w.look(s[1], big)
		w.fill(s[0], pinned, 1)
		scope := buffer.Begin(s[2])
		scope.Write(open)
		w.ok(scope.Err())
		must(s[2].Submit())

		cause := w.kill(w.r)
		w.lost("End", w.start("End", scope.End).join(), cause)
		for name, b := range map[string]*buffer.Buffer{"small": small, "big": big, "open": open, "pinned": pinned} {
			w.lost("writing "+name, w.start("an access", func() error { return fill(s[2], b, 2) }).join(), cause)
		}
		w.lost("HostRead", w.start("HostRead", func() error { return pinned.HostRead(context.Background(), func([]byte) error { return nil }) }).join(), cause)
		w.lost("New", second(w.m.New(5<<20)), cause)
		w.lost("NewPinned", second(w.m.NewPinned(5)), cause)
		w.lost("a product", product(l, 2, small, open, open, 0), cause)
		_ = w.start("Trim", w.m.Trim).join()
		for _, b := range []*buffer.Buffer{small, big, open, pinned, idle} {
			if err := w.start("Free", b.Free).join(); err != nil {
				w.lost("Free", err, cause)
			}
			if b.Live() {
				w.t.Error("a buffer of the dead device cannot be freed")
			}
		}
		if s := w.m.Stats(); s.Buffers != 0 || s.Used != 0 {
			w.t.Errorf("at last %+v", s)
		}
		for _, s := range s {
			_ = s.Release()
		}
		_ = l.Release()
		w.lost("Close", w.start("Close", w.rt.Close).join(), cause)
	}},
	{"a device that is spared goes on, and closes as ever", func(f *fixture) {
		w := f.doomed(options{})
		far := must(runtime.For(must(runtime.Get(f.spared()))))
		m := must(buffer.Of(far))
		fs, a, b := w.lease(far), w.own(m.New(8*words)), w.own(m.New(8*words))
		w.fill(fs, a, 4)
		w.sync(fs)
		s, mine := w.lease(w.r), w.new(words)
		w.stall(s)
		w.fill(s, mine, 1)
		release := func() {} // of what is spared where deaths spread, streams cannot be stalled
		if !f.h.DeathSpreads {
			release = w.stall(fs)
		}
		w.move(fs, b, a)
		cause := w.kill(w.r)
		if err := far.Device().Err(); err != nil {
			w.t.Fatalf("the other device is lost too: %v", err)
		}
		if !f.h.DeathSpreads {
			w.pending("the other device's work", w.tail(fs))
		}
		release()
		w.expect("work of before", fs, b, 4)
		more := w.own(m.New(3 << 20))
		w.fill(fs, more, 5)
		w.expect("work of afterwards", fs, more, 5)
		l, err := blas.AcquireOn(context.Background(), far)
		w.ok(err)
		x, y := w.own(m.New(8)), w.own(m.New(8))
		w.ok(errors.Join(upload(fs, x, floats([]float64{2})), product(&l, 1, y, x, x, 0), l.Release()))
		if got := w.values(fs, y); got[0] != 4 {
			w.t.Errorf("a product of afterwards gives %v; expected 4", got)
		}
		w.free(a, b, more, x, y, mine)
		_ = s.Release() // of the dead device
		w.ok(fs.Release())
		err = w.start("Close", w.rt.Close).join()
		w.lost("Close", err, cause)
		var all []string
		for _, e := range flat(err) {
			var we *weir.Error
			if errors.As(e, &we) {
				all = append(all, we.Device)
			}
		}
		lost := []string{w.name}
		if f.h.DeathSpreads {
			lost = f.chosen()
		}
		if slices.ContainsFunc(all, func(d string) bool { return !slices.Contains(lost, d) }) {
			w.t.Errorf("Close answers %v; expected errors of %v alone", err, lost)
		}
	}},
	{"who waits for the neighbour of a lost device goes on waiting, or wakes with the same cause", func(f *fixture) {
		w := f.doomed(options{ResourceOptions: runtime.ResourceOptions{Streams: 2}})
		far := w.far()
		s, b, x := w.lease(far), w.own(must(buffer.Of(far)).New(8*words)), w.lease(far)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		release := w.stall(s)
		w.fill(s, b, 1)
		c := w.tail(s)
		w.ok(s.Release())
		waiters := []*task{
			w.start("a wait for a completion in the driver", func() error { return c.Wait(context.Background()) }),
			w.start("a parked wait for a completion", func() error { return c.Wait(ctx) }),
			w.start("Buffer.Wait", func() error { return b.Wait(context.Background()) }),
			w.start("a waiter for a stream", func() error {
				s, err := far.Streams().Acquire(ctx)
				return errors.Join(err, s.Release())
			}),
		}
		w.untilWaiting(far.Streams(), 1)
		yield()
		cause := w.kill(w.r)
		if !f.h.DeathSpreads {
			w.pending("the neighbour's work", c)
			release()
			w.all(waiters)
			return
		}
		for _, t := range waiters {
			w.lost(t.what, t.join(), cause)
		}
		w.lost("the neighbour's Err", far.Device().Err(), cause)
		w.lost("a later waiter for a stream", second(far.Streams().Acquire(context.Background())), cause)
		_ = x.Release() // of a dead device
		w.lost("Close", w.start("Close", w.rt.Close).join(), cause)
	}},
	{"what waited for a lost device fails, and what did not is well", func(f *fixture) {
		w := f.doomed(options{})
		far := w.far()
		m := must(buffer.Of(far))
		lost := w.lease(w.r)
		source := w.new(words)
		s, target, mine, copied := w.lease(far), w.own(m.New(8*words)), w.own(m.New(8*words)), w.own(m.New(8*words))
		free := w.lease(far)
		w.fill(s, mine, 1)
		before := w.tail(s)
		w.stall(lost)
		w.fill(lost, source, 1)
		w.move(s, target, source)
		waited := w.tail(s)
		w.move(free, copied, target) // on a living device, and yet
		after := w.tail(free)
		cause := w.kill(w.r)
		for what, c := range map[string]stream.Completion{"what waited": waited, "what waited for that": after} {
			w.lost(what, w.start(what, func() error { return c.Wait(context.Background()) }).join(), cause)
		}
		w.lost("reading what was to be written", w.start("a read", func() error { return holds(free, copied, 1) }).join(), cause)
		if f.h.DeathSpreads { // then nothing of this device is well
			w.lost("what is independent", w.start("a read", func() error { return holds(free, mine, 1) }).join(), cause)
			w.lost("a later lease", w.start("a later lease", func() error {
				s, err := far.Streams().Acquire(context.Background())
				if err != nil {
					return err
				}
				return errors.Join(fill(s, mine, 2), s.Release())
			}).join(), cause)
			return
		}
		w.finish("what came before", before)
		other := w.lease(far)
		w.expect("what is independent", other, mine, 1)
		w.ok(errors.Join(s.Release(), free.Release()))
		for range 8 { // the streams go on in later leases
			s := w.lease(far)
			w.fill(s, mine, 2)
			w.expect("a later lease", s, mine, 2)
			w.ok(s.Release())
		}
	}},
	{"memory that a dead device only read is well", func(f *fixture) {
		w := f.doomed(options{})
		far := w.far()
		m := must(buffer.Of(far))
		s, own := w.lease(w.r), w.lease(far)
		target := w.bytes(3 << 20)
		var all []*buffer.Buffer
		for _, n := range []int64{8 * words, 3 << 20} {
			all = append(all, w.own(m.New(n)), w.own(m.New(n)))
		}
		for _, b := range all {
			w.fill(own, b, 1)
		}
		w.sync(own)
		w.stall(s)
		for _, b := range all {
			w.move(s, target, b)
		}
		cause := w.kill(w.r)
		for i, b := range all {
			if f.h.DeathSpreads { // then it is lost with its own device
				w.lost("writing what the dead device was to read", w.start("a fill", func() error { return fill(own, b, 2) }).join(), cause)
				if err := w.start("Free", b.Free).join(); err != nil {
					w.lost("Free", err, cause)
				}
				continue
			}
			if i%2 == 0 { // the others are freed as they are
				w.fill(own, b, 2)
				w.expect("what the dead device was to read", own, b, 2)
			}
			w.free(b)
		}
		if f.h.DeathSpreads {
			w.lost("New", second(m.New(3<<20)), cause)
			return
		}
		next := w.own(m.New(3 << 20))
		w.fill(own, next, 3)
		w.expect("a next owner", own, next, 3)
	}},
	{"goroutines that operate while the device dies all end", func(f *fixture) {
		w := f.doomed(options{ResourceOptions: runtime.ResourceOptions{Streams: 3}})
		must(blas.Configure(w.r, 2))
		s := w.lease(w.r)
		x := w.matrix(s, []float64{1, 0, 0, 1})
		w.sync(s)
		w.ok(s.Release())
		var rounds atomic.Int64
		var tasks []*task
		for g := range 6 {
			tasks = append(tasks, w.start("a goroutine", func() error {
				for {
					b, err := w.m.New([]int64{32, 3 << 20}[g%2])
					if err != nil {
						return err
					}
					if g%3 == 0 {
						err = w.once(func(s stream.Stream) error {
							if err := fill(s, b, 1); err != nil {
								return err
							}
							return s.Synchronize(context.Background())
						})
					} else {
						var l blas.Lease
						if l, err = blas.AcquireOn(context.Background(), w.r); err == nil {
							err = errors.Join(product(&l, 2, b, x, x, 0), l.Release())
						}
					}
					if ferr := b.Free(); err == nil {
						err = ferr
					}
					if err != nil {
						return err
					}
					rounds.Add(1)
				}
			}))
		}
		w.until("some rounds", func() bool { return rounds.Load() > 20 })
		cause := w.kill(w.r)
		for _, t := range tasks {
			w.lost(t.what, t.join(), cause)
		}
		w.lost("Close", w.start("Close", w.rt.Close).join(), cause)
	}},
	{"a death at any call is answered and hangs nothing", func(f *fixture) {
		f.mortal()
		for n := 1; ; n++ {
			if n > 1 {
				f.families = f.h.Families(f.t)
			}
			if _, ok := f.device(0).(interface{ Kill(error) }); !ok {
				f.t.Skip("the plan cannot kill a device of this family")
			}
			plan := &fault.Plan{}
			plan.KillNth(fault.Any, n, errCause)
			_, err := f.program(plan, false)
			if n > plan.Counts()[fault.Any] {
				if err != nil || n < 30 {
					f.t.Errorf("with no death, after %d calls: %v", n-1, err)
				}
				return
			}
			if errors.Is(err, errWrongValue) || err != nil && !errors.Is(err, weir.ErrDeviceLost) {
				f.t.Errorf("call %d: %v; expected the lost device", n, err)
			}
		}
	}},
}

// flat takes joined errors apart.
func flat(err error) []error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range many.Unwrap() {
		all = append(all, flat(e)...)
	}
	return all
}
