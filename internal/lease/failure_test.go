package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/lease"
)

// TestADeadDeviceWakesEveryWaiter kills the device while waiters are parked, in
// every situation that a slot can be in.
func TestADeadDeviceWakesEveryWaiter(t *testing.T) {
	cause := errors.New("the cause that the test gave")
	for name, c := range map[string]struct {
		work *tail // nil: the slot stays leased
		tell bool  // whether the notification comes
	}{
		"with a notification":                 {&tail{}, true},
		"when the notification never comes":   {&tail{hold: true}, false},
		"when no notification could be armed": {&tail{notifyErr: errors.New("refused")}, false},
		"when the slot is leased to somebody": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				p := newPoolOn(d, 1)
				h := take(t, p)
				if c.work != nil {
					h.Release(c.work)
				}
				var answers []<-chan result
				for range 3 {
					answers = append(answers, acquire(context.Background(), p))
				}
				before := time.Now()
				d.Kill(cause)
				if c.tell {
					c.work.mu.Lock()
					c.work.err = d.Err()
					c.work.mu.Unlock()
					c.work.wake()
				}
				for _, a := range answers {
					if r := <-a; !errors.Is(r.err, weir.ErrDeviceLost) || !errors.Is(r.err, cause) {
						t.Errorf("a waiter got %v; expected ErrDeviceLost and the first cause", r.err)
					}
				}
				if waited := time.Since(before); c.tell && waited != 0 || waited > lease.WatchInterval {
					t.Errorf("the waiters woke after %v", waited)
				}
				if _, _, err := p.TryAcquire(); !errors.Is(err, weir.ErrDeviceLost) {
					t.Errorf("a later caller got %v; expected ErrDeviceLost", err)
				}
				if _, err := p.Acquire(context.Background()); !errors.Is(err, weir.ErrDeviceLost) {
					t.Errorf("a later caller got %v; expected ErrDeviceLost", err)
				}
				h.Release(ended())
				expectNobodyWaits(t, p)
			})
		})
	}
}

func expectNobodyWaits(t *testing.T, p *pool) {
	t.Helper()
	if _, _, _, waiting := p.Counts(); waiting != 0 {
		t.Errorf("%d wait", waiting)
	}
}

// TestNotifyFailingOnADeadDeviceEndsThePool finds the death by arming.
func TestNotifyFailingOnADeadDeviceEndsThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		p := newPoolOn(d, 1)
		work := &tail{}
		work.during = func() {
			d.Kill(errors.New("died meanwhile"))
			work.notifyErr = d.Err()
		}
		take(t, p).Release(work)
		before := time.Now()
		if r := <-acquire(context.Background(), p); !errors.Is(r.err, weir.ErrDeviceLost) {
			t.Errorf("got %v; expected ErrDeviceLost", r.err)
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("the death was found after %v; expected at once", waited)
		}
	})
}

// TestATailThatCannotBeAskedForAMomentIsAskedAgain refuses two questions at a
// time, often; three in a row would end the pool.
func TestATailThatCannotBeAskedForAMomentIsAskedAgain(t *testing.T) {
	refused := errors.New("the question was refused")
	set := func(work *tail, err error) {
		work.mu.Lock()
		defer work.mu.Unlock()
		work.err = err
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		for i := range 4 {
			work := &tail{err: refused}
			take(t, p).Release(work)
			answer := acquire(context.Background(), p) // asked by its attempt and when it was queued
			set(work, nil)
			if i%2 == 0 {
				<-time.After(lease.WatchInterval) // asked by the timer
				synctest.Wait()
				set(work, refused)
				<-time.After(lease.WatchInterval)
				synctest.Wait()
				set(work, nil)
			}
			before := time.Now()
			work.finish()
			r := <-answer
			if r.err != nil {
				t.Fatalf("the pool failed: %v", r.err)
			}
			if waited := time.Since(before); waited != 0 {
				t.Errorf("the waiter was served by the timer, after %v; expected a notification", waited)
			}
			r.handle.Release(ended())
		}
	})
}

func TestATailThatCanNeverBeAskedEndsThePoolRatherThanHang(t *testing.T) {
	refused := errors.New("the question was refused")
	synctest.Test(t, func(t *testing.T) {
		p := newPool(2)
		held := take(t, p)
		take(t, p).Release(&tail{err: refused, hold: true})
		answer := acquire(context.Background(), p)
		if r := <-answer; !errors.Is(r.err, refused) {
			t.Errorf("the waiter got %v; expected the refusal", r.err)
		}
		if _, _, err := p.TryAcquire(); !errors.Is(err, refused) {
			t.Errorf("a later caller got %v; expected the refusal", err)
		}
		held.Release(ended())
	})
}

// TestWorkThatEndedBadlyFreesItsSlot: that a completion is worthless is its
// readers' concern. The pool of a living device goes on.
func TestWorkThatEndedBadlyFreesItsSlot(t *testing.T) {
	p := lease.New[int, worthless](lease.Config[int]{Name: "number", Device: newDevice()}, numbers(1))
	for range 10 {
		h, ok, err := p.TryAcquire()
		if !ok || err != nil {
			t.Fatalf("got %v, %v; expected the slot", ok, err)
		}
		h.Release(worthless{})
	}
}

// worthless is work that is done and whose result nobody can use.
type worthless struct{ *tail }

func (worthless) Known() bool { return false }

func (worthless) Done() (bool, error) { return true, errors.New("ran without what it waited for") }
