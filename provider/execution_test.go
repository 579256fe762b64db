package provider_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

// TestNoStreamIsHeldWhileAHandleIsWaitedFor: operations that need no handle go
// on.
func TestNoStreamIsHeldWhileAHandleIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, 1)
		defer r.close()
		x := r.take()
		answers := []<-chan result{r.acquire(context.Background()), r.acquire(context.Background())}
		r.expect("0 idle, 1 leased, 0 pending, 2 waiting", "2 idle, 1 leased, 0 pending, 0 waiting")
		for range 2 {
			s, ok, err := r.r.Streams().TryAcquire()
			if !ok || err != nil {
				t.Fatalf("no stream for other work: %v, %v", ok, err)
			}
			defer s.Release()
		}
		r.release(x)
		for _, a := range answers {
			r.release((<-a).x)
		}
	})
}

// TestAWaiterForAStreamHasItsHandle and others wait for theirs behind it.
func TestAWaiterForAStreamHasItsHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, 2)
		defer r.close()
		first, second := r.take(), r.take()
		endFirst, endSecond := r.stall(first.Stream()), r.stall(second.Stream())
		defer endSecond()
		r.release(first)
		s, err := second.Stream().Retain()
		if err != nil {
			t.Fatal(err)
		}
		r.release(second)
		answer := r.acquire(context.Background())
		r.expect("0 idle, 0 leased, 2 pending, 1 waiting", "0 idle, 1 leased, 1 pending, 0 waiting")
		endFirst()
		x := (<-answer).x
		r.expect("0 idle, 1 leased, 1 pending, 0 waiting", "0 idle, 2 leased, 0 pending, 0 waiting")
		r.release(x)
		if err := s.Release(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhateverWasTakenIsGivenBack when the second half can't be had: by waiting,
// by an attempt.
func TestWhateverWasTakenIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 1)
		defer r.close()
		s, err := r.r.Streams().Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := r.e.TryAcquire(); ok || err != nil {
			t.Errorf("without a stream: got %v, %v; expected neither", ok, err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		answer := r.acquire(ctx)
		r.expect("0 idle, 1 leased, 0 pending, 0 waiting", "0 idle, 1 leased, 0 pending, 1 waiting")
		cancel(errCause)
		if a := <-answer; !errors.Is(a.err, errCause) {
			t.Errorf("the cancelled caller got %v; expected the cause", a.err)
		}
		l, ok, err := r.e.Pool.TryAcquire()
		if !ok || err != nil {
			t.Fatalf("the handle was kept: %v, %v", ok, err)
		}
		if _, ok, err := r.e.TryAcquire(); ok || err != nil {
			t.Errorf("without a handle: got %v, %v; expected neither", ok, err)
		}
		l.Release(stream.Completion{})
		if err := s.Release(); err != nil {
			t.Error(err)
		}
	})
}

// TestAHandleReturnsAtItsOperationsTail though somebody retains the stream and
// gives it more work.
func TestAHandleReturnsAtItsOperationsTail(t *testing.T) {
	for name, waits := range map[string]bool{"to an attempt": false, "to a waiter": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, 1)
				defer r.close()
				x := r.take()
				end := r.stall(x.Stream())
				s, err := x.Stream().Retain()
				if err != nil {
					t.Fatal(err)
				}
				r.release(x)
				endMore := r.stall(s)
				r.expect("0 idle, 0 leased, 1 pending, 0 waiting", "1 idle, 1 leased, 0 pending, 0 waiting")
				var answer <-chan result
				if waits {
					answer = r.acquire(context.Background())
				} else if _, ok, _ := r.e.TryAcquire(); ok {
					t.Error("the handle was leased before its operation was done")
				}
				end()
				synctest.Wait()
				before := time.Now()
				if waits {
					x = (<-answer).x
				} else {
					x = r.take()
				}
				if waited := time.Since(before); waited > lease.WatchInterval {
					t.Errorf("the handle returned after %v", waited)
				}
				r.release(x)
				endMore()
				if err := s.Release(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestTheStreamOfAnExecutionIsNotGivenBackWithoutItsHandle, though the caller
// releases it.
func TestTheStreamOfAnExecutionIsNotGivenBackWithoutItsHandle(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	x := r.take()
	if err := x.Stream().Release(); err != nil {
		t.Error(err)
	}
	if r.expect("0 idle, 1 leased, 0 pending, 0 waiting", "0 idle, 1 leased, 0 pending, 0 waiting"); t.Failed() {
		return
	}
	end := r.stall(x.Stream())
	r.release(x)
	r.expect("0 idle, 0 leased, 1 pending, 0 waiting", "0 idle, 0 leased, 1 pending, 0 waiting")
	end()
	next, err := r.e.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.release(x) // once more does nothing to the next lease
	if !next.Stream().Valid() {
		t.Error("a second release took the stream from who leases it now")
	}
	r.release(&next)
}

func TestARecordThatFailsAtReleaseLosesNeitherHandleNorStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 1)
		defer r.close()
		x := r.take()
		end := r.stall(x.Stream())
		r.plan.FailNth(fault.StreamRecord, 1, errCause)
		released := make(chan error)
		go func() { released <- x.Release() }()
		synctest.Wait()
		if _, ok, _ := r.e.TryAcquire(); ok {
			t.Error("they were leased before the work was done")
		}
		end()
		if err := <-released; !errors.Is(err, errCause) {
			t.Errorf("Release answers %v; expected the failure", err)
		}
		r.release(r.take())
	})
}

