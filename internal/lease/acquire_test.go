package lease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/scheduler"
)

// acquire starts an Acquire and lets it come to rest.
func acquire(ctx context.Context, p *pool) <-chan result {
	answer := make(chan result, 1)
	go func() {
		h, err := p.Acquire(ctx)
		answer <- result{h, err}
	}()
	synctest.Wait()
	return answer
}

func TestNobodyGetsASlotWhoseWorkIsUnfinished(t *testing.T) {
	p := newPool(1)
	work := &tail{}
	take(t, p).Release(work)
	if _, ok, err := p.TryAcquire(); ok || err != nil {
		t.Errorf("a slot with unfinished work: got %v, %v; expected no slot and no error", ok, err)
	}
	expectCounts(t, p, 0, 0, 1, 0)
	work.finish()
	take(t, p).Release(ended())
	if asked, armed := work.counts(); asked != 2 || armed != 0 {
		t.Errorf("the tail was asked %d times and armed %d times; expected 2 and, since nobody waited, 0", asked, armed)
	}
}

func TestNotificationsAreArmedOnlyForWaitersAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(2)
		long, short := &tail{}, &tail{}
		take(t, p).Release(long)
		take(t, p).Release(short)
		var answers []<-chan result
		for range 3 {
			answers = append(answers, acquire(context.Background(), p))
		}
		for _, work := range []*tail{long, short} {
			if _, armed := work.counts(); armed != 1 {
				t.Errorf("with three waiters a tail was armed %d times; expected once", armed)
			}
		}
		short.finish()
		first := <-answers[0]
		quiet := &tail{}
		first.handle.Release(quiet) // two still wait
		quiet.finish()
		(<-answers[1]).handle.Release(ended())
		(<-answers[2]).handle.Release(ended())
		last := &tail{}
		take(t, p).Release(last) // nobody waits
		if _, armed := last.counts(); armed != 0 {
			t.Errorf("a release that nobody waits for armed %d notifications", armed)
		}
		long.finish()
	})
}

// TestAWakeUpDuringAProbeIsNotLost ends the work, and has its wake-up come,
// after the tail has answered "not done" but before the pool knows that.
func TestAWakeUpDuringAProbeIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		work := &tail{}
		take(t, p).Release(work)
		first := acquire(context.Background(), p) // arms a notification
		before := time.Now()
		work.during = work.finish // in the probe of the second waiter
		second := acquire(context.Background(), p)
		(<-first).handle.Release(ended())
		(<-second).handle.Release(ended())
		if waited := time.Since(before); waited != 0 {
			t.Errorf("the slot was found by the timer, after %v; expected a notification", waited)
		}
	})
}

// TestATailIsAskedByOneAtATime has others try and wait while it is asked.
func TestATailIsAskedByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		work := &tail{done: true}
		take(t, p).Release(work)
		var answer <-chan result
		work.during = func() {
			if _, ok, err := p.TryAcquire(); ok || err != nil {
				t.Errorf("an attempt during a probe: got %v, %v; expected no slot", ok, err)
			}
			answer = acquire(context.Background(), p)
			if asked, _ := work.counts(); asked != 1 {
				t.Errorf("the tail was asked %d times at once", asked)
			}
		}
		if _, ok, err := p.TryAcquire(); ok || err != nil { // the waiter came first
			t.Errorf("an attempt that a waiter overtook: got %v, %v; expected no slot", ok, err)
		}
		(<-answer).handle.Release(ended())
	})
}

// TestLeasesGoRound: the slot that was given back longest ago is asked first.
func TestLeasesGoRound(t *testing.T) {
	p := newPool(3)
	for i := range 7 {
		h := take(t, p)
		if h.Index() != i%3 {
			t.Errorf("lease %d is of slot %d; expected %d", i, h.Index(), i%3)
		}
		h.Release(ended())
	}
}

