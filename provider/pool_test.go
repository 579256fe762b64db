package provider_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/provider"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

func TestAPoolOwnsItsHandlesFromTheStart(t *testing.T) {
	r := newRig(t, 4, 3)
	defer r.close()
	if r.made != 3 || r.e.Size() != 3 {
		t.Errorf("%d tools were made, the pool says %d; expected 3", r.made, r.e.Size())
	}
	r.expect("3 idle, 0 leased, 0 pending, 0 waiting", "4 idle, 0 leased, 0 pending, 0 waiting")
	for range 20 {
		r.release(r.take())
	}
	if r.made != 3 {
		t.Errorf("use made %d more", r.made-3)
	}
}

func TestACountOfHandlesOutsideTheStreamsIsRefused(t *testing.T) {
	r := newRig(t, 2, 1)
	defer r.close()
	for _, count := range []int{-1, 0, 3} {
		if _, err := provider.NewPool(r.r, "tool", count, r.make); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%d handles for 2 streams answers %v; expected ErrArgument", count, err)
		}
		if _, err := provider.NewExecutor(r.r, "tool", count, r.make); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%d handles for 2 streams answers %v; expected ErrArgument", count, err)
		}
	}
	if r.made != 1 {
		t.Errorf("%d were made for refused pools", r.made-1)
	}
	if err := r.e.Agree(1); err != nil {
		t.Errorf("the count that was made answers %v", err)
	}
	if err := r.e.Agree(2); !errors.Is(err, weir.ErrArgument) {
		t.Errorf("another count answers %v; expected ErrArgument", err)
	}
}

func TestAPoolThatCannotBeMadeLeavesNothingBehind(t *testing.T) {
	r := newRig(t, 4, 1)
	defer r.close()
	other := &shop{failAt: 3, destroyErr: errors.New("nor destroyed")}
	if _, err := provider.NewPool(r.r, "tool", 4, other.make); !errors.Is(err, errCause) || !errors.Is(err, other.destroyErr) {
		t.Errorf("got %v; expected the failures to make and to destroy", err)
	}
	if !slices.Equal(other.destroyed, []int{0, 1}) {
		t.Errorf("destroyed are %v; expected what was made", other.destroyed)
	}
}

// TestAHandleGoesToTheOldestWaiterWhenItsWorkIsDone uses the pool without
// streams of its own.
func TestAHandleGoesToTheOldestWaiterWhenItsWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 1)
		defer r.close()
		s, err := r.r.Streams().Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		l, err := r.e.Pool.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 3 {
			go func() {
				l, err := r.e.Pool.Acquire(context.Background())
				if err != nil {
					t.Error(err)
				}
				order = append(order, i)
				l.Release(stream.Completion{})
			}()
			synctest.Wait()
		}
		end := r.stall(s)
		c, err := s.Record()
		if err != nil {
			t.Fatal(err)
		}
		l.Release(c)
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("the handle was given on before its work was done")
		}
		end()
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("the waiters were served in the order %v", order)
		}
		if err := s.Release(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStaleLeaseReachesNoHandle(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	old := *r.take()
	copied := old
	r.release(&old)
	present := r.take()
	for name, x := range map[string]*execution{"the zero execution": {}, "a released one": &old, "a copy of one": &copied} {
		if _, err := x.Value(); !errors.Is(err, weir.ErrStale) {
			t.Errorf("%s answers %v; expected ErrStale", name, err)
		}
		x.Break()
		if err := x.Release(); err != nil {
			t.Errorf("another release of %s answers %v", name, err)
		}
		x.Lease.Release(stream.Completion{})
	}
	if (&execution{}).Index() != -1 || present.Index() != 0 {
		t.Errorf("indices are %d and %d; expected -1 and 0", (&execution{}).Index(), present.Index())
	}
	if _, err := present.Value(); err != nil || !present.Stream().Valid() {
		t.Errorf("a stale lease released somebody else's: %v", err)
	}
	r.release(present)
	r.release(r.take())
	if r.made != 1 {
		t.Error("a stale lease broke somebody else's handle")
	}
}

// TestAHandleThatAnsweredAnErrorIsReplacedBeforeAnybodyGetsIt, once its work is
// done, whoever comes: a waiter or an attempt.
func TestAHandleThatAnsweredAnErrorIsReplacedBeforeAnybodyGetsIt(t *testing.T) {
	for name, waits := range map[string]bool{"by an attempt": false, "by a waiter": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, 1)
				defer r.close()
				x := r.take()
				end := r.stall(x.Stream())
				copied := *x
				copied.Break() // a copy is the same lease
				var answer <-chan result
				if waits {
					answer = r.acquire(context.Background())
				}
				r.release(x)
				synctest.Wait()
				if r.made != 1 || len(r.destroyed) > 0 {
					t.Errorf("with its work unfinished, %d were made and %v destroyed", r.made, r.destroyed)
				}
				end()
				synctest.Wait()
				if waits {
					x = (<-answer).x
				} else {
					x = r.take()
				}
				if id(x) != 1 || !slices.Equal(r.destroyed, []int{0}) {
					t.Errorf("leased tool %d with %v destroyed; expected tool 1 in place of 0", id(x), r.destroyed)
				}
				r.release(x)
				x = r.take()
				if id(x) != 1 {
					t.Errorf("a sound tool was replaced by %d", id(x))
				}
				r.release(x)
			})
		})
	}
}

