package provider_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir/stream"
)

// after leases for work that follows c.
func (r *rig) after(c stream.Completion) <-chan result {
	answer := make(chan result, 1)
	go func() {
		x, err := r.e.AcquireAfter(context.Background(), stream.After{c})
		answer <- result{&x, err}
	}()
	synctest.Wait()
	return answer
}

// TestWorkThatFollowsHasTheStreamAndTheHandleOfItsCause: a library's handle that
// stays on its stream has nothing to wait for or to bind.
func TestWorkThatFollowsHasTheStreamAndTheHandleOfItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, 3)
		defer r.close()
		r.release(r.take()) // so that the first of each is not what follows
		x := r.take()
		index, name := x.Index(), x.Stream().String()
		end := r.stall(x.Stream())
		defer end()
		for range 5 {
			c, err := x.Stream().Tail()
			if err != nil {
				t.Fatal(err)
			}
			r.release(x)
			x = (<-r.after(c)).x
			if x.Index() != index || x.Stream().String() != name {
				t.Fatalf("the work has handle %d on %s; expected %d on %s", x.Index(), x.Stream(), index, name)
			}
		}
		r.release(x)
	})
}

// TestNoStreamIsHeldByFollowingWhileAHandleIsWaitedFor.
func TestNoStreamIsHeldByFollowingWhileAHandleIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, 1)
		defer r.close()
		s, ok, err := r.r.Streams().TryAcquire()
		if !ok || err != nil {
			t.Fatalf("no stream: %v, %v", ok, err)
		}
		end := r.stall(s)
		defer end()
		c, err := s.Tail()
		if err != nil {
			t.Fatal(err)
		}
		x := r.take()
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		answer := r.after(c)
		r.expect("0 idle, 1 leased, 0 pending, 1 waiting", "0 idle, 1 leased, 1 pending, 0 waiting")
		r.release(x)
		r.release((<-answer).x)
	})
}