// TestAWaiterThatComesDuringAnAttemptIsNotified parks a waiter while somebody
// who will not wait asks the tail.
func TestAWaiterThatComesDuringAnAttemptIsNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		work := &tail{}
		take(t, p).Release(work)
		var answer <-chan result
		work.during = func() { answer = acquire(context.Background(), p) }
		if _, ok, err := p.TryAcquire(); ok || err != nil {
			t.Fatalf("a slot with unfinished work: got %v, %v", ok, err)
		}
		before := time.Now()
		work.finish()
		(<-answer).handle.Release(ended())
		if waited := time.Since(before); waited != 0 {
			t.Errorf("the waiter was served by the timer, after %v; expected a notification", waited)
		}
	})
}

func TestANotificationThatNeverComesDelaysAndDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		for range 3 { // the timer starts again for later waiters
			work := &tail{hold: true}
			take(t, p).Release(work)
			answer := acquire(context.Background(), p)
			before := time.Now()
			work.finish()
			(<-answer).handle.Release(ended())
			if waited := time.Since(before); waited > lease.WatchInterval {
				t.Errorf("the waiter was served after %v; expected at most %v", waited, lease.WatchInterval)
			}
			<-time.After(10 * lease.WatchInterval)
		}
	})
}

// TestANotificationThatIsRefusedIsNoObstacleToLaterOnes follows one that could
// not be armed, where the timer has to serve, by one that can.
func TestANotificationThatIsRefusedIsNoObstacleToLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		work := &tail{notifyErr: errors.New("no notification today")}
		take(t, p).Release(work)
		answer := acquire(context.Background(), p)
		work.finish()
		h := (<-answer).handle
		before := time.Now()
		work = &tail{}
		h.Release(work)
		answer = acquire(context.Background(), p)
		work.finish()
		(<-answer).handle.Release(ended())
		if waited := time.Since(before); waited != 0 {
			t.Errorf("the waiter was served by the timer, after %v; expected a notification", waited)
		}
	})
}

// TestALateWakeUpHarmsNobody has the wake-ups of one user's work come when the
// slot is idle, leased and pending to others.
func TestALateWakeUpHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		stray := &tail{hold: true}
		for _, when := range []string{"idle", "leased", "pending"} {
			take(t, p).Release(stray)
			answer := acquire(context.Background(), p)
			stray.finish()
			h := (<-answer).handle
			work := &tail{}
			switch when {
			case "idle":
				h.Release(ended())
				h = take(t, p)
				stray.wake()
				h.Release(ended())
			case "leased":
				stray.wake()
				if !h.Valid() {
					t.Error("a late wake-up took a lease away")
				}
				h.Release(ended())
			case "pending":
				h.Release(work)
				answer := acquire(context.Background(), p)
				stray.wake()
				synctest.Wait()
				expectCounts(t, p, 0, 0, 1, 1)
				work.finish()
				(<-answer).handle.Release(ended())
			}
			stray = &tail{hold: true}
		}
	})
}

// TestRegistrationSurvivesEveryRaceWithReadiness ends the work at the very time
// that somebody starts to wait. The bubble's clock stands still unless
// everybody is blocked, so that a wake-up which was lost shows as time.
func TestRegistrationSurvivesEveryRaceWithReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		before := time.Now()
		for range 3000 {
			work := &tail{}
			take(t, p).Release(work)
			start := make(chan struct{})
			go func() {
				<-start
				work.finish()
			}()
			close(start)
			h, err := p.Acquire(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			h.Release(ended())
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("wake-ups were lost: the timer served for %v", waited)
		}
	})
}

