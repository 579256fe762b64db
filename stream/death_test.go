package stream_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/stream"
)

// expectLost checks that err says that a device is lost, and why.
func expectLost(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, errCause) {
		t.Errorf("%s: %v; expected ErrDeviceLost and the first cause", what, err)
	}
}

// TestADeviceThatDiesWakesEverybodyWhoWaits: for a stream, for a completion on
// the host, with and without the driver's notification.
func TestADeviceThatDiesWakesEverybodyWhoWaits(t *testing.T) {
	for name, dropped := range map[string]bool{"notified": false, "never notified": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, 1)
				s := r.stream(0)
				end := r.stall(s)
				c := r.record(s)
				if dropped {
					for i := range 10 {
						r.plan.DropNotify(i + 1)
					}
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				parked, inDriver := make(chan error), make(chan error)
				go func() { parked <- c.Wait(ctx) }()
				go func() { inDriver <- c.Wait(context.Background()) }()
				r.release(s)
				var answers []<-chan result
				for range 3 {
					answers = append(answers, acquire(context.Background(), r.pools[0]))
				}
				before := time.Now()
				r.kill(0)
				for _, a := range answers {
					expectLost(t, "a waiter for a stream", (<-a).err)
				}
				expectLost(t, "a waiter for a completion", <-parked)
				if waited := time.Since(before); waited > lease.WatchInterval {
					t.Errorf("the waiters woke after %v", waited)
				}
				end() // the host's work can't be interrupted
				expectLost(t, "a waiter in the driver", <-inDriver)
				_, _, err := r.pools[0].TryAcquire()
				expectLost(t, "a later caller", err)
				_, err = c.Done()
				expectLost(t, "the completion", err)

				s = r.stream(1) // the other device goes on
				r.call(s, func() {})
				r.settle(s)
				r.release(s)
				expectLost(t, "Close", r.pools[0].Close())
				if err := r.pools[1].Close(); err != nil {
					t.Error(err)
				}
				r.expectNothingLeft()
				_, err = c.Done()
				expectLost(t, "the completion, after Close", err)
			})
		})
	}
}

// TestADeviceThatDiesAtAnyDriverCallHangsNobody kills the device just before the
// nth driver call of some operations, for each n.
func TestADeviceThatDiesAtAnyDriverCallHangsNobody(t *testing.T) {
	for n := 1; ; n++ {
		survived := false
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1, 2)
			made := 0 // events, by the living device
			r.plan.Delay(fault.DeviceNewEvent, func() {
				if r.devs[0].Err() == nil {
					made++
				}
			})
			r.plan.KillNth(fault.Any, n, errCause)
			err := operate(r)
			survived = r.devs[0].Err() == nil
			if err != nil { // none when all had been done by then
				expectLost(t, "the operations", err)
			}
			if survived && err != nil {
				t.Errorf("living, the operations answer %v", err)
			}
			synctest.Wait()
			if _, _, _, waiting := r.pools[0].Counts(); waiting != 0 {
				t.Errorf("%d wait for ever", waiting)
			}
			r.plan.Clear()
			_ = r.pools[0].Close()
			// The device may have died in the call that was to make one.
			if events, streams := r.count(fault.EventDestroy), r.count(fault.StreamDestroy); events < made-1 || streams != 2 {
				t.Errorf("of %d events and 2 streams, %d and %d were destroyed", made, events, streams)
			}
		})
		if survived {
			t.Logf("%d driver calls", n-1)
			return
		}
	}
}

// operate leases, submits, records, waits and parks, and joins what goes wrong.
func operate(r *rig) error {
	p := r.pools[0]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var errs []error
	a, err := p.Acquire(ctx)
	errs = append(errs, err)
	b, err := p.Acquire(ctx)
	errs = append(errs, err)
	gate := make(chan struct{})
	errs = append(errs, a.Call(func() { <-gate }))
	c, err := a.Record()
	errs = append(errs, err, b.Wait(c), b.Call(func() {}), b.Release())
	answer := make(chan error)
	go func() {
		s, err := p.Acquire(ctx)
		answer <- errors.Join(err, s.Release())
	}()
	go func() { answer <- c.Wait(ctx) }()
	synctest.Wait()
	close(gate)
	errs = append(errs, a.Release(), <-answer, <-answer)
	return errors.Join(errs...)
}

