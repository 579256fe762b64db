package hostblas

import (
	"runtime"
	"sync"
)

// cores is a first-come-first-served budget of processor cores. It allocates
// nothing: whoever waits brings its own place in the queue.
type cores struct {
	total int

	// mu guards the fields below. Nothing waits under it: a waiter's channel
	// has room for the one message that it is sent.
	mu          sync.Mutex
	free        int
	first, last *waiter
}

// waiter is a place in the queue, used by one acquire at a time.
type waiter struct {
	need  int
	next  *waiter
	ready chan struct{} // capacity 1
}

// processCores is the budget that every Library shares.
var processCores = sync.OnceValue(func() *cores { return newCores(runtime.GOMAXPROCS(0)) })

func newCores(n int) *cores { return &cores{total: n, free: n} }

// acquire takes n cores, n at most the total, after everyone who came before.
func (c *cores) acquire(n int, w *waiter) {
	c.mu.Lock()
	if c.first == nil && c.free >= n {
		c.free -= n
		c.mu.Unlock()
		return
	}
	w.need, w.next = n, nil
	if c.first == nil {
		c.first = w
	} else {
		c.last.next = w
	}
	c.last = w
	c.mu.Unlock()
	<-w.ready
}

// grab takes up to n cores that are free now, none while anyone waits.
func (c *cores) grab(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first != nil {
		return 0
	}
	n = min(n, c.free)
	c.free -= n
	return n
}

// release gives n cores back and serves the queue from its head.
func (c *cores) release(n int) {
	c.mu.Lock()
	c.free += n
	for c.first != nil && c.first.need <= c.free {
		w := c.first
		c.first = w.next
		c.free -= w.need
		w.ready <- struct{}{}
	}
	c.mu.Unlock()
}