// TestACancelledWaiterLosesNothing cancels at the very time that the slot is
// delivered, with another one waiting behind.
func TestACancelledWaiterLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		before := time.Now()
		served := 0
		for i := range 3000 {
			h := take(t, p)
			ctx, cancel := context.WithCancelCause(context.Background())
			first := acquire(ctx, p)
			second := acquire(context.Background(), p)
			if i%2 == 0 {
				go cancel(errGaveUp)
				go h.Release(ended())
			} else {
				go h.Release(ended())
				go cancel(errGaveUp)
			}
			r := <-first
			switch {
			case r.err == nil:
				served++
				r.handle.Release(ended())
			case !errors.Is(r.err, errGaveUp):
				t.Fatalf("the cancelled waiter answers %v; expected the cause", r.err)
			}
			r = <-second
			if r.err != nil {
				t.Fatalf("the waiter behind a cancelled one got %v", r.err)
			}
			r.handle.Release(ended())
			expectCounts(t, p, 0, 0, 1, 0)
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("slots were mislaid: the timer found them after %v", waited)
		}
		t.Logf("%d of 3000 deliveries came before their cancellation", served)
	})
}

// laneThat does something when its task wants it back.
type laneThat func()

func (laneThat) Yield(scheduler.Wait) {}
func (l laneThat) Resume()            { l() }

// TestASlotDeliveredToACancelledWaiterGoesToTheNext delivers after the waiter
// has seen its cancellation and before it has left the queue.
func TestASlotDeliveredToACancelledWaiterGoesToTheNext(t *testing.T) {
	for name, next := range map[string]bool{"somebody waits behind": true, "nobody does": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(1)
				h := take(t, p)
				ctx, cancel := context.WithCancelCause(context.Background())
				late := acquire(scheduler.WithLane(ctx, laneThat(func() { h.Release(ended()) })), p)
				var behind <-chan result
				if next {
					behind = acquire(context.Background(), p)
				}
				cancel(errGaveUp)
				if r := <-late; !errors.Is(r.err, errGaveUp) || r.handle.Valid() {
					t.Errorf("the cancelled waiter answers %v with a valid handle %v; expected the cause alone", r.err, r.handle.Valid())
				}
				if next {
					h = (<-behind).handle
				} else {
					expectCounts(t, p, 1, 0, 0, 0)
					h = take(t, p)
				}
				h.Release(ended())
			})
		})
	}
}

// TestNobodyQueuesWhileASlotIsIdle has a slot become idle, because a waiter was
// cancelled late, while somebody who has passed it asks the next one.
func TestNobodyQueuesWhileASlotIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(2)
		passed, asked := take(t, p), take(t, p)
		work := &tail{}
		asked.Release(work)
		work.during = func() {
			ctx, cancel := context.WithCancelCause(context.Background())
			late := acquire(scheduler.WithLane(ctx, laneThat(func() { passed.Release(ended()) })), p)
			cancel(errGaveUp)
			<-late
		}
		ctx, cancel := context.WithTimeout(context.Background(), lease.WatchInterval)
		defer cancel()
		h, err := p.Acquire(ctx)
		if err != nil || h.Index() != passed.Index() {
			t.Errorf("got slot %d, %v; expected the idle one, %d", h.Index(), err, passed.Index())
		}
		h.Release(ended())
		work.finish()
	})
}

func TestACancelledContextDoesNotEvenQueue(t *testing.T) {
	p := newPool(1)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errGaveUp)
	if _, err := p.Acquire(ctx); !errors.Is(err, errGaveUp) {
		t.Errorf("got %v; expected the cause", err)
	}
	expectCounts(t, p, 1, 0, 0, 0)
}

