package devicetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/stream"
)

// wakes is a waker that passes on what it is told.
type wakes chan error

func (w wakes) Wake(err error) { w <- err }

var completionTests = []test{
	{"a completion is done with the work before it, whatever comes after", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.lease(w.r), w.new(words)
		first := w.stall(s)
		w.fill(s, b, 1)
		before := w.tail(s)
		second := w.stall(s)
		w.fill(s, b, 2)
		after := w.tail(s)
		w.pending("the first operation", before)
		first()
		w.finish("the first operation", before)
		if !before.Known() || after.Known() {
			w.t.Errorf("known are %v and %v; expected the first", before.Known(), after.Known())
		}
		w.pending("the second operation", after)
		second()
		w.finish("the second operation", after)
	}},
	{"a stream waits for another's completion and for nothing that came later", func(f *fixture) {
		w := f.memory(options{})
		w.crossWait(w.lease(w.r), w.lease(w.r), w.m)
	}},
	{"a stream waits for the completion of another device", func(f *fixture) {
		w := f.memory(options{})
		w.crossWait(w.lease(w.r), w.lease(w.far()), must(buffer.Of(w.far())))
	}},
	{"waits survive the release of the stream that was waited for", func(f *fixture) {
		w := f.memory(pool(2))
		a, b := w.lease(w.r), w.lease(w.r)
		x, y := w.new(words), w.new(words)
		w.fill(b, x, 0)
		w.sync(b)
		release := w.stall(a)
		w.fill(a, x, 1)
		w.move(b, y, x)
		w.ok(errors.Join(a.Release(), b.Release()))
		if yield(); w.try() {
			w.t.Error("a stream was leased that stands behind the stalled one")
		}
		release()
		w.expect("what waited", w.lease(w.r), y, 1)
	}},
	{"needless waits make no driver call", func(f *fixture) {
		w := f.memory(countedPool(3))
		a, b, c := w.lease(w.r), w.lease(w.r), w.lease(w.r)
		x, y := w.new(words), w.new(words)
		w.fill(b, y, 1)
		finished := w.tail(b)
		w.finish("an operation", finished)
		release := w.stall(a)
		w.fill(a, x, 1)
		own := w.tail(a)
		if n := w.count(fault.Any, func() { w.ok(errors.Join(a.Wait(own), a.Wait(finished), c.Wait(finished))) }); n != 0 {
			w.t.Errorf("waits for a stream's own work and for finished work made %d driver calls", n)
		}
		if n := w.count(fault.StreamWait, func() { w.ok(errors.Join(b.Wait(own), c.Wait(own))) }); n != 2 {
			w.t.Errorf("%d waits reached the driver; expected the two that are needed", n)
		}
		release()
	}},
	{"a token of finished work costs no driver call", func(f *fixture) {
		w := f.memory(countedPool(2))
		s, other, b := w.lease(w.r), w.lease(w.r), w.new(words)
		w.fill(s, b, 1)
		c := w.tail(s)
		w.finish("the operation", c)
		woken := make(wakes, 1)
		if n := w.count(fault.Any, func() {
			for range 1000 {
				copied := c
				done, err := copied.Done()
				if !done || err != nil {
					w.t.Fatalf("done is %v, %v", done, err)
				}
			}
			w.ok(errors.Join(c.Wait(context.Background()), other.Wait(c), c.Notify(woken), <-woken))
		}); n != 0 {
			w.t.Errorf("it made %d driver calls", n)
		}
	}},
	{"ten thousand records need few events", func(f *fixture) {
		w := f.memory(countedPool(1))
		s, b := w.lease(w.r), w.new(words)
		made := w.count(fault.DeviceNewEvent, func() {
			w.within("ten thousand records", func() error {
				for i := range 10_000 {
					if i%16 == 0 {
						if err := fill(s, b, int64(i)); err != nil {
							return err
						}
					}
					c, err := s.Record()
					if err == nil && i%30 == 0 {
						err = c.Wait(context.Background())
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
		if made > 100 { // as many as are unfinished at a time, which the waits bound
			w.t.Errorf("10000 records made %d events", made)
		}
	}},
	{"tokens stay true when their events are used again", func(f *fixture) {
		const rounds = 600
		w := f.memory(countedPool(3))
		source, readers := w.lease(w.r), w.streams(2)
		log, saw := w.new(rounds), w.new(rounds)
		w.fill(source, log, 0)
		w.fill(source, saw, 0)
		w.sync(source)
		from, to := w.at(source, log), w.at(source, saw)
		// No ledger here: the tokens alone order. Record i follows the writing of
		// place i, and a reader copies the place of the record that it waited for.
		tokens, at := make([]stream.Completion, rounds), make([]int, rounds)
		w.within("submitting", func() error {
			for i := range rounds {
				place := func(base driver.Ptr, i int) driver.Ptr { return base + driver.Ptr(8*i) }
				err := must(source.Submit()).Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(place(from, i), 1), Alpha: complex(float64(i+1), 0)})
				if err != nil {
					return err
				}
				if tokens[i], err = source.Record(); err != nil {
					return err
				}
				at[i] = i - (i*i)%(min(i, 20)+1) // the newest or one of those before
				reader := readers[i%2]
				if err := errors.Join(reader.Wait(tokens[at[i]]), must(reader.Submit()).Copy(place(to, i), place(from, at[i]), 8)); err != nil {
					return err
				}
				if i%16 == 0 {
					if err := source.Synchronize(context.Background()); err != nil {
						return err
					}
				}
			}
			return errors.Join(readers[0].Synchronize(context.Background()), readers[1].Synchronize(context.Background()))
		})
		for i, x := range must(numbers(source, saw)) {
			if x != int64(at[i]+1) {
				w.t.Fatalf("reader %d waited for record %d and saw %d; expected %d", i, at[i], x, at[i]+1)
			}
			if done, err := tokens[i].Done(); !done || err != nil {
				w.t.Fatalf("token %d: done is %v, %v", i, done, err)
			}
		}
		if n := w.plan.Counts()[fault.DeviceNewEvent]; n > rounds/2 {
			w.t.Errorf("%d events for %d records; so few were used again and nothing is shown", n, rounds)
		}
	}},
	{"the later of two completions of a stream implies the other", func(f *fixture) {
		w := f.memory(countedPool(2))
		s, b := w.lease(w.r), w.new(words)
		release := w.stall(s)
		w.fill(s, b, 1)
		first := w.tail(s)
		w.fill(s, b, 2)
		second := w.tail(s)
		if later, ok := first.Merge(second); !ok || later != second {
			w.t.Errorf("merged to %v, %v; expected the later", later, ok)
		}
		release()
		w.finish("the later", second)
		if n := w.count(fault.Any, func() {
			if done, err := first.Done(); !done || err != nil {
				w.t.Errorf("the earlier: done is %v, %v", done, err)
			}
		}); n != 0 {
			w.t.Errorf("asking the earlier made %d driver calls", n)
		}
	}},
	{"the host waits for a completion, parked or in the driver", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.lease(w.r), w.new(words)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		release := w.stall(s)
		w.fill(s, b, 1)
		c := w.tail(s)
		later := w.stall(s) // not waited for in the driver
		w.fill(s, b, 2)
		inDriver := w.startWaiting("a wait in the driver", func() error { return c.Wait(context.Background()) })
		parked := w.startWaiting("a parked wait", func() error { return c.Wait(ctx) })
		if inDriver.ended() || parked.ended() {
			w.t.Error("a wait returned before the work was done")
		}
		release()
		w.ok(errors.Join(inDriver.join(), parked.join()))
		later()
	}},
	{"completions outlive their pool", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.lease(w.r), w.new(words)
		w.fill(s, b, 1)
		c := w.tail(s)
		w.ok(s.Release())
		w.free(b)
		w.within("Close", w.rt.Close)
		woken := make(wakes, 1)
		if done, err := c.Done(); !done || err != nil {
			w.t.Errorf("after Close it is done: %v, %v", done, err)
		}
		w.ok(errors.Join(c.Wait(context.Background()), c.Notify(woken), <-woken))
	}},
	{"operations of several goroutines on one stream are all covered by its completions", func(f *fixture) {
		const goroutines, each = 3, 40
		w := f.memory(pool(2))
		first := w.lease(w.r)
		var tasks []*task
		for g := range goroutines {
			s, err := first.Retain()
			w.ok(err)
			b, out := w.new(words), w.new(words)
			tasks = append(tasks, w.start(fmt.Sprintf("goroutine %d", g), func() error {
				for i := range int64(each) {
					if err := errors.Join(fill(s, b, i), move(s, out, b)); err != nil {
						return err
					}
					c, err := s.Record()
					if err == nil {
						err = c.Wait(context.Background())
					}
					if err == nil {
						err = holds(s, out, i)
					}
					if err != nil {
						return err
					}
				}
				return s.Release()
			}))
		}
		w.ok(first.Release())
		w.all(tasks)
	}},
}

// crossWait has b, whose device's memory is far, copy what a writes behind a
// stall.
func (w *world) crossWait(a, b stream.Stream, far *buffer.Memory) {
	w.t.Helper()
	x, y := w.new(words), w.own(far.New(8*words))
	w.fill(a, x, 1)
	w.expect("at first", a, x, 1)
	p, q := w.at(a, x), w.at(b, y)
	release := w.stall(a)
	w.within("submitting", func() error {
		return must(a.Submit()).Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(p, words), Alpha: 2})
	})
	c := must(a.Record())
	later := w.stall(a) // b need not wait for this
	w.ok(b.Wait(c))
	w.within("submitting", func() error {
		return must(b.Submit()).CopyPeer(q, far.Resources().Device().Driver().Ordinal(), p, 0, 8*words)
	})
	d := must(b.Record())
	w.pending("the waiting stream", d)
	release()
	w.finish("the waiting stream", d)
	w.expect("what it copied", b, y, 2)
	later()
}
