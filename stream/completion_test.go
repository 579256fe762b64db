package stream_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

func TestTheZeroCompletionIsDone(t *testing.T) {
	var c stream.Completion
	expectDone(t, "the zero completion", c, true)
	woken := make(wakes, 1)
	if err := errors.Join(c.Wait(context.Background()), c.Notify(woken), <-woken); err != nil || !c.IsZero() || !c.Known() {
		t.Errorf("it answers %v, zero %v, known %v", err, c.IsZero(), c.Known())
	}
	r := newRig(t, 1, 1)
	defer r.close()
	s := r.stream(0)
	r.wait(s, c)
	if c := r.record(s); c.IsZero() {
		t.Error("a record is the zero completion")
	}
	r.release(s)
}

// TestARecordCapturesWhatWasSubmittedBefore, neither less nor more.
func TestARecordCapturesWhatWasSubmittedBefore(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		empty := r.record(s)
		endFirst := r.stall(s)
		first := r.record(s)
		endSecond := r.stall(s)
		second := r.record(s)
		expectDone(t, "before all work", empty, true)
		expectDone(t, "the first piece", first, false)
		endFirst()
		synctest.Wait()
		if first.Known() {
			t.Error("the first piece is known to be done though nobody asked")
		}
		expectDone(t, "the first piece, ended", first, true)
		if !first.Known() || second.Known() {
			t.Errorf("known are %v and %v; expected the first", first.Known(), second.Known())
		}
		expectDone(t, "the second piece", second, false)
		endSecond()
		r.settle(s)
		expectDone(t, "the second piece, ended", second, true)
		r.release(s)
	})
}

func TestTheLaterOfTwoCompletionsOfAStreamImpliesTheOther(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		a, b := r.stream(0), r.stream(0)
		end := r.stall(a)
		first := r.record(a)
		second := r.record(a)
		other := r.record(b)
		for _, pair := range [][2]stream.Completion{{first, second}, {second, first}, {second, second}} {
			if later, ok := pair[0].Merge(pair[1]); !ok || later != second {
				t.Errorf("merged to %v, %v; expected the later", later, ok)
			}
		}
		if _, ok := first.Merge(other); ok {
			t.Error("completions of two streams were merged")
		}
		end()
		synctest.Wait()
		expectDone(t, "the later", second, true)
		before := r.count(fault.EventQuery)
		expectDone(t, "the earlier", first, true)
		if n := r.count(fault.EventQuery) - before; n != 0 || !first.Known() {
			t.Errorf("the earlier was asked %d times; expected it to be implied", n)
		}
		r.release(a)
		r.release(b)
	})
}

// TestAStreamWaitsOnAnothersCompletion checks the order of work, on one device
// and across two.
func TestAStreamWaitsOnAnothersCompletion(t *testing.T) {
	for name, device := range map[string]int{"of its device": 0, "of another device": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, 2, func(t *testing.T, r *rig) {
				a, b := r.stream(0), r.stream(device)
				var order []string
				end := r.stall(a)
				r.call(a, func() { order = append(order, "a") })
				c := r.record(a)
				afterwards := r.stall(a) // b need not wait for this
				r.wait(b, c)
				r.call(b, func() { order = append(order, "b") })
				d := r.record(b)
				synctest.Wait()
				expectDone(t, "the waiting stream", d, false)
				if len(order) > 0 {
					t.Errorf("%v ran before its turn", order)
				}
				end()
				synctest.Wait()
				expectDone(t, "the waiting stream, released", d, true)
				if !slices.Equal(order, []string{"a", "b"}) {
					t.Errorf("the order was %v; expected a, b", order)
				}
				afterwards()
				r.release(a)
				r.release(b)
			})
		})
	}
}

