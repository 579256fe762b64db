package lease_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestManyGoroutinesShareAPool has them acquire, try, retain, cancel and release
// with work that ends on yet other goroutines. No slot may ever be held by two,
// and nothing may need the timer.
func TestManyGoroutinesShareAPool(t *testing.T) {
	const goroutines, rounds, size = 8, 400, 3
	synctest.Test(t, func(t *testing.T) {
		p := newPool(size)
		var holders [size]atomic.Int32
		before := time.Now()
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(g), 7))
				for range rounds {
					ctx, cancel := context.WithCancel(context.Background())
					var h handle
					var ok bool
					var err error
					if random.IntN(3) == 0 {
						h, ok, err = p.TryAcquire()
						if err != nil {
							t.Error(err)
						}
					} else {
						if random.IntN(3) == 0 {
							go cancel()
						}
						h, err = p.Acquire(ctx)
						ok = err == nil
					}
					if !ok {
						cancel()
						continue
					}
					slot, _ := h.Value()
					if n := holders[slot].Add(1); n != 1 {
						t.Errorf("slot %d has %d holders", slot, n)
					}
					if more, err := h.Retain(); err != nil {
						t.Error(err)
					} else {
						more.Release(nil) // not the last, so that its tail does not count
					}
					holders[slot].Add(-1)
					work := &tail{done: random.IntN(2) == 0}
					h.Release(work)
					go work.finish()
					cancel()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if waited := time.Since(before); waited != 0 {
			t.Errorf("wake-ups were lost: the timer served for %v", waited)
		}
		for range size {
			take(t, p)
		}
	})
}
