package devicetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

// handles is a counted world with n streams and m BLAS handles.
func (f *fixture) handles(n, m int) (*world, *blas.Executor) {
	f.t.Helper()
	w := f.memory(countedPool(n))
	e, err := blas.Configure(w.r, m)
	f.ok(err)
	return w, e
}

// take leases a handle and a stream, which must both be free by and by.
func (w *world) take() *blas.Lease {
	w.t.Helper()
	var l blas.Lease
	w.within("acquiring a handle and a stream", func() (err error) {
		l, err = blas.AcquireOn(context.Background(), w.r)
		return err
	})
	w.afterwards("releasing a lease", l.Release)
	return &l
}

// whole are n×n small whole numbers, whose sums and products are exact.
func whole(random *rand.Rand, n int) []float64 {
	m := make([]float64, n*n)
	for i := range m {
		m[i] = float64(random.IntN(7) - 3)
	}
	return m
}

var providerTests = []test{
	{"handles are made at the first use, one for each stream, and used again", func(f *fixture) {
		w := f.memory(countedPool(3))
		if n := w.plan.Counts()[fault.DeviceNewBLAS]; n != 0 {
			w.t.Errorf("%d handles were made before any use", n)
		}
		var all sync.WaitGroup
		executors := make([]*blas.Executor, 4)
		for i := range executors {
			all.Go(func() { executors[i], _ = blas.Of(w.r) })
		}
		all.Wait()
		if slices.ContainsFunc(executors, func(e *blas.Executor) bool { return e == nil || e != executors[0] }) {
			w.t.Fatal("first uses at once made several executors, or none")
		}
		for range 10 {
			w.ok(w.take().Release())
		}
		if n := w.plan.Counts()[fault.DeviceNewBLAS]; n != 3 || executors[0].Size() != 3 {
			w.t.Errorf("%d handles were made, the pool says %d; expected 3", n, executors[0].Size())
		}
	}},
	{"a count of handles is set before the first use, and a later one must agree", func(f *fixture) {
		w := f.memory(countedPool(4))
		for _, count := range []int{0, 5} {
			_, err := blas.Configure(w.r, count)
			w.refused(err, weir.ErrArgument, "provider.NewPool: %d of blas handle on %s; expected 1 to 4, the number of streams", count, w.name)
		}
		e, err := blas.Configure(w.r, 2)
		w.ok(err)
		_, err = blas.Configure(w.r, 3)
		w.refused(err, weir.ErrArgument, "provider.Configure: 3 of blas handle on %s; its first use made 2, and a later count must agree", w.name)
		if n := w.plan.Counts()[fault.DeviceNewBLAS]; must(blas.Configure(w.r, 2)) != e || must(blas.Of(w.r)) != e || e.Size() != 2 || n != 2 || w.r.Streams().Size() != 4 {
			w.t.Errorf("%d handles were made, the pool says %d of %d streams; expected 2 of 4", n, e.Size(), w.r.Streams().Size())
		}
	}},
	{"products of many goroutines over few handles are right", func(f *fixture) {
		const n, goroutines, rounds = 5, 5, 15
		w, _ := f.handles(3, 2)
		var tasks []*task
		for g := range goroutines {
			random := rand.New(rand.NewPCG(uint64(g), 3))
			a, b, c := whole(random, n), whole(random, n), whole(random, n)
			s := w.lease(w.r)
			x, y, z := w.matrix(s, a), w.matrix(s, b), w.matrix(s, c)
			w.ok(s.Release())
			tasks = append(tasks, w.start("a goroutine", func() error {
				want := c
				for range rounds {
					l, err := blas.AcquireOn(context.Background(), w.r)
					if err != nil {
						return err
					}
					if err := errors.Join(product(&l, n, z, x, y, 1), l.Release()); err != nil {
						return err
					}
					want = multiplied(n, a, b, want, 1)
				}
				s, err := w.r.Streams().Acquire(context.Background())
				if err != nil {
					return err
				}
				got := make([]byte, 8*n*n)
				if err := download(s, got, z); err != nil {
					return err
				}
				if !slices.Equal(got, floats(want)) {
					return errors.New("the sum of the products is wrong")
				}
				return s.Release()
			}))
		}
		w.all(tasks)
	}},
	{"a handle returns at its operation's tail, however long its stream is kept", func(f *fixture) {
		w, e := f.handles(2, 1)
		b := w.new(words)
		x := w.take()
		release := w.stall(x.Stream())
		w.fill(x.Stream(), b, 1)
		s, err := x.Stream().Retain()
		w.ok(err)
		w.afterwards("releasing a stream", s.Release)
		w.ok(x.Release())
		w.stall(s) // more work, for as long as the test lasts
		w.expectCounts("handles", e, "0 idle, 0 leased, 1 pending, 0 waiting")
		w.expectCounts("streams", w.r.Streams(), "1 idle, 1 leased, 0 pending, 0 waiting")
		if _, ok, err := e.TryAcquire(); ok || err != nil {
			w.t.Errorf("with its operation stalled, the handle was leased: %v, %v", ok, err)
		}
		next := w.start("a waiter for the handle", func() error {
			l, err := blas.AcquireOn(context.Background(), w.r)
			if err != nil {
				return err
			}
			return l.Release()
		})
		w.untilWaiting(e, 1)
		release()
		w.ok(next.join())
	}},
	{"no stream is held while a handle is waited for", func(f *fixture) {
		w, e := f.handles(3, 1)
		b := w.new(words)
		x := w.take()
		var waiters []*task
		for range 2 {
			waiters = append(waiters, w.start("a waiter", func() error {
				l, err := blas.AcquireOn(context.Background(), w.r)
				if err != nil {
					return err
				}
				return l.Release()
			}))
		}
		w.untilWaiting(e, 2)
		w.expectCounts("streams", w.r.Streams(), "2 idle, 1 leased, 0 pending, 0 waiting")
		for _, s := range w.streams(2) { // stream-only work goes on
			w.fill(s, b, 1)
			w.expect("other work", s, b, 1)
			w.ok(s.Release())
		}
		w.ok(x.Release())
		w.all(waiters)
	}},
	{"a waiter for a stream has its handle, and gives it back when it gives up", func(f *fixture) {
		w, e := f.handles(1, 1)
		s := w.lease(w.r)
		ctx, cancel := context.WithCancelCause(context.Background())
		waiter := w.start("a waiter", func() error { return second(blas.AcquireOn(ctx, w.r)) })
		w.untilWaiting(w.r.Streams(), 1)
		w.expectCounts("handles", e, "0 idle, 1 leased, 0 pending, 0 waiting")
		cancel(errCause)
		w.refused(waiter.join(), errCause, "stream.Acquire on %s: gave up waiting: %v", w.name, errCause)
		if _, ok, err := e.TryAcquire(); ok || err != nil {
			w.t.Errorf("without a stream: %v, %v; expected neither", ok, err)
		}
		l, ok, err := e.Pool.TryAcquire()
		if !ok || err != nil {
			w.t.Fatalf("the handle was kept: %v, %v", ok, err)
		}
		l.Release(stream.Completion{})
		w.ok(s.Release())
	}},
	{"who waits for a handle is served in order", func(f *fixture) {
		const waiters = 40
		w, e := f.handles(2, 1)
		b := w.new(words)
		x := w.take()
		release := w.stall(x.Stream())
		w.fill(x.Stream(), b, -1)
		w.ok(x.Release())
		var mu sync.Mutex // guards order
		var order []int
		var tasks []*task
		for i := range waiters {
			tasks = append(tasks, w.start("a waiter", func() error {
				l, err := blas.AcquireOn(context.Background(), w.r)
				if err != nil {
					return err
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				return errors.Join(fill(l.Stream(), b, int64(i)), l.Release())
			}))
			w.untilWaiting(e, i+1)
		}
		release()
		w.all(tasks)
		if !slices.IsSorted(order) || len(order) != waiters {
			w.t.Errorf("they were served in the order %v", order)
		}
	}},
	{"every pool of one serves many without deadlock", func(f *fixture) {
		const n, goroutines, rounds = 4, 6, 12
		w, _ := f.handles(1, 1)
		var tasks []*task
		for g := range goroutines {
			random := rand.New(rand.NewPCG(uint64(g), 5))
			a, b := whole(random, n), whole(random, n)
			s := w.lease(w.r)
			x, y := w.matrix(s, a), w.matrix(s, b)
			w.ok(s.Release())
			tasks = append(tasks, w.start("a goroutine", func() error {
				for i := range rounds {
					z, err := w.m.New(8 * n * n) // memory, then a handle, then a stream
					if err != nil {
						return err
					}
					if (g+i)%3 != 0 {
						l, err := blas.AcquireOn(context.Background(), w.r)
						if err != nil {
							return err
						}
						if err := errors.Join(product(&l, n, z, x, y, 0), l.Release()); err != nil {
							return err
						}
					}
					s, err := w.r.Streams().Acquire(context.Background())
					if err != nil {
						return err
					}
					got := make([]byte, 8*n*n)
					if err := errors.Join(download(s, got, z), s.Release(), z.Free()); err != nil {
						return err
					}
					if (g+i)%3 != 0 && !slices.Equal(got, floats(multiplied(n, a, b, nil, 0))) {
						return errors.New("the product is wrong")
					}
				}
				return nil
			}))
		}
		w.all(tasks)
	}},
	{"a handle that answered an error is replaced before anybody gets it", func(f *fixture) {
		w, e := f.handles(2, 1)
		s := w.lease(w.r)
		x, y, z := w.matrix(s, []float64{2}), w.matrix(s, []float64{3}), w.matrix(s, []float64{0})
		l := w.take()
		before := must(l.Value())
		w.plan.FailNth(fault.BLASGemm, 1, errCause)
		if err := product(l, 1, z, x, y, 0); !errors.Is(err, errCause) {
			w.t.Errorf("the product answers %v; expected the failure", err)
		}
		w.ok(l.Release())
		l = w.take()
		if after := must(l.Value()); after == before || e.Size() != 1 {
			w.t.Error("the handle was given on")
		}
		if c := w.plan.Counts(); c[fault.DeviceNewBLAS] != 2 || c[fault.BLASDestroy] != 1 {
			w.t.Errorf("%d handles were made and %d destroyed; expected 2 and 1", c[fault.DeviceNewBLAS], c[fault.BLASDestroy])
		}
		w.ok(product(l, 1, z, x, y, 0))
		if got := w.values(s, z); got[0] != 6 {
			w.t.Errorf("the new handle computed %v; expected 6", got)
		}
	}},
	{"the workspaces of handles are counted and given back at Close", func(f *fixture) {
		w, e := f.handles(3, 2)
		s := w.lease(w.r)
		m := w.matrix(s, make([]float64, 32*32))
		out := w.matrix(s, make([]float64, 32*32))
		var sum int64
		var all []*blas.Lease
		for range 2 {
			l := w.take()
			w.ok(product(l, 32, out, m, m, 0))
			all = append(all, l)
			w.sync(l.Stream())
			sum += must(l.Value()).WorkspaceBytes()
		}
		if n := e.WorkspaceBytes(); n != sum || n == 0 && !w.raw.Capabilities().UnifiedHostAddresses {
			w.t.Errorf("%d bytes are counted; the handles have %d", n, sum)
		}
		w.ok(errors.Join(all[0].Release(), all[1].Release(), s.Release(), m.Free(), out.Free()))
		w.within("Close", w.rt.Close)
		if n := e.WorkspaceBytes(); n != 0 {
			w.t.Errorf("after Close %d bytes are counted", n)
		}
		w.expectNothingHeld()
	}},
	{"a stale lease submits nothing and releases nobody's", func(f *fixture) {
		w, _ := f.handles(1, 1)
		s := w.lease(w.r)
		m := w.matrix(s, []float64{2})
		out := w.matrix(s, []float64{0})
		w.ok(s.Release())
		old := w.take()
		copied := *old
		w.ok(old.Release())
		present := w.take()
		for _, l := range []*blas.Lease{old, &copied, {}} {
			if err := blas.Gemm(l, &blas.Product{}); !errors.Is(err, weir.ErrStale) {
				w.t.Errorf("a stale lease answers %v; expected ErrStale", err)
			}
			l.Break()
			w.ok(l.Release())
		}
		w.ok(present.Stream().Release()) // which is lent
		w.ok(product(present, 1, out, m, m, 0))
		if got := w.values(present.Stream(), out); got[0] != 4 || w.plan.Counts()[fault.DeviceNewBLAS] != 1 {
			w.t.Errorf("the present lease computed %v; expected 4, with the first handle", got)
		}
	}},
	{"a task gives its lane back while it waits for a handle and for a stream", func(f *fixture) {
		w, e := f.handles(1, 1)
		s := w.lease(w.r)
		h, err := e.Pool.Acquire(context.Background())
		w.ok(err)
		lane := newLaneLog()
		var l blas.Lease
		acquire := w.start("a task", func() (err error) {
			l, err = blas.AcquireOn(scheduler.WithLane(context.Background(), lane), w.r)
			return err
		})
		w.untilWaiting(e, 1)
		receive(w.fixture, "the lane", lane.yielded)
		lane.expect(f, "without a handle", "yield")
		h.Release(stream.Completion{})
		w.untilWaiting(w.r.Streams(), 1)
		w.until("the second yield", func() bool {
			lane.mu.Lock()
			defer lane.mu.Unlock()
			return len(lane.events) == 3
		})
		lane.expect(f, "without a stream", "yield", "resume", "yield")
		w.ok(errors.Join(s.Release(), acquire.join(), l.Release()))
		lane.expect(f, "with both", "yield", "resume", "yield", "resume")
	}},
}