func TestNeedlessWaitsMakeNoDriverCall(t *testing.T) {
	inBubble(t, 2, 2, func(t *testing.T, r *rig) {
		a, b, far := r.stream(0), r.stream(0), r.stream(1)
		end := r.stall(a)
		own := r.record(a)
		finished := r.record(b)
		expectDone(t, "what an idle stream recorded", finished, true) // and known from here on
		r.wait(a, own)                                                // its own earlier work
		r.wait(a, finished)                                           // work that is done
		r.wait(far, finished)
		if n := r.count(fault.StreamWait); n != 0 {
			t.Errorf("%d needless waits reached the driver", n)
		}
		before := r.plan.Counts()[fault.Any]
		r.wait(a, own)
		r.wait(a, finished) // known by now
		if n := r.plan.Counts()[fault.Any] - before; n != 0 {
			t.Errorf("waits that are known to be needless made %d driver calls of any kind", n)
		}
		r.wait(b, own)
		r.wait(far, own)
		if n := r.count(fault.StreamWait); n != 2 {
			t.Errorf("%d waits reached the driver; expected the two that are needed", n)
		}
		end()
		r.release(a)
		r.release(b)
		r.release(far)
	})
}

// TestALeaseThatOnlyWaitedIsPendingUntilItHas, though it was given no work.
func TestALeaseThatOnlyWaitedIsPendingUntilItHas(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		a, b := r.stream(0), r.stream(0)
		end := r.stall(a)
		r.wait(b, r.record(a))
		r.release(b)
		if _, ok, err := r.pools[0].TryAcquire(); ok || err != nil {
			t.Errorf("a stream that waits was leased: %v, %v", ok, err)
		}
		end()
		synctest.Wait()
		r.release(r.stream(0))
		r.release(a)
	})
}

// TestWaitsSurviveTheStreamThatWasWaitedFor: the waiting stream's wait stays
// although the other one has been released and leased again.
func TestWaitsSurviveTheStreamThatWasWaitedFor(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		a, b := r.stream(0), r.stream(0)
		end := r.stall(a)
		ran := false
		r.wait(b, r.record(a))
		r.call(b, func() { ran = true })
		r.release(a)
		r.release(b)
		expectCounts(t, r.pools[0], 0, 0, 2, 0)
		if _, ok, _ := r.pools[0].TryAcquire(); ok || ran {
			t.Errorf("leased %v and ran %v before the work was done", ok, ran)
		}
		end()
		synctest.Wait()
		if !ran {
			t.Error("the work behind the wait did not run")
		}
		r.release(r.stream(0))
	})
}

// hostWaits are the two ways that Completion.Wait has.
var hostWaits = map[string]func(context.Context) (context.Context, context.CancelFunc){
	"in the driver": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	"parked":        context.WithCancel,
}

func TestTheHostWaitsForACompletionWithoutItsLane(t *testing.T) {
	for name, with := range hostWaits {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, 1, func(t *testing.T, r *rig) {
				lane := &laneLog{}
				ctx, cancel := with(scheduler.WithLane(context.Background(), lane))
				defer cancel()
				s := r.stream(0)
				end := r.stall(s)
				c := r.record(s)
				later := r.stall(s) // not waited for by the driver's way
				answer := make(chan error)
				go func() { answer <- c.Wait(ctx) }()
				<-time.After(5 * lease.WatchInterval) // looking by timer needs no lane
				lane.expect(t, "while waiting", "yield")
				end()
				if name == "parked" { // its notification is of the whole stream, unless the timer is sooner
					before := time.Now()
					defer func() {
						if waited := time.Since(before); waited > lease.WatchInterval {
							t.Errorf("waited for %v", waited)
						}
					}()
				}
				if err := <-answer; err != nil {
					t.Errorf("Wait answers %v", err)
				}
				lane.expect(t, "afterwards", "yield", "resume")
				if err := c.Wait(ctx); err != nil {
					t.Error(err)
				}
				lane.expect(t, "after a wait for finished work", "yield", "resume")
				later()
				r.release(s)
			})
		})
	}
}

func TestAHostWaitIsNotifiedAtOnce(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		before := time.Now()
		for range 100 {
			end := r.stall(s)
			go end()
			if err := s.Synchronize(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("the timer served, for %v; expected notifications", waited)
		}
		r.release(s)
	})
}

func TestAHostWaitSurvivesANotificationThatNeverComes(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		r.plan.DropNotify(1)
		answer := make(chan error)
		go func() { answer <- s.Synchronize(t.Context()) }()
		<-time.After(5 * lease.WatchInterval)
		if n := r.count(fault.StreamNotify); n != 1 {
			t.Errorf("%d notifications were armed for one wait", n)
		}
		before := time.Now()
		end()
		if err := <-answer; err != nil || time.Since(before) > lease.WatchInterval {
			t.Errorf("Wait answers %v after %v", err, time.Since(before))
		}
		r.release(s)
	})
}

