package hostblas

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

func newWaiter() *waiter { return &waiter{ready: make(chan struct{}, 1)} }

func TestCoresAreGivenInTheOrderOfAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCores(4)
		c.acquire(3, newWaiter())
		var order []int
		var mu sync.Mutex
		ask := func(id, n int) {
			go func() {
				c.acquire(n, newWaiter())
				mu.Lock()
				order = append(order, id)
				mu.Unlock()
				c.release(n)
			}()
			synctest.Wait()
		}
		ask(1, 4) // does not fit
		ask(2, 1) // would fit, but came later
		ask(3, 2)
		if n := c.grab(1); n != 0 {
			t.Errorf("grab took %d cores past a queue; expected none", n)
		}
		if len(order) != 0 {
			t.Fatalf("%v ran while 3 of 4 cores were held and 4 were asked for first", order)
		}
		c.release(3)
		synctest.Wait()
		// 2 and 3 are served together, in any order, once 1 is done.
		if len(order) != 3 || order[0] != 1 {
			t.Fatalf("the order was %v; expected 1 first, then 2 and 3", order)
		}
		if n := c.grab(9); n != 4 {
			t.Errorf("%d cores are free at the end; expected 4", n)
		}
	})
}

// Several streams run products of every kind at once; a probe counts the
// threads that compute, and asks OpenBLAS how many it is set to.
func TestProductsOfManyStreamsNeverUseMoreThanTheBudget(t *testing.T) {
	const budget = 3
	withLibraries(t, budget, func(t *testing.T, l *Library) {
		l.grain = 50
		if l.ext != nil {
			own := *l.ext
			if own.threads > 1 {
				own.threads = budget
			}
			l.ext = &own
		}
		var running, most, alone atomic.Int64
		l.probe = func(n int) {
			now := running.Add(int64(n))
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			if n > 1 {
				alone.Add(1)
			}
			if n > 0 && l.ext != nil && l.ext.threads > 1 {
				if set := int(int32(invoke(l.ext.getNumThreads, nil))); set != n {
					t.Errorf("OpenBLAS is set to %d threads while a product of %d runs", set, n)
				}
			}
		}
		var streams sync.WaitGroup
		for stream := range uint64(6) {
			random := rand.New(rand.NewPCG(stream, 1))
			var problems []*problem
			for _, dt := range []dtype.DType{dtype.Float32, dtype.Float64, dtype.Complex128, dtype.Int32, dtype.BFloat16} {
				for _, e := range []struct{ n, batch int64 }{{4, 1}, {60, 1}, {9, 30}} {
					problems = append(problems, newProblem(t, square(e.n, dt, e.batch), 0, 0, false, false, random))
				}
			}
			streams.Go(func() {
				var s Scratch
				defer s.Free()
				for range 5 {
					for _, p := range problems {
						p.run(l, &s)
					}
				}
			})
		}
		streams.Wait()
		if most.Load() > budget || running.Load() != 0 {
			t.Errorf("%d threads at most and %d at the end; expected at most %d and 0", most.Load(), running.Load(), budget)
		}
		if l.ext != nil && l.ext.threads > 1 && alone.Load() == 0 {
			t.Error("no product had OpenBLAS's own threads")
		}
	})
}

// TestProductsThatFitTheBudgetRunTogether has each of two begin only once the
// other has. Products of integers are nobody's but the package's.
func TestProductsThatFitTheBudgetRunTogether(t *testing.T) {
	withLibraries(t, 2, func(t *testing.T, l *Library) {
		var begun, all sync.WaitGroup
		begun.Add(2)
		l.probe = func(n int) {
			if n > 0 {
				begun.Done()
				begun.Wait()
			}
		}
		for stream := range uint64(2) {
			p := newProblem(t, square(4, dtype.Int32, 1), 0, 0, false, false, rand.New(rand.NewPCG(stream, 1)))
			all.Go(func() {
				var s Scratch
				defer s.Free()
				p.run(l, &s)
			})
		}
		all.Wait()
	})
}

func TestResultsDoNotDependOnTheLoad(t *testing.T) {
	withLibraries(t, 3, func(t *testing.T, l *Library) {
		l.grain = 50
		if l.ext != nil {
			if l.ext.exclusive {
				t.Skip("this OpenBLAS is built for one thread: its products always have all cores")
			}
			// Its own threads would wait for all cores.
			divided := *l.ext
			divided.threads = 1
			l.ext = &divided
		}
		var s Scratch
		defer s.Free()
		for _, dt := range dtype.All() {
			g := driver.Gemm{DType: dt, M: 70, N: 50, K: 90, Batch: 4, Alpha: 1, Beta: 1}
			p := newProblem(t, g, 0, 0, false, false, rand.New(rand.NewPCG(7, 7)))
			p.run(l, &s)
			idle := slices.Clone(p.c.bytes())
			copy(p.c.bytes(), p.original.bytes())
			busy := newWaiter()
			l.cores.acquire(2, busy)
			p.run(l, &s)
			l.cores.release(2)
			if s.plan.workers < 2 {
				t.Errorf("%v: the product is not divided", dt)
			}
			if !bytes.Equal(idle, p.c.bytes()) {
				t.Errorf("%v: the result with one core free differs from that with three", dt)
			}
		}
	})
}

func TestThePlanFollowsItsRule(t *testing.T) {
	external := &external{threads: 8}
	library := &Library{ext: external, cores: newCores(8), grain: grainNanos}
	gonum := &Library{cores: newCores(8), grain: grainNanos}
	one := &Library{ext: external, cores: newCores(1), grain: grainNanos}
	serial := &Library{ext: &exclusiveLibrary, cores: newCores(8), grain: grainNanos}
	for _, c := range []struct {
		name             string
		l                *Library
		g                driver.Gemm
		threads, workers int
		tiles            int64
	}{
		{"a small product takes one core", library, square(64, dtype.Float64, 1), 1, 1, 1},
		{"a small product without a library too", gonum, square(64, dtype.Float64, 1), 1, 1, 1},
		{"a middling product is divided", library, square(200, dtype.Float64, 1), 1, 5, 5},
		{"a large one has the library's threads", library, square(1024, dtype.Float64, 1), 8, 1, 1},
		{"a large one without them is divided", gonum, square(1024, dtype.Float64, 1), 1, 8, 8},
		{"16-bit types are always divided", library, square(1024, dtype.Float16, 1), 1, 8, 8},
		{"members go apart where they fill the cores", library, square(1024, dtype.Float64, 16), 1, 8, 16},
		{"and one after another where they do not", library, square(1024, dtype.Float64, 3), 8, 1, 3},
		{"many small members go apart", library, square(16, dtype.Float32, 100000), 1, 8, 100000},
		{"few small members take one core", library, square(16, dtype.Float32, 10), 1, 1, 10},
		{"one core is never divided", one, square(1024, dtype.Float64, 4), 1, 1, 4},
		{"a library of one thread is never called twice", serial, square(1024, dtype.Float64, 4), 1, 1, 4},
		{"but the package's own loops are divided", serial, square(1024, dtype.Int64, 1), 1, 8, 8},
	} {
		p := c.l.plan(&c.g)
		if p.threads != c.threads || p.workers != c.workers || p.tiles != c.tiles {
			t.Errorf("%s: threads %d, workers %d, tiles %d; expected %d, %d, %d", c.name, p.threads, p.workers, p.tiles, c.threads, c.workers, c.tiles)
		}
	}
}

var exclusiveLibrary = external{threads: 1, exclusive: true}
