package stream_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/stream"
)

// follow leases a stream of the first device for work that follows c.
func (r *rig) follow(c stream.Completion) stream.Stream {
	r.t.Helper()
	s, err := r.pools[0].AcquireAfter(context.Background(), stream.After{{}, c})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// TestWorkThatFollowsGoesOnWhereItsCauseRan: on that stream though others are idle,
// and without asking or waiting for an event.
func TestWorkThatFollowsGoesOnWhereItsCauseRan(t *testing.T) {
	inBubble(t, 1, 4, func(t *testing.T, r *rig) {
		s := r.stream(0)
		name := s.String()
		end := r.stall(s)
		defer end()
		for range 10 {
			c := r.record(s)
			r.release(s)
			s = r.follow(c)
			if s.String() != name {
				t.Fatalf("the work is on %s; expected %s, where its cause runs", s, name)
			}
			r.wait(s, c)
			r.call(s, func() {})
		}
		r.release(s)
		if waits, asked := r.count(fault.StreamWait), r.count(fault.EventQuery); waits > 0 || asked > 0 {
			t.Errorf("%d waits and %d questions; expected none", waits, asked)
		}
		expectCounts(t, r.pools[0], 3, 0, 1, 0)
	})
}

// TestWorkIsNotHeldUpByFollowing: a stream that has later work, that somebody holds,
// or whose work is done, is not followed.
func TestWorkIsNotHeldUpByFollowing(t *testing.T) {
	t.Run("later work", func(t *testing.T) {
		inBubble(t, 1, 2, func(t *testing.T, r *rig) {
			s := r.stream(0)
			end := r.stall(s)
			defer end()
			c := r.record(s)
			r.call(s, func() {})
			r.release(s)
			if other := r.follow(c); other.String() == s.String() {
				t.Errorf("the work is behind other work of %s", s)
			} else {
				r.release(other)
			}
		})
	})
	t.Run("a holder", func(t *testing.T) {
		inBubble(t, 1, 2, func(t *testing.T, r *rig) {
			s := r.stream(0)
			end := r.stall(s)
			defer end()
			other := r.follow(r.record(s))
			if other.String() == s.String() {
				t.Errorf("%s was leased twice", s)
			}
			r.release(other)
			r.release(s)
		})
	})
	t.Run("two that follow", func(t *testing.T) {
		inBubble(t, 1, 2, func(t *testing.T, r *rig) {
			s := r.stream(0)
			end := r.stall(s)
			defer end()
			c := r.record(s)
			r.release(s)
			first := r.follow(c)
			r.call(first, func() {})
			r.release(first)
			second := r.follow(c)
			if second.String() == first.String() {
				t.Errorf("both are on %s; expected the second beside the first", first)
			}
			r.release(second)
		})
	})
}

// TestNobodyOvertakesTheLineByFollowing: who waits for a stream has the next one.
func TestNobodyOvertakesTheLineByFollowing(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		c := r.record(s)
		first := acquire(context.Background(), r.pools[0])
		r.release(s)
		second := make(chan stream.Stream, 1)
		go func() { second <- r.follow(c) }()
		synctest.Wait()
		end()
		x := <-first
		select {
		case <-second:
			t.Error("who follows overtook who waited")
		default:
		}
		r.release(x.s)
		r.release(<-second)
	})
}

// TestNothingIsFollowedThatWaitedForAnotherDevice: what follows would miss that
// device's death.
func TestNothingIsFollowedThatWaitedForAnotherDevice(t *testing.T) {
	inBubble(t, 2, 2, func(t *testing.T, r *rig) {
		far := r.stream(1)
		end := r.stall(far)
		defer end()
		s := r.stream(0)
		r.wait(s, r.record(far))
		c := r.record(s)
		r.release(s)
		other := r.follow(c)
		if other.String() == s.String() {
			t.Errorf("%s was followed, which waits for %s", s, far)
		}
		r.release(other)
		r.release(far)
	})
}

// TestAChainThatFollowsIsThrottledToo: there is only so much work behind what is not
// done, on all streams together.
func TestAChainThatFollowsIsThrottledToo(t *testing.T) {
	inBubble(t, 1, 3, func(t *testing.T, r *rig) {
		const bound = 3 * 64
		s := r.stream(0)
		end := r.stall(s)
		c := r.record(s)
		r.release(s)
		done := make(chan struct{})
		submitted := 0
		go func() {
			defer close(done)
			for range 2 * bound {
				s := r.follow(c)
				submitted++
				r.wait(s, c)
				r.call(s, func() {})
				c = r.record(s)
				r.release(s)
			}
		}()
		synctest.Wait()
		if submitted < bound/2 || submitted > bound {
			t.Errorf("%d were submitted behind unfinished work; expected to wait before %d", submitted, bound)
		}
		end()
		<-done
	})
}

// TestFollowingAnswersAsAcquireDoes of a context that ended and of a closed pool.
func TestFollowingAnswersAsAcquireDoes(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		c := r.record(s)
		r.release(s)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errCause)
		if _, err := r.pools[0].AcquireAfter(ctx, stream.After{c}); !errors.Is(err, errCause) || !errors.Is(err, weir.ErrCancelled) {
			t.Errorf("with a cancelled context: %v; expected the cause", err)
		}
		expectCounts(t, r.pools[0], 1, 0, 1, 0)
		end()
		if err := r.pools[0].Close(); err != nil {
			t.Error(err)
		}
		if _, err := r.pools[0].AcquireAfter(context.Background(), stream.After{c}); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("of a closed pool: %v; expected ErrClosed", err)
		}
	})
}