func TestAHostWaitAnswersARefusedNotification(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		r.plan.FailNth(fault.StreamNotify, 1, errCause)
		if err := s.Synchronize(t.Context()); !errors.Is(err, errCause) {
			t.Errorf("Wait answers %v; expected why it could not be notified", err)
		}
		r.plan.FailNth(fault.EventSynchronize, 1, errCause)
		if err := s.Synchronize(context.Background()); !errors.Is(err, errCause) {
			t.Errorf("Wait answers %v; expected why it could not wait", err)
		}
		end()
		r.release(s)
	})
}

// TestAHostWaitOutlastsAQuestionThatIsRefused by the driver to the timer.
func TestAHostWaitOutlastsAQuestionThatIsRefused(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		r.plan.DropNotify(1)
		answer := make(chan error)
		go func() { answer <- s.Synchronize(t.Context()) }()
		synctest.Wait()
		r.plan.FailNth(fault.EventQuery, 1, errCause)
		<-time.After(3 * lease.WatchInterval)
		synctest.Wait()
		select {
		case err := <-answer:
			t.Fatalf("Wait answers %v before the work is done", err)
		default:
		}
		before := time.Now()
		end()
		if err := <-answer; err != nil || time.Since(before) > lease.WatchInterval {
			t.Errorf("Wait answers %v after %v", err, time.Since(before))
		}
		r.release(s)
	})
}

// TestCloseDuringAHostWaitHarmsNobody destroys the event that is waited for just
// after it was done.
func TestCloseDuringAHostWaitHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 1)
		s := r.stream(0)
		end := r.stall(s)
		c := r.record(s)
		r.plan.Delay(fault.EventSynchronize, func() {
			end()
			r.close()
		})
		if err := c.Wait(context.Background()); err != nil {
			t.Errorf("Wait answers %v", err)
		}
		r.release(s)
	})
}

// TestTokensStayValidWhenEventsAreUsedAgain keeps completions of every record of
// a stream, all along asks and waits on random old ones from other streams, and
// checks that each sees at least what it was recorded after.
func TestTokensStayValidWhenEventsAreUsedAgain(t *testing.T) {
	const rounds = 3000
	r := newRig(t, 2, 3)
	defer r.close()
	source := r.stream(0)
	readers := []stream.Stream{r.stream(0), r.stream(1)}
	var counter, failures int // of the source; and under mu
	var mu sync.Mutex
	var tokens []stream.Completion
	for i := range rounds {
		r.call(source, func() {
			mu.Lock()
			counter++
			mu.Unlock()
		})
		tokens = append(tokens, r.record(source))
		at := i - (i*i)%(min(i, 40)+1) // the newest or one of those before
		reader := readers[i%2]
		r.wait(reader, tokens[at])
		r.call(reader, func() {
			mu.Lock()
			defer mu.Unlock()
			if counter < at+1 {
				failures++
			}
		})
		if i%64 == 0 {
			r.settle(reader)
		}
		if done, err := tokens[at/2].Done(); err != nil {
			t.Fatal(err)
		} else if done {
			mu.Lock()
			if counter < at/2+1 {
				t.Errorf("token %d is done and only %d pieces ran", at/2, counter)
			}
			mu.Unlock()
		}
	}
	for _, s := range append(readers, source) {
		r.settle(s)
		r.release(s)
	}
	for i, c := range tokens {
		expectDone(t, "after all", c, true)
		if i == 0 && !c.Known() {
			t.Error("the first token is not known")
		}
	}
	if failures > 0 {
		t.Errorf("%d waits of %d let work pass that they should have held", failures, rounds)
	}
	if n := r.count(fault.DeviceNewEvent); n > rounds/2 {
		t.Errorf("%d events were made for %d records; so none were used again and nothing is shown", n, rounds)
	}
}