// TestWorkThatWaitedForALostDeviceFails, also through others that waited: a
// second stream of its own device, a third device, and a mere wait.
func TestWorkThatWaitedForALostDeviceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, 4)
		lost := r.stream(1)
		end := r.stall(lost)
		defer end()
		root := r.record(lost)

		direct := r.stream(0)
		before := r.record(direct)
		r.wait(direct, root)
		r.call(direct, func() {})
		waited := r.record(direct)
		again := r.record(direct)

		sibling := r.stream(0)
		r.wait(sibling, waited)
		viaSibling := r.record(sibling)

		far := r.stream(2)
		r.wait(far, viaSibling)
		viaThird := r.record(far)

		back := r.stream(0)
		r.wait(back, viaThird)
		viaBack := r.record(back)

		free := r.stream(0)
		end2 := r.stall(free)
		independent := r.record(free)

		r.kill(1)
		synctest.Wait()
		for name, c := range map[string]stream.Completion{"what waited": waited, "what came after it": again,
			"what waited for that on its own device": viaSibling, "what waited for that on a third device": viaThird,
			"what waited for that on the first device": viaBack} {
			done, err := c.Done()
			expectLost(t, name, err)
			if !done {
				t.Errorf("%s is not done", name)
			}
			expectLost(t, name+", asked again", c.Wait(context.Background()))
			user := free // a stream that waits for it is told
			expectLost(t, name+", waited for", user.Wait(c))
		}
		expectLost(t, "its own stream, waiting for it", direct.Wait(waited))
		expectDone(t, "what was recorded before the wait", before, true)
		end2()
		synctest.Wait()
		expectDone(t, "what is independent", independent, true)

		// The living devices' streams go on, in these leases and later ones.
		for _, s := range []stream.Stream{direct, sibling, far, back, free} {
			r.call(s, func() {})
			c := r.record(s)
			synctest.Wait()
			expectDone(t, "later work of "+s.String(), c, true)
			r.release(s)
		}
		for range 20 {
			s := r.stream(0)
			if err := s.Wait(waited); err == nil {
				t.Errorf("a later lease of %v may use what failed", s)
			}
			r.release(s)
		}
	})
}

// TestADeathAfterTheFactDoesNoHarm: what had been waited for was done, and that
// was known, when its device died.
func TestADeathAfterTheFactDoesNoHarm(t *testing.T) {
	for name, which := range map[string]int{"since what waited was asked": 0, "since what was waited for was asked": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, 1)
				far, near := r.stream(1), r.stream(0)
				end := r.stall(far)
				root := r.record(far)
				r.wait(near, root)
				r.call(near, func() {})
				first := r.record(near)
				end()
				synctest.Wait()
				expectDone(t, "one of both, with all alive", []stream.Completion{first, root}[which], true)
				r.kill(1)
				r.call(near, func() {})
				second := r.record(near)
				synctest.Wait()
				expectDone(t, "what waited", first, true)
				expectDone(t, "what came later in the same lease", second, true)
				r.release(near)
			})
		})
	}
}

// TestWhatALeaseWaitedForIsForgottenWithIt: the next user of the stream does not
// inherit it, whether the release could record its tail or not.
func TestWhatALeaseWaitedForIsForgottenWithIt(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 2, 1)
			far, near := r.stream(1), r.stream(0)
			end := r.stall(far)
			defer end()
			r.wait(near, r.record(far))
			r.kill(1)
			if fails {
				r.plan.FailNth(fault.StreamRecord, 1, errCause)
			}
			if err := near.Release(); fails != errors.Is(err, errCause) {
				t.Errorf("Release answers %v", err)
			}
			synctest.Wait()
			near = r.stream(0)
			r.call(near, func() {})
			c := r.record(near)
			synctest.Wait()
			expectDone(t, "the next user's work", c, true)
			r.release(near)
		})
	}
}

// TestWhatALeaseWaitedForOutlastsTheReleaseOfALentHandle, which is none.
func TestWhatALeaseWaitedForOutlastsTheReleaseOfALentHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, 1)
		far, near := r.stream(1), r.stream(0)
		end := r.stall(far)
		defer end()
		r.wait(near, r.record(far))
		r.record(near) // so that nothing is left to record when it is released
		r.release(near.Lend())
		r.call(near, func() {})
		c := r.record(near)
		r.kill(1)
		synctest.Wait()
		_, err := c.Done()
		expectLost(t, "the work after it", err)
		_ = near.Release() // answers the loss again, or not
	})
}

// TestALongLeaseCarriesOnePlaceOfEachStreamItWaitedFor: else each record would
// copy thousands.
func TestALongLeaseCarriesOnePlaceOfEachStreamItWaitedFor(t *testing.T) {
	r := newRig(t, 2, 1)
	defer r.close()
	far, near := r.stream(1), r.stream(0)
	end := r.stall(far)
	const waits, records = 3000, 100
	for range waits {
		r.wait(near, r.record(far))
	}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for range records {
		r.record(near)
	}
	goruntime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / records; bytes > 2000 {
		t.Errorf("after %d waits for one stream, a record takes %d bytes", waits, bytes)
	}
	end()
	r.release(far)
	r.release(near)
}

// TestADependenceFailsThoughItIsAskedAfterClose of the pool that waited, or of
// the one that was waited for.
func TestADependenceFailsThoughItIsAskedAfterClose(t *testing.T) {
	for closed := range 2 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 2, 1)
			far, near := r.stream(1), r.stream(0)
			end := r.stall(far)
			defer end()
			r.wait(near, r.record(far))
			c := r.record(near)
			r.kill(1)
			r.release(near)
			if err := r.pools[closed].Close(); err != nil && closed == 0 {
				t.Error(err)
			}
			synctest.Wait()
			_, err := c.Done()
			expectLost(t, "what waited", err)
		})
	}
}