func TestAHandleThatCannotBeReplacedIsNotGivenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 1)
		defer r.close()
		x := r.take()
		x.Break()
		r.failAt = 1
		r.release(x)
		if _, ok, err := r.e.TryAcquire(); ok || err != nil {
			t.Errorf("got %v, %v; expected no tool and no error", ok, err)
		}
		if a := <-r.acquire(context.Background()); !errors.Is(a.err, errCause) {
			t.Errorf("a waiter got %v; expected why no tool could be made", a.err)
		}
		r.expect("0 idle, 0 leased, 1 pending, 0 waiting", "0 idle, 0 leased, 1 pending, 0 waiting")
		r.failAt = 0
		x = r.take()
		if id(x) != 1 {
			t.Errorf("leased tool %d; expected a new one", id(x))
		}
		r.release(x)
	})
}

func TestCloseWakesWaitersAndDestroysEveryHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, 2)
		x, y := r.take(), r.take()
		x.Break()
		var answers []<-chan result
		for range 3 {
			answers = append(answers, r.acquire(context.Background()))
		}
		if err := r.e.Drain(); err != nil {
			t.Error(err)
		}
		for _, a := range answers {
			if a := <-a; !errors.Is(a.err, weir.ErrClosed) {
				t.Errorf("a waiter got %v; expected ErrClosed", a.err)
			}
		}
		if _, ok, err := r.e.TryAcquire(); ok || !errors.Is(err, weir.ErrClosed) {
			t.Errorf("after Drain: %v, %v; expected ErrClosed", ok, err)
		}
		r.release(x)
		r.release(y)
		r.close()
		if err := r.e.Close(); err != nil {
			t.Errorf("another Close answers %v", err)
		}
		r.expectAllDestroyed()
	})
}

// TestFailedCleanupComesOutOfClose: of handles that broke, and of those that
// live to the end.
func TestFailedCleanupComesOutOfClose(t *testing.T) {
	for name, breaks := range map[string]bool{"of a broken one": true, "of the last ones": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, 1)
			x := r.take()
			r.destroyErr = errCause
			if breaks {
				x.Break()
				r.release(x)
				r.release(r.take())
				r.destroyErr = nil
			} else {
				r.release(x)
			}
			if err := r.rt.Close(); !errors.Is(err, errCause) {
				t.Errorf("Close answers %v; expected the failed cleanup", err)
			}
			r.expectAllDestroyed()
		})
	}
}

func TestLeasedHandlesAreReportedAsLive(t *testing.T) {
	r := newRig(t, 2, 2)
	defer r.close()
	if live := r.e.Live(); len(live) > 0 {
		t.Errorf("live are %v; expected none", live)
	}
	x := r.take()
	live := r.e.Live()
	if len(live) != 1 || live[0] != (runtime.Leak{Kind: "tool", Name: "0", Device: "host:0"}) {
		t.Errorf("live are %+v; expected the one tool", live)
	}
	r.release(x)
}

func TestTheDeathOfTheDeviceWakesWhoWaitsForAHandle(t *testing.T) {
	for name, dropped := range map[string]bool{"notified": false, "never notified": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, 1)
				x := r.take()
				end := r.stall(x.Stream())
				if dropped {
					r.plan.DropNotify(1)
				}
				answers := []<-chan result{r.acquire(context.Background()), r.acquire(context.Background())}
				r.release(x)
				r.kill()
				for _, a := range answers {
					if a := <-a; !errors.Is(a.err, weir.ErrDeviceLost) || !errors.Is(a.err, errCause) {
						t.Errorf("a waiter got %v; expected ErrDeviceLost and the first cause", a.err)
					}
				}
				end()
				if err := r.rt.Close(); !errors.Is(err, weir.ErrDeviceLost) {
					t.Errorf("Close answers %v", err)
				}
				r.expectAllDestroyed()
			})
		})
	}
}