// TestNothingReturnsBeforeItsWorkThoughNothingCouldBeRecorded: not even waiting
// for the stream works.
func TestNothingReturnsBeforeItsWorkThoughNothingCouldBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 1)
		defer r.close()
		x := r.take()
		end := r.stall(x.Stream())
		r.plan.FailNth(fault.StreamRecord, 1, errCause)
		r.plan.FailNth(fault.StreamSynchronize, 1, errors.New("nor that"))
		if err := x.Release(); !errors.Is(err, errCause) {
			t.Errorf("Release answers %v; expected the failure", err)
		}
		r.expect("0 idle, 0 leased, 1 pending, 0 waiting", "0 idle, 0 leased, 1 pending, 0 waiting")
		if _, ok, _ := r.e.Pool.TryAcquire(); ok {
			t.Error("the handle was leased before its work was done")
		}
		if _, ok, _ := r.r.Streams().TryAcquire(); ok {
			t.Error("the stream was leased before its work was done")
		}
		end()
		synctest.Wait()
		r.release(r.take())
	})
}

// laneLog is a lane that notes what happens to it.
type laneLog struct{ events []string }

func (l *laneLog) Yield(scheduler.Wait) { l.events = append(l.events, "yield") }
func (l *laneLog) Resume()              { l.events = append(l.events, "resume") }

func TestATaskGivesItsLaneBackForEitherHalf(t *testing.T) {
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
		lane := &laneLog{}
		answer := r.acquire(scheduler.WithLane(context.Background(), lane))
		l.Release(stream.Completion{})
		synctest.Wait()
		if !slices.Equal(lane.events, []string{"yield", "resume", "yield"}) {
			t.Errorf("with a handle and no stream, the lane had %v", lane.events)
		}
		if err := s.Release(); err != nil {
			t.Error(err)
		}
		r.release((<-answer).x)
		if !slices.Equal(lane.events, []string{"yield", "resume", "yield", "resume"}) {
			t.Errorf("afterwards, the lane had %v", lane.events)
		}
	})
}

// TestEveryPoolOfOneServesManyWithoutDeadlock mixes operations that need both a
// handle and a stream with those that need a stream only, while some give up.
// The bubble's clock stands still unless everybody is stuck.
func TestEveryPoolOfOneServesManyWithoutDeadlock(t *testing.T) {
	for name, sizes := range map[string][2]int{"one stream, one handle": {1, 1}, "two streams, one handle": {2, 1}, "three of each": {3, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const goroutines, rounds = 12, 60
				r := newRig(t, sizes[0], sizes[1])
				defer r.close()
				before := time.Now()
				var all sync.WaitGroup
				for g := range goroutines {
					all.Go(func() {
						random := rand.New(rand.NewPCG(uint64(g), 5))
						for range rounds {
							ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("everybody is stuck"))
							if random.IntN(8) == 0 {
								go cancel()
							}
							var err error
							if g%3 == 0 {
								err = streamOnly(ctx, r)
							} else {
								err = withHandle(ctx, r, random.IntN(10) == 0)
							}
							if err != nil && !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
							cancel()
						}
					})
				}
				all.Wait()
				synctest.Wait()
				if waited := time.Since(before); waited != 0 {
					t.Errorf("the timers served for %v", waited)
				}
			})
		})
	}
}

func streamOnly(ctx context.Context, r *rig) error {
	s, err := r.r.Streams().Acquire(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.Call(func() {}), s.Release())
}

// withHandle runs an operation whose device work uses the handle, and which
// nobody else may use until it is done.
func withHandle(ctx context.Context, r *rig, breaks bool) error {
	x, err := r.e.Acquire(ctx)
	if err != nil {
		return err
	}
	h, err := x.Value()
	if err != nil {
		return err
	}
	if !h.used.TryLock() {
		return weir.Argf("test", "tool %d is used by two", h.id)
	}
	if breaks {
		x.Break()
	}
	s := x.Stream()
	return errors.Join(s.Call(func() {}), s.Call(h.used.Unlock), x.Release())
}

// TestAnExecutionLeaseAllocatesNothing: a handle, a stream, a submission, and
// the release of both.
func TestAnExecutionLeaseAllocatesNothing(t *testing.T) {
	r := newRig(t, 2, 2)
	defer r.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if n := testing.AllocsPerRun(200, func() {
		x, err := r.e.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Release(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations; expected none", n)
	}
}