// TestAMillionRecordsNeedFewEvents, each after work and with its completion
// asked or not.
func TestAMillionRecordsNeedFewEvents(t *testing.T) {
	n := 1_000_000
	if raceDetector {
		n = 100_000
	}
	r := newRig(t, 1, 1)
	defer r.close()
	s := r.stream(0)
	for i := range n {
		if i%16 == 0 {
			r.call(s, func() {})
		}
		c := r.record(s)
		if i%30 == 0 {
			if err := c.Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.release(s)
	// As many as were unfinished at a time, which the waits bound.
	if made := r.count(fault.DeviceNewEvent); made > 100 {
		t.Errorf("%d records made %d events", n, made)
	}
}

// TestEventsAreUsedAgainThoughAWaitHeldThem has the work end while a wait for it
// is being submitted, which keeps its event.
func TestEventsAreUsedAgainThoughAWaitHeldThem(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		a, b := r.stream(0), r.stream(0)
		end := r.stall(a)
		var endLater func()
		c := r.record(a)
		r.plan.Delay(fault.StreamWait, func() {
			end()
			synctest.Wait()
			expectDone(t, "the work, while it is waited for", c, true)
			endLater = r.stall(a)
			r.record(a) // with another event, since c's is in use
		})
		r.wait(b, c)
		expectDone(t, "what waited", r.record(b), true)
		endLater()
		synctest.Wait()
		r.expectEventsUsedAgain(a)
		r.release(a)
		r.release(b)
	})
}

// TestEventsAreUsedAgainThoughRecordsOverlapped has one record begin and end
// during another, so that neither says anything about the other.
func TestEventsAreUsedAgainThoughRecordsOverlapped(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		nested := true
		var inner stream.Completion
		r.plan.Delay(fault.StreamRecord, func() {
			if nested {
				nested = false
				inner = r.record(s)
			}
		})
		outer := r.record(s)
		expectDone(t, "the inner record", inner, false)
		expectDone(t, "the outer record", outer, false)
		end()
		synctest.Wait()
		expectDone(t, "the outer record, ended", outer, true)
		if inner.Known() {
			t.Error("one of two overlapping records implied the other")
		}
		r.expectEventsUsedAgain(s)
		r.release(s)
	})
}

func TestABurstOfEventsIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst = 1000
		r := newRig(t, 1, 1)
		defer r.close()
		s := r.stream(0)
		end := r.stall(s)
		var last stream.Completion
		for range burst {
			last = r.record(s)
		}
		end()
		if err := last.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := r.count(fault.EventDestroy); n < burst*9/10 {
			t.Errorf("of %d events %d were given back", burst, n)
		}
		r.release(s)
	})
}

func TestAnEventThatCannotBeGivenBackIsReportedByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 1)
		s := r.stream(0)
		end := r.stall(s)
		var last stream.Completion
		for range 100 {
			last = r.record(s)
		}
		end()
		r.plan.FailNth(fault.EventDestroy, 1, errCause)
		if err := last.Wait(context.Background()); err != nil {
			t.Errorf("a failed cleanup came out of Wait: %v", err)
		}
		r.release(s)
		if err := r.pools[0].Close(); !errors.Is(err, errCause) {
			t.Errorf("Close answers %v; expected the failed cleanup", err)
		}
		r.expectNothingLeft()
	})
}

// TestRecordsThatOverlapAreEachRight records one stream from several goroutines,
// each with a handle of its own, while its pieces of work end.
func TestRecordsThatOverlapAreEachRight(t *testing.T) {
	const goroutines, each = 4, 500
	r := newRig(t, 1, 1)
	defer r.close()
	first := r.stream(0)
	var all sync.WaitGroup
	for range goroutines {
		s, err := first.Retain()
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			var mu sync.Mutex // guards ran
			ran := 0
			for i := range each {
				err := s.Call(func() {
					mu.Lock()
					ran++
					mu.Unlock()
				})
				c, rerr := s.Record()
				if err := errors.Join(err, rerr); err != nil {
					t.Error(err)
				}
				if i%7 == 0 {
					if err := c.Wait(context.Background()); err != nil {
						t.Error(err)
					}
				}
				if done, err := c.Done(); err != nil {
					t.Error(err)
				} else if done {
					mu.Lock()
					if ran != i+1 {
						t.Errorf("record %d is done and %d pieces ran", i, ran)
					}
					mu.Unlock()
				}
			}
			if err := s.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	r.release(first)
	all.Wait()
}
