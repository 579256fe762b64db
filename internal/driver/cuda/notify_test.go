//go:build cuda

package cuda_test

import (
	"errors"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// waker hands on what it is told.
type waker chan error

func (w waker) Wake(err error) { w <- err }

func (w waker) woken(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the waker was not woken")
		return nil
	}
}

// eventfds counts the process's eventfds; Go's own poller has one.
func eventfds(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	ok(t, err)
	n := 0
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.Contains(to, "eventfd") {
			n++
		}
	}
	return n
}

// awaitEventfds waits until there are that many: the reader ends on its own.
func awaitEventfds(t *testing.T, want int) {
	t.Helper()
	for deadline := time.After(time.Minute); eventfds(t) != want; {
		select {
		case <-deadline:
			t.Fatalf("there are %d eventfds; expected %d", eventfds(t), want)
		default:
			goruntime.Gosched()
		}
	}
}

// TestTheReaderEndsWithTheLastObject leaves the reader's goroutine to goleak. A
// real driver opens and closes descriptors of its own.
func TestTheReaderEndsWithTheLastObject(t *testing.T) {
	simulated(t)
	f := gpus(t)
	r, w, err := os.Pipe() // has Go's poller begin
	ok(t, err)
	ok(t, errors.Join(r.Close(), w.Close()))
	round := func() (during int) {
		d := must(f.Open(0))
		s := must(d.NewStream(0))
		woken := make(waker, 1)
		ok(t, s.Notify(woken))
		ok(t, woken.woken(t))
		during = eventfds(t)
		ok(t, s.Destroy())
		return during
	}
	awaitEventfds(t, round()-1)
	before := eventfds(t)
	for range 3 {
		if during := round(); during != before+1 {
			t.Errorf("%d eventfds while a stream lives; expected %d", during, before+1)
		}
		awaitEventfds(t, before)
	}
}

// TestADestroyedStreamsNotificationKeepsTheContext destroys the only object while
// its notification is pending.
func TestADestroyedStreamsNotificationKeepsTheContext(t *testing.T) {
	d := must(gpus(t).Open(0))
	s := must(d.NewStream(0))
	release, err := cudatest.Stall(s)
	ok(t, err)
	woken := make(waker, 1)
	ok(t, errors.Join(s.Notify(woken), s.Destroy()))
	release()
	ok(t, woken.woken(t))
}

// TestTheWatchdogSeesADeathThatNobodyMet has a device die while no call is made.
func TestTheWatchdogSeesADeathThatNobodyMet(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	t.Cleanup(func() { revive(t) })
	s := must(d.NewStream(0))
	release, err := cudatest.Stall(s)
	ok(t, err)
	defer release()
	woken := make(waker, 1)
	ok(t, s.Notify(woken))
	cudatest.KillUnseen(0, 719)
	err = woken.woken(t)
	var e *weir.Error
	if !errors.Is(err, weir.ErrDeviceLost) || !errors.As(err, &e) || e.Name != "CUDA_ERROR_LAUNCH_FAILED" || e.Code != 719 {
		t.Errorf("woken with %v; expected CUDA_ERROR_LAUNCH_FAILED", err)
	}
	_ = s.Destroy()
}

// TestTheWatchdogAsksWhateverArrives loses one device's notification, and keeps
// another's coming until that is known.
func TestTheWatchdogAsksWhateverArrives(t *testing.T) {
	simulated(t)
	f := gpus(t)
	s, other := must(must(f.Open(0)).NewStream(0)), must(must(f.Open(1)).NewStream(0))
	woken, next := make(waker, 1), make(waker, 1)
	cudatest.DropCallbacks(1)
	ok(t, errors.Join(s.Notify(woken), s.Synchronize()))
	// Short, since a pause of the machine would have a reader ask that waits for
	// one. Each notification is a round of the reader, so that some after the
	// deadline show that it ran and did not ask.
	deadline := time.Now().Add(5 * time.Second)
	for late := 0; len(woken) == 0; {
		ok(t, errors.Join(other.Notify(next), next.woken(t)))
		if time.Now().After(deadline) {
			if late++; late > 10 {
				t.Fatal("nobody asked the device whose notification was lost")
			}
		}
	}
	ok(t, errors.Join(woken.woken(t), s.Destroy(), other.Destroy()))
}

// TestACallbackThatNeverComesIsGivenUpOnceItsWorkIsDone loses a host function of
// a stream that is destroyed behind it.
func TestACallbackThatNeverComesIsGivenUpOnceItsWorkIsDone(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	s := must(d.NewStream(0))
	cudatest.DropCallbacks(1)
	lost, next := make(waker, 2), make(waker, 2)
	ok(t, errors.Join(s.Notify(lost), s.Notify(next), s.Destroy()))
	ok(t, next.woken(t))
	ok(t, lost.woken(t))
	if left := cudatest.Left(); left != "" {
		t.Error(left)
	}
	if len(lost)+len(next) != 0 {
		t.Error("a waker was woken twice")
	}
}

// TestACallbackIsNotGivenUpBeforeItsWorkIsDone has the watchdog meet two streams,
// of which one is held back.
func TestACallbackIsNotGivenUpBeforeItsWorkIsDone(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	s, other := must(d.NewStream(0)), must(d.NewStream(0))
	release, err := cudatest.Stall(s)
	ok(t, err)
	held, lost := make(waker, 2), make(waker, 2)
	ok(t, s.Notify(held))
	cudatest.DropCallbacks(1)
	for range 2 { // the second is given up by a later look than the first
		ok(t, other.Notify(lost))
		ok(t, lost.woken(t))
		cudatest.DropCallbacks(1)
	}
	cudatest.DropCallbacks(0)
	if len(held) != 0 {
		t.Errorf("woken with %v while the stream is held back", <-held)
	}
	release()
	ok(t, held.woken(t))
	ok(t, errors.Join(s.Destroy(), other.Destroy()))
	if left := cudatest.Left(); left != "" {
		t.Error(left)
	}
	if len(held) != 0 {
		t.Error("the waker was woken twice")
	}
}
