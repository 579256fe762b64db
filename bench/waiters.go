package bench

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

var waiters = Scenario{
	Name: "waiters",
	About: "10,000 goroutines that wait for a pool of one stream: the time of a hand-over from one to the next, beside a plain" +
		" FIFO of channels; the order is checked, also when one waiter in seven gives up",
	Need: "first come, first served, exactly; who gives up leaves; nobody is lost",
	Cases: func(env Env) []Case {
		count := 10_000
		if env.Quick {
			count = 1_000
		}
		return []Case{waitersCase(env.Resources, count)}
	},
}

func waitersCase(r *runtime.Resources, count int) Case {
	return Case{Name: fmt.Sprintf("%d waiters, pool of 1 / FIFO of channels", count), Unit: Nanoseconds, Open: func(context.Context) (*Trial, error) {
		p, err := stream.NewPool(r.Device().Driver(), stream.Options{Count: 1})
		if err != nil {
			return nil, err
		}
		one, latency, floor := &streamOfOne{pool: p}, newLatency(), newLatency()
		return &Trial{
			Value: handOvers(one, asGoroutine, latency), Floor: handOvers(&naiveQueue{}, asGoroutine, floor), Fixed: count,
			Check:   func() error { return firstComeFirstServed(one, asGoroutine, count) },
			Figures: func(Result) []Figure { return latencyFigures(latency, floor) },
			Close:   p.Close,
		}, nil
	}}
}

// queue is one scarce thing.
type queue interface {
	acquire(context.Context) error
	release() error
	waiting() int
}

// streamOfOne is a pool of one stream. s belongs to its holder.
type streamOfOne struct {
	pool *stream.Pool
	s    stream.Stream
}

func (q *streamOfOne) acquire(ctx context.Context) error {
	s, err := q.pool.Acquire(ctx)
	if err == nil {
		q.s = s
	}
	return err
}

func (q *streamOfOne) release() error { return q.s.Release() }

func (q *streamOfOne) waiting() int {
	_, _, _, n := q.pool.Counts()
	return n
}

// naiveQueue hands one thing on through a channel for each waiter. It knows no
// cancellation.
type naiveQueue struct {
	mu      sync.Mutex
	taken   bool
	waiters []chan struct{}
}

func (q *naiveQueue) acquire(context.Context) error {
	q.mu.Lock()
	if !q.taken {
		q.taken = true
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{}, 1)
	q.waiters = append(q.waiters, turn)
	q.mu.Unlock()
	<-turn
	return nil
}

func (q *naiveQueue) release() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) == 0 {
		q.taken = false
		return nil
	}
	q.waiters[0] <- struct{}{}
	q.waiters = q.waiters[1:]
	return nil
}

func (q *naiveQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiters)
}

// crowd is n goroutines that wait for q, which its maker holds, in the order of
// their numbers. Each one, served, notes its number, and releases.
type crowd struct {
	q        queue
	done     sync.WaitGroup
	served   []int     // by whoever holds q
	released time.Time // by whoever holds q: when its predecessor let go
	latency  *hdrhistogram.Histogram
	errs     []error // of each goroutine
	ended    atomic.Int64
}

// starter has one of a crowd do something: as a goroutine of its own, or as a task.
type starter func(ctx context.Context, do func(ctx context.Context))

func asGoroutine(ctx context.Context, do func(ctx context.Context)) { go do(ctx) }

// gather makes the crowd. It ends early, with whoever came, if one does not
// wait: then something is wrong, and errs says what.
func gather(q queue, start starter, n int, latency *hdrhistogram.Histogram, ctxOf func(i int) context.Context) (*crowd, error) {
	c := &crowd{q: q, latency: latency, errs: make([]error, n), served: make([]int, 0, n)}
	if err := q.acquire(context.Background()); err != nil {
		return nil, err
	}
	for i := range n {
		c.done.Add(1)
		start(ctxOf(i), func(ctx context.Context) {
			defer c.done.Done()
			c.errs[i] = c.wait(ctx, i)
			c.ended.Add(1)
		})
		for q.waiting() <= i {
			if c.ended.Load() > 0 {
				return c, nil
			}
			goruntime.Gosched()
		}
	}
	return c, nil
}

func (c *crowd) wait(ctx context.Context, i int) error {
	if err := c.q.acquire(ctx); err != nil {
		return err
	}
	now := time.Now()
	_ = c.latency.RecordValue(min(int64(now.Sub(c.released)), longestLatency))
	c.served = append(c.served, i)
	c.released = time.Now()
	return c.q.release()
}

// serve lets go, and answers how long it takes until all have been served.
func (c *crowd) serve() (time.Duration, error) {
	start := time.Now()
	c.released = start
	if err := c.q.release(); err != nil {
		return 0, err
	}
	c.done.Wait()
	return time.Since(start), nil
}

// handOvers has n goroutines wait, and then each served; only the latter is
// timed.
func handOvers(q queue, start starter, latency *hdrhistogram.Histogram) Loop {
	return func(n int) (time.Duration, error) {
		c, err := gather(q, start, n, latency, func(int) context.Context { return context.Background() })
		if err != nil {
			return 0, err
		}
		d, err := c.serve()
		return d, errors.Join(append(c.errs, err)...)
	}
}

// firstComeFirstServed checks the order of n waiters, of whom every seventh
// gives up while it waits.
func firstComeFirstServed(q queue, start starter, n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quits := func(i int) bool { return i%7 == 3 }
	c, err := gather(q, start, n, newLatency(), func(i int) context.Context {
		if quits(i) {
			return ctx
		}
		return context.Background()
	})
	if err != nil {
		return err
	}
	var stay []int
	for i := range n {
		if !quits(i) {
			stay = append(stay, i)
		}
	}
	cancel()
	for patience := time.Now().Add(time.Minute); q.waiting() > len(stay) && time.Now().Before(patience); {
		goruntime.Gosched()
	}
	left := n - q.waiting()
	if _, err := c.serve(); err != nil {
		return err
	}
	if gone := n - len(stay); left != gone {
		return wrong("%d of %d waiters left although %d gave up", left, n, gone)
	}
	for i, err := range c.errs {
		if quits(i) != errors.Is(err, context.Canceled) {
			return wrong("waiter %d of %d, who gives up: %v, got %v", i, n, quits(i), err)
		}
	}
	for k, i := range c.served {
		if k >= len(stay) || stay[k] != i {
			return wrong("waiter %d was served in place %d; expected the order of arrival", i, k)
		}
	}
	if len(c.served) != len(stay) {
		return wrong("%d waiters were served; expected %d", len(c.served), len(stay))
	}
	return nil
}
