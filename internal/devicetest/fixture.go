package devicetest

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// patience is how long anything may take before it counts as hanging.
const patience = time.Minute

// fixture is one test over the harness's families.
type fixture struct {
	t        *testing.T
	h        Harness
	families []driver.Family
	hung     bool // something did not end, and may never
}

// device is a device of the family under test; the test is skipped without it.
func (f *fixture) device(ordinal int) driver.Device {
	f.t.Helper()
	if n := f.families[0].Count(); ordinal >= n {
		f.t.Skipf("the family has %d devices; this needs %d", n, ordinal+1)
	}
	d, err := f.families[0].Open(ordinal)
	f.ok(err)
	return d
}

// ok ends the test unless err is nil.
func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("%v", err)
	}
}

// refused checks an error's sentinel and its whole text.
func (f *fixture) refused(err, sentinel error, format string, args ...any) {
	f.t.Helper()
	if !errors.Is(err, sentinel) {
		f.t.Errorf("%v does not match %v", err, sentinel)
	}
	if want := fmt.Sprintf(format, args...); err == nil || err.Error() != want {
		f.t.Errorf("\ngot      %v\nexpected %s", err, want)
	}
}

// lost checks that err says that a device was lost, and why.
func (f *fixture) lost(what string, err, cause error) {
	f.t.Helper()
	if !errors.Is(err, weir.ErrDeviceLost) || cause != nil && !errors.Is(err, cause) {
		f.t.Errorf("%s answers %v; expected a lost device and %v", what, err, cause)
	}
}

// task is a call that runs beside the test.
type task struct {
	f    *fixture
	what string
	done chan error
}

func (f *fixture) start(what string, call func() error) *task {
	t := &task{f, what, make(chan error, 1)}
	go func() { t.done <- call() }()
	return t
}

// startWaiting starts a call that is to wait, and lets it get there.
func (f *fixture) startWaiting(what string, call func() error) *task {
	begun := make(chan struct{})
	t := f.start(what, func() error {
		close(begun)
		return call()
	})
	<-begun
	yield()
	return t
}

// yield gives the processor away for long enough that what must not happen now
// very likely would have happened, if it could. A test that looks too early
// passes without having shown anything.
func yield() {
	for range 1000 {
		goruntime.Gosched()
	}
}

// join waits for the call and answers its error; one that hangs ends the test.
func (t *task) join() error {
	t.f.t.Helper()
	return receive(t.f, t.what, t.done)
}

// ended says whether the call has returned.
func (t *task) ended() bool { return len(t.done) > 0 }

// all waits for every one of the tasks, which must succeed.
func (f *fixture) all(tasks []*task) {
	f.t.Helper()
	for _, t := range tasks {
		if err := t.join(); err != nil {
			f.t.Errorf("%s: %v", t.what, err)
		}
	}
}

// within makes a call that must succeed and must not hang.
func (f *fixture) within(what string, call func() error) {
	f.t.Helper()
	if err := f.start(what, call).join(); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

// receive takes one value from c, which must come.
func receive[T any](f *fixture, what string, c <-chan T) T {
	f.t.Helper()
	v, came := await(c)
	if !came {
		f.hung = true
		f.t.Fatalf("%s: nothing after %v; something waits that must not", what, patience)
	}
	return v
}

// await takes one value from c, or gives up.
func await[T any](c <-chan T) (v T, came bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v = <-c:
		return v, true
	case <-timer.C:
		return v, false
	}
}

// until asks again and again, until it is so.
func (f *fixture) until(what string, so func() bool) {
	f.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !so() {
		select {
		case <-timer.C:
			f.hung = true
			f.t.Fatalf("%s: not after %v", what, patience)
		default:
			goruntime.Gosched()
		}
	}
}

// must is for values that tests cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// second is the error of a call that answers a value too.
func second[T any](_ T, err error) error { return err }
