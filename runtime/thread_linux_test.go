package runtime_test

import (
	"errors"
	goruntime "runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
)

// A goroutine that waits gives its thread to the next one that can run, unless
// it is locked to it. So whoever is not locked loses its thread to a visitor,
// a goroutine that keeps whatever thread it was first run on.

// visitor starts a visitor and waits until it runs: thread is the one that it
// has until leave is called.
func visitor() (thread int, leave func()) {
	arrived, gone, left := make(chan int), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		arrived <- unix.Gettid()
		<-gone
	}()
	return <-arrived, func() { close(gone); <-left }
}

// visits is how many visitors come before a goroutine that kept its thread
// counts as locked. One that is not locked loses it to the first, as a rule.
const visits = 100

// keepsItsThread says whether no visitor gets the caller's thread.
func keepsItsThread() bool {
	own := unix.Gettid()
	for range visits {
		thread, leave := visitor()
		goruntime.Gosched()
		moved := thread == own || unix.Gettid() != own
		leave()
		if moved {
			return false
		}
	}
	return true
}

// oneProcessor makes it certain who gets a thread that is given up.
func oneProcessor(t *testing.T) {
	before := goruntime.GOMAXPROCS(1)
	t.Cleanup(func() { goruntime.GOMAXPROCS(before) })
}

func TestDoKeepsItsThreadThroughEveryWaitAndUnlocksItOnEveryExit(t *testing.T) {
	oneProcessor(t)
	plan := startHosts(t, runtime.Options{})
	d, other := get("host:0"), get("host:1")
	if keepsItsThread() {
		t.Fatal("a goroutine that is not locked keeps its thread; so nothing is shown")
	}
	cause := errors.New("cause")
	locked := func(when string, then func() error) func() error {
		return func() error {
			if !keepsItsThread() {
				t.Errorf("%s: it lost its thread", when)
			}
			return then()
		}
	}
	for name, do := range map[string]func(){
		"a return": func() { _ = d.Do(locked("within", func() error { return nil })) },
		"an error": func() { _ = d.Do(locked("within", func() error { return cause })) },
		"a panic": func() {
			defer func() { _ = recover() }()
			_ = d.Do(locked("within", func() error { panic(cause) }))
		},
		"the inner of two": func() {
			_ = d.Do(func() error {
				_ = other.Do(func() error { return nil })
				return locked("after the inner one", func() error { return nil })()
			})
		},
		"a device that cannot be selected": func() {
			plan.FailNth(fault.DeviceSelect, 1, nil)
			_ = d.Do(func() error { return nil })
		},
	} {
		if do(); keepsItsThread() {
			t.Errorf("after %s its thread is still locked", name)
		}
	}
}

// TestManyGoroutinesInDoHaveAThreadEach, which none of them leaves though all
// wait for each other.
func TestManyGoroutinesInDoHaveAThreadEach(t *testing.T) {
	const goroutines, rounds = 16, 200
	startHosts(t, runtime.Options{})
	d := get("host:0")
	threads := make(chan int, goroutines)
	baton, over := make(chan struct{}), make(chan struct{})
	for range goroutines {
		go func() {
			defer func() { over <- struct{}{} }()
			_ = d.Do(func() error {
				own := unix.Gettid()
				threads <- own
				for range rounds {
					<-baton
					goruntime.Gosched()
					if now := unix.Gettid(); now != own {
						t.Errorf("it was on thread %d and is on %d", own, now)
					}
				}
				return nil
			})
		}()
	}
	seen := map[int]bool{}
	for range goroutines {
		seen[<-threads] = true
	}
	if len(seen) != goroutines {
		t.Errorf("%d goroutines have %d threads; expected one each", goroutines, len(seen))
	}
	for range goroutines * rounds {
		baton <- struct{}{}
	}
	for range goroutines {
		<-over
	}
}
