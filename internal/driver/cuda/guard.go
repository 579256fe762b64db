//go:build cuda

package cuda

import "sync/atomic"

// guard lets one goroutine close a thing that others use, without a lock across
// their calls: whoever leaves a closed one last destroys it. Its state is the
// number of users, plus closed.
type guard struct{ state atomic.Int64 }

const closed = 1 << 32

// enter counts a user in; false if the thing is closed.
func (g *guard) enter() bool {
	for {
		n := g.state.Load()
		if n >= closed {
			return false
		}
		if g.state.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave counts a user out; last says that the caller must destroy the thing.
func (g *guard) leave() (last bool) { return g.state.Add(-1) == closed }

// close keeps further users out; last says that the caller must destroy the
// thing. Only the first close does anything.
func (g *guard) close() (last bool) {
	for {
		n := g.state.Load()
		if n >= closed {
			return false
		}
		if g.state.CompareAndSwap(n, n+closed) {
			return n == 0
		}
	}
}

func (g *guard) closed() bool { return g.state.Load() >= closed }