// TestTenThousandWaitersAreServedInOrder parks them on one slot, cancels a third
// of them, and serves the rest.
func TestTenThousandWaitersAreServedInOrder(t *testing.T) {
	n := 10000
	if raceDetector {
		n = 5000 // it does not watch more than 8128 goroutines
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		work := &tail{}
		take(t, p).Release(work)
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex // guards served and gone
		var served []int
		gone := 0
		var all sync.WaitGroup
		var cancels []context.CancelFunc
		for i := range n {
			ctx, cancel := context.WithCancel(context.Background())
			cancels = append(cancels, cancel)
			all.Go(func() {
				h, err := p.Acquire(ctx)
				mu.Lock()
				if err != nil {
					gone++
				} else {
					served = append(served, i)
				}
				mu.Unlock()
				h.Release(ended())
			})
			synctest.Wait()
		}
		expectCounts(t, p, 0, 0, 1, n)
		var expected []int
		for _, i := range random.Perm(n)[:n/3] {
			cancels[i]()
			cancels[i] = nil
		}
		for i, cancel := range cancels {
			if cancel != nil {
				expected = append(expected, i)
				defer cancel()
			}
		}
		synctest.Wait()
		expectCounts(t, p, 0, 0, 1, len(expected))
		work.finish()
		all.Wait()
		if gone != n/3 || !slices.Equal(served, expected) {
			t.Errorf("%d were cancelled and %d served; expected %d and, in their order, %d", gone, len(served), n/3, len(expected))
		}
		// One question for each who came, one when the work was done.
		if asked, armed := work.counts(); asked > n+2 || armed != 1 {
			t.Errorf("the tail was asked %d times and armed %d times for %d waiters; expected about one question each, and once", asked, armed, n)
		}
		take(t, p).Release(ended())
	})
}

func TestCloseWakesEveryWaiterWithErrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(2)
		held := take(t, p)
		take(t, p).Release(&tail{})
		var answers []<-chan result
		for range 5 {
			answers = append(answers, acquire(context.Background(), p))
		}
		if things := p.Close(); !slices.Equal(things, []int{0, 1}) {
			t.Errorf("Close answers %v; expected every thing", things)
		}
		for _, a := range answers {
			if r := <-a; !errors.Is(r.err, weir.ErrClosed) {
				t.Errorf("a waiter got %v; expected ErrClosed", r.err)
			}
		}
		_, ok, err := p.TryAcquire()
		_, err2 := p.Acquire(context.Background())
		if ok || !errors.Is(err, weir.ErrClosed) || !errors.Is(err2, weir.ErrClosed) {
			t.Errorf("after Close: %v, %v and %v; expected ErrClosed", ok, err, err2)
		}
		if !held.Valid() {
			t.Error("Close took a lease away")
		}
		held.Release(ended())
		<-time.After(10 * lease.WatchInterval) // the timer has nothing to do
		p.Close()
	})
}

// laneLog is a lane that notes what happens to it.
type laneLog struct{ events []string }

func (l *laneLog) Yield(scheduler.Wait) { l.events = append(l.events, "yield") }
func (l *laneLog) Resume()              { l.events = append(l.events, "resume") }

func TestATaskGivesItsLaneBackWhileItWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		lane := &laneLog{}
		ctx := scheduler.WithLane(context.Background(), lane)
		h, err := p.Acquire(ctx)
		if err != nil || len(lane.events) > 0 {
			t.Fatalf("an idle slot: %v, and the lane had %v; expected it to be kept", err, lane.events)
		}
		answer := acquire(ctx, p)
		if !slices.Equal(lane.events, []string{"yield"}) {
			t.Errorf("while parked, the lane had %v; expected one yield", lane.events)
		}
		h.Release(ended())
		(<-answer).handle.Release(ended())
		if !slices.Equal(lane.events, []string{"yield", "resume"}) {
			t.Errorf("afterwards, the lane had %v; expected yield, resume", lane.events)
		}
	})
}

func TestAPoolRemembersWhereEachLeaseWasTaken(t *testing.T) {
	p := lease.New[int, *tail](lease.Config[int]{Name: "number", Device: newDevice(), Stacks: true}, numbers(2))
	h := take(t, p)
	held := p.Leased()
	if len(held) != 1 || held[0].Index != h.Index() || !strings.Contains(held[0].Stack, "TestAPoolRemembersWhereEachLeaseWasTaken") {
		t.Errorf("leased are %+v; expected slot %d with this test in its stack", held, h.Index())
	}
	if strings.Contains(held[0].Stack, "internal/lease.(") {
		t.Errorf("the stack has frames of the pool itself:\n%s", held[0].Stack)
	}
	h.Release(ended())
	if held := p.Leased(); len(held) != 0 {
		t.Errorf("after the release %+v is leased", held)
	}
}
