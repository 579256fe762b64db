package profile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/profile"
	"github.com/weirgo/weir/stream"
)

// atLeast goes on until d has passed.
func atLeast(d time.Duration) {
	for begun := time.Now(); time.Since(begun) < d; {
	}
}

// TestATimerHasTheTimeOfTheWorkBetweenItsEndsAlone: at most what passes from when
// the work before Begin is let go to when that after End begins.
func TestATimerHasTheTimeOfTheWorkBetweenItsEndsAlone(t *testing.T) {
	r := newRig(t)
	s := r.lease()
	earlier := r.stall(s)
	timer, err := profile.Begin(s)
	r.ok(err)
	defer timer.Release()
	r.ok(s.Call(func() { atLeast(2 * time.Millisecond) }))
	r.ok(timer.End())
	after := make(chan time.Time, 1)
	r.ok(s.Call(func() {
		after <- time.Now()
		atLeast(50 * time.Millisecond)
	}))
	atLeast(50 * time.Millisecond)
	begun := time.Now()
	before := earlier()
	took, err := timer.Elapsed(t.Context())
	r.ok(err)
	if most := (<-after).Sub(begun); took < 2*time.Millisecond || took > most {
		t.Errorf("%v; expected from 2ms to %v, without the %v before Begin and the 50ms after End", took, most, before)
	}
}

func TestTimersNestAndAddUp(t *testing.T) {
	r := newRig(t)
	s := r.lease()
	var timers [3]*profile.Timer
	begin := func(i int) {
		var err error
		timers[i], err = profile.Begin(s)
		r.ok(err)
	}
	begin(0)
	begin(1)
	release := r.stall(s)
	r.ok(timers[1].End())
	begin(2)
	r.ok(timers[2].End())
	r.ok(timers[0].End())
	held := release()
	var took [3]time.Duration
	for i, timer := range timers {
		var err error
		took[i], err = timer.Elapsed(t.Context())
		r.ok(err)
	}
	if took[1] < held || took[2] < 0 || took[0] < took[1]+took[2] {
		t.Errorf("the inner ones took %v and %v, the outer one %v; expected the stream's %v in the first, and both in the outer", took[1], took[2], took[0], held)
	}
}

func TestATimerGivesItsMarksUpOnEveryWayOut(t *testing.T) {
	r := newRig(t)
	s := r.lease()
	expect := func(what string, marks int) {
		t.Helper()
		if n := r.marks(); n != marks {
			t.Errorf("%s: there are %d marks; expected %d", what, n, marks)
		}
	}
	timer, err := profile.Begin(s)
	r.ok(err)
	expect("a timer that runs", 2)
	r.ok(timer.Release())
	r.ok(timer.Release())
	expect("released while it ran", 0)

	timer, err = profile.Begin(s)
	r.ok(err)
	release := r.stall(s)
	r.ok(timer.End())
	r.ok(timer.Release()) // does not wait
	expect("released before the work was done", 0)
	release()

	timer, err = profile.Begin(s)
	r.ok(err)
	r.ok(timer.End())
	r.ok(timer.End())
	took, err := timer.Elapsed(t.Context())
	r.ok(err)
	expect("asked for its time", 0)
	if again, err := timer.Elapsed(t.Context()); again != took || err != nil {
		t.Errorf("asked again it answers %v, %v; expected %v", again, err, took)
	}
	r.ok(timer.End())
	r.ok(timer.Release())
	if n := r.plan.Counts()[fault.StreamMark]; n != 5 {
		t.Errorf("%d places were marked; expected 5, one for each Begin and first End", n)
	}
}

