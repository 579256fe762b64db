package devicetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// pool is a world whose first device has n streams for operations.
func pool(n int) options { return options{ResourceOptions: runtime.ResourceOptions{Streams: n}} }

// countedPool is pool with its calls counted.
func countedPool(n int) options {
	o := pool(n)
	o.counted = true
	return o
}

// try says whether a stream is idle now, and gives it back.
func (w *world) try() bool {
	w.t.Helper()
	s, ok, err := w.r.Streams().TryAcquire()
	w.ok(err)
	if ok {
		w.ok(s.Release())
	}
	return ok
}

var streamTests = []test{
	{"a stream goes from idle over leased to pending and back", func(f *fixture) {
		w := f.memory(pool(1))
		b, p := w.new(words), w.r.Streams()
		w.expectCounts("at first", p, "1 idle, 0 leased, 0 pending, 0 waiting")
		s := w.lease(w.r)
		w.expectCounts("leased", p, "0 idle, 1 leased, 0 pending, 0 waiting")
		release := w.stall(s)
		w.fill(s, b, 1)
		c := w.tail(s)
		w.ok(s.Release())
		w.expectCounts("released", p, "0 idle, 0 leased, 1 pending, 0 waiting")
		if yield(); w.try() {
			w.t.Error("a stream was leased while its work was stalled")
		}
		release()
		w.finish("the work", c)
		if !w.try() {
			w.t.Error("no stream is idle though its work is done")
		}
	}},
	{"unrelated work is never queued behind a stalled stream", func(f *fixture) {
		w := f.memory(pool(2))
		b := w.new(words)
		stalled := w.lease(w.r)
		name := stalled.String()
		w.stall(stalled)
		w.ok(stalled.Release())
		for i := range int64(20) {
			var s stream.Stream
			w.until("an idle stream", func() (ok bool) { // the last one's work may be under way
				var err error
				s, ok, err = w.r.Streams().TryAcquire()
				w.ok(err)
				return ok
			})
			if s.String() == name {
				w.t.Fatal("a stalled stream was leased")
			}
			w.fill(s, b, i)
			w.expect("work beside a stalled stream", s, b, i)
			w.ok(s.Release())
		}
	}},
	{"copies share a slot, which returns after the last and its work", func(f *fixture) {
		w := f.memory(pool(1))
		b := w.new(words)
		first := w.lease(w.r)
		second, err := first.Retain()
		w.ok(err)
		w.ok(errors.Join(first.Release(), first.Release()))
		w.expectCounts("after one release, twice", w.r.Streams(), "0 idle, 1 leased, 0 pending, 0 waiting")
		_, err = first.Submit()
		w.refused(err, weir.ErrStale, "stream 0: used after its release; expected a live lease")
		release := w.stall(second)
		w.fill(second, b, 1)
		w.ok(second.Release())
		if yield(); w.try() {
			w.t.Error("the stream was leased before its work was done")
		}
		release()
		w.expect("the work", w.lease(w.r), b, 1)
	}},
	{"as many operations are queued as there are streams", func(f *fixture) {
		const size = 3
		w := f.memory(pool(size))
		b := w.new(words)
		s := w.streams(size)
		var releases []func()
		for i := range s {
			releases = append(releases, w.stall(s[i]))
			w.look(s[i], b)
			w.ok(s[i].Release())
		}
		var waiters []*task
		for range 4 {
			waiters = append(waiters, w.start("an operation", func() error {
				s, err := w.r.Streams().Acquire(context.Background())
				if err != nil {
					return err
				}
				return errors.Join(look(s, b), s.Release())
			}))
		}
		w.untilWaiting(w.r.Streams(), len(waiters))
		w.expectCounts("with all stalled", w.r.Streams(), "0 idle, 0 leased, 3 pending, 4 waiting")
		releases[1]() // one stream serves them all
		w.all(waiters)
	}},
	{"one lease carries a chain of dependent operations in order", func(f *fixture) {
		w := f.memory(pool(1))
		s := w.lease(w.r)
		b, one := w.new(words), w.new(words)
		w.fill(s, b, 1)
		w.fill(s, one, 1)
		w.sync(s)
		release := w.stall(s)
		want := int64(1)
		for i := range int64(40) {
			factor := 2 + i%2
			w.step(s, b, one, factor)
			want = factor*want + 1 // wraps, as the device does
		}
		release()
		w.expect("the chain", s, b, want)
	}},
	{"priorities are selectable in the device's range", func(f *fixture) {
		w := f.memory(options{})
		c, b := w.raw.Capabilities(), w.new(words)
		for _, priority := range []int{c.PriorityLeast, c.PriorityGreatest} {
			p, err := stream.NewPool(w.r.Device().Driver(), stream.Options{Count: 2, Priority: priority})
			w.ok(err)
			s, err := p.Acquire(context.Background())
			w.ok(err)
			w.fill(s, b, int64(priority))
			w.expect(fmt.Sprintf("work of priority %d", priority), s, b, int64(priority))
			w.ok(s.Release())
			w.within("Close", p.Close)
		}
		for _, outside := range []int{c.PriorityLeast + 1, c.PriorityGreatest - 1} {
			_, err := stream.NewPool(w.r.Device().Driver(), stream.Options{Count: 1, Priority: outside})
			w.refused(err, weir.ErrArgument, "Device.NewStream on %s: priority %d; expected %d (greatest) to %d (least)",
				w.name, outside, c.PriorityGreatest, c.PriorityLeast)
		}
	}},
	{"a stale stream reaches no driver and releases nobody's lease", func(f *fixture) {
		w := f.memory(countedPool(1))
		old := w.lease(w.r)
		copied := old
		w.ok(old.Release())
		present := w.lease(w.r)
		if n := w.count(fault.Any, func() {
			for _, s := range []stream.Stream{{}, old, copied} {
				for _, err := range []error{second(s.Submit()), second(s.Record()), second(s.Tail()), second(s.Retain()), second(s.Native()),
					s.Wait(stream.Completion{}), s.Synchronize(context.Background())} {
					if !errors.Is(err, weir.ErrStale) {
						w.t.Errorf("a stale stream answers %v; expected ErrStale", err)
					}
				}
				w.ok(s.Release())
			}
		}); n != 0 || !present.Valid() || present.String() != w.name+"/0" {
			w.t.Errorf("stale streams made %d driver calls; the present lease is %v, valid %v", n, present, present.Valid())
		}
	}},
	{"an operation is recorded once, and an idle lease never", func(f *fixture) {
		w := f.memory(countedPool(1))
		b := w.new(words)
		for _, c := range []struct {
			what string
			do   func(s stream.Stream)
			want int
		}{
			{"an idle lease", func(stream.Stream) {}, 0},
			{"unrecorded work", func(s stream.Stream) { must(s.Submit()) }, 1},
			{"an operation", func(s stream.Stream) { w.fill(s, b, 1) }, 1},
			{"an operation whose tail is asked for", func(s stream.Stream) { w.fill(s, b, 1); w.tail(s); w.tail(s) }, 1},
			{"work after a record", func(s stream.Stream) { w.fill(s, b, 1); must(s.Submit()) }, 2},
		} {
			s := w.lease(w.r)
			if n := w.count(fault.StreamRecord, func() { c.do(s); w.ok(s.Release()) }); n != c.want {
				w.t.Errorf("%s: %d records; expected %d", c.what, n, c.want)
			}
		}
	}},
}
