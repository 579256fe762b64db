package lease_test

import (
	"flag"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/lease"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "400"); err != nil { // the command line still has the last word
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// The pools of these tests lease ints, whose tails are scripted.
type (
	pool   = lease.Pool[int, *tail]
	handle = lease.Handle[int, *tail]
)

// tail is work that ends, fails and notifies as a test says.
type tail struct {
	mu        sync.Mutex
	done      bool
	known     bool           // Done has answered so
	err       error          // what Done answers while the work is not done
	notifyErr error          // what Notify answers
	hold      bool           // finish wakes nobody
	during    func()         // runs once, in the next Done, after the answer is fixed
	asked     int            // calls of Done
	armed     int            // calls of Notify
	wakers    []driver.Waker // that finish will wake
}

func (t *tail) Done() (bool, error) {
	t.mu.Lock()
	t.asked++
	done, err, during := t.done, t.err, t.during
	t.known = done
	t.during = nil
	t.mu.Unlock()
	if during != nil {
		during()
	}
	if done {
		return true, nil
	}
	return false, err
}

func (t *tail) Known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

func (t *tail) Notify(w driver.Waker) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed++
	if t.notifyErr != nil {
		return t.notifyErr
	}
	if t.done && !t.hold {
		go w.Wake(nil) // as a driver does, on a goroutine of its own
		return nil
	}
	t.wakers = append(t.wakers, w)
	return nil
}

// finish ends the work and wakes whoever asked to be.
func (t *tail) finish() {
	t.mu.Lock()
	t.done = true
	hold := t.hold
	t.mu.Unlock()
	if !hold {
		t.wake()
	}
}

// wake wakes all wakers, whatever the work does.
func (t *tail) wake() {
	t.mu.Lock()
	wakers := t.wakers
	t.wakers = nil
	t.mu.Unlock()
	for _, w := range wakers {
		w.Wake(nil)
	}
}

func (t *tail) counts() (asked, armed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked, t.armed
}

// ended is work that is done.
func ended() *tail { return &tail{done: true} }

// mortal is a device that can be killed.
type mortal interface {
	driver.Device
	Kill(cause error)
}

func newDevice() mortal {
	d, err := host.New(host.Options{}).Open(0)
	if err != nil {
		panic(err)
	}
	return d.(mortal)
}

// newPool makes a pool of the numbers from 0 on, on a living device.
func newPool(size int) *pool { return newPoolOn(newDevice(), size) }

func newPoolOn(d driver.Device, size int) *pool {
	return lease.New[int, *tail](lease.Config[int]{Name: "number", Device: d}, numbers(size))
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// take leases a slot that must be free.
func take(t *testing.T, p *pool) handle {
	t.Helper()
	h, ok, err := p.TryAcquire()
	if !ok || err != nil {
		t.Fatalf("a slot should be free; got %v, %v", ok, err)
	}
	return h
}

// expectCounts checks how many slots are idle, leased and pending, and how many
// callers wait.
func expectCounts(t *testing.T, p *pool, idle, leased, pending, waiting int) {
	t.Helper()
	if i, l, n, w := p.Counts(); i != idle || l != leased || n != pending || w != waiting {
		t.Errorf("idle, leased, pending, waiting are %d, %d, %d, %d; expected %d, %d, %d, %d", i, l, n, w, idle, leased, pending, waiting)
	}
}