func TestATimerSaysWhatIsWrong(t *testing.T) {
	r := newRig(t)
	s := r.lease()
	refused := func(err, sentinel error, message string) {
		t.Helper()
		if !errors.Is(err, sentinel) || err.Error() != message {
			t.Errorf("got %v; expected %q of %v", err, message, sentinel)
		}
	}
	timer, err := profile.Begin(s)
	r.ok(err)
	_, err = timer.Elapsed(t.Context())
	refused(err, weir.ErrArgument, "profile.Elapsed on stream host:0/0: the timer still runs; call End first")
	r.ok(timer.Release())
	refused(timer.End(), weir.ErrClosed, "profile.End on stream host:0/0: the timer was released")
	_, err = timer.Elapsed(t.Context())
	refused(err, weir.ErrClosed, "profile.Elapsed on stream host:0/0: the timer was released")

	timer, err = profile.Begin(s)
	r.ok(err)
	r.ok(s.Release())
	if err := timer.End(); !errors.Is(err, weir.ErrStale) {
		t.Errorf("End on a released stream answers %v", err)
	}
	r.ok(timer.Release())
	for what, stale := range map[string]stream.Stream{"a released": s, "the zero": {}} {
		if timer, err := profile.Begin(stale); !errors.Is(err, weir.ErrStale) || timer != nil {
			t.Errorf("Begin on %s stream answers %v, %v", what, timer, err)
		}
	}
}

func TestElapsedEndsWithItsContextAndMayBeAskedAgain(t *testing.T) {
	r := newRig(t)
	s := r.lease()
	timer, err := profile.Begin(s)
	r.ok(err)
	release := r.stall(s)
	r.ok(timer.End())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := timer.Elapsed(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; expected the cancellation", err)
	}
	held := release()
	if took, err := timer.Elapsed(t.Context()); err != nil || took < held {
		t.Errorf("afterwards it is %v, %v; expected %v or more", took, err, held)
	}
}

// measure uses a timer once, and answers the first error.
func measure(s stream.Stream) error {
	timer, err := profile.Begin(s)
	if err != nil {
		return err
	}
	err = timer.End()
	if err == nil {
		_, err = timer.Elapsed(context.Background())
	}
	return errors.Join(err, timer.Release())
}

func TestATimerWhoseCallsFailSaysSoAndKeepsNothing(t *testing.T) {
	calls := map[fault.Call]int{fault.DeviceNewMark: 2, fault.StreamMark: 2, fault.StreamRecord: 1, fault.MarkSince: 1, fault.MarkDestroy: 2}
	for call := range calls {
		failed := 0
		for nth := 1; ; nth++ {
			r := newRig(t)
			r.plan.FailNth(call, nth, nil)
			err := measure(r.lease())
			if err == nil {
				break
			}
			failed++
			var e *weir.Error
			if !errors.Is(err, fault.ErrInjected) || !errors.As(err, &e) || e.Stream != "host:0/0" || e.Device != "host:0" || e.Kind != weir.KindCUDA {
				t.Errorf("%s, call %d: %v", call, nth, err)
			}
			if call == fault.DeviceNewMark {
				r.lost = 1
			}
		}
		if want := calls[call]; failed != want {
			t.Errorf("%s failed %d times; expected %d", call, failed, want)
		}
	}
}

func TestALostDeviceEndsElapsedWithItsCause(t *testing.T) {
	r := newRig(t)
	s := r.lease()
	timer, err := profile.Begin(s)
	r.ok(err)
	release := r.stall(s)
	r.ok(timer.End())
	cause := errors.New("the cause that the test gave")
	answer := make(chan error)
	go func() {
		_, err := timer.Elapsed(context.Background())
		answer <- err
	}()
	r.kill(cause)
	if err := <-answer; !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, cause) {
		t.Errorf("got %v; expected the loss of the device and its cause", err)
	}
	if err := timer.Release(); !errors.Is(err, weir.ErrDeviceLost) {
		t.Errorf("Release answers %v", err)
	}
	release()
	r.lost = 1 // the one that this is refused
	if _, err := profile.Begin(s); !errors.Is(err, weir.ErrDeviceLost) {
		t.Errorf("Begin answers %v", err)
	}
}
