package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/lease"
)

// factory makes numbers from 100 on in place of broken ones.
type factory struct {
	mu        sync.Mutex
	made      int
	failing   error  // what make answers
	during    func() // runs once, in the next make
	discarded []int
}

func (f *factory) make() (int, error) {
	f.mu.Lock()
	during, failing := f.during, f.failing
	f.during = nil
	f.made++
	n := 99 + f.made
	f.mu.Unlock()
	if during != nil {
		during()
	}
	return n, failing
}

func (f *factory) discard(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.discarded = append(f.discarded, n)
}

func (f *factory) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = err
}

func (f *factory) pool(size int) *pool {
	return lease.New[int, *tail](lease.Config[int]{Name: "number", Device: newDevice(), Make: f.make, Discard: f.discard}, numbers(size))
}

func expectValue(t *testing.T, h handle, expected int) {
	t.Helper()
	if v, err := h.Value(); v != expected || err != nil {
		t.Errorf("leased %v, %v; expected %d", v, err, expected)
	}
}

func TestABrokenThingIsRemadeOnceItsWorkIsDone(t *testing.T) {
	f := &factory{}
	p := f.pool(1)
	h := take(t, p)
	copied := h
	copied.Break() // a copy is the same claim
	expectValue(t, h, 0)
	work := &tail{}
	h.Release(work)
	if _, ok, _ := p.TryAcquire(); ok || f.made > 0 || len(f.discarded) > 0 {
		t.Errorf("with its work unfinished: leased %v, %d made, %v discarded; expected nothing of that", ok, f.made, f.discarded)
	}
	work.finish()
	h = take(t, p)
	expectValue(t, h, 100)
	if !slices.Equal(f.discarded, []int{0}) {
		t.Errorf("discarded are %v; expected the broken one", f.discarded)
	}
	h.Release(ended())
	h = take(t, p)
	expectValue(t, h, 100) // once is enough
	h.Release(ended())
}

func TestAWaiterGetsTheRemadeThing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(1)
		h := take(t, p)
		answer := acquire(context.Background(), p)
		h.Break()
		h.Release(ended())
		r := <-answer
		expectValue(t, r.handle, 100)
		r.handle.Release(ended())
	})
}

func TestAStaleHandleBreaksNothing(t *testing.T) {
	f := &factory{}
	p := f.pool(1)
	old := take(t, p)
	old.Release(ended())
	h := take(t, p)
	old.Break()
	h.Release(ended())
	expectValue(t, take(t, p), 0)
}

func TestAThingThatNobodyCanRemakeStaysAsItIs(t *testing.T) {
	p := newPool(1)
	h := take(t, p)
	h.Break()
	h.Release(ended())
	expectValue(t, take(t, p), 0)
}

// TestABrokenThingIsNeverLeasedThoughItCannotBeRemade: whose turn it is gets
// the reason, not the thing, and not for ever.
func TestABrokenThingIsNeverLeasedThoughItCannotBeRemade(t *testing.T) {
	full := errors.New("no memory for another one")
	synctest.Test(t, func(t *testing.T) {
		f := &factory{failing: full}
		p := f.pool(1)
		h := take(t, p)
		h.Break()
		h.Release(ended())
		if _, ok, err := p.TryAcquire(); ok || err != nil {
			t.Errorf("got %v, %v; expected no slot and no error", ok, err)
		}
		if r := <-acquire(context.Background(), p); !errors.Is(r.err, full) {
			t.Errorf("a waiter got %v; expected why none could be made", r.err)
		}
		f.fail(nil)
		h = take(t, p)
		expectValue(t, h, 99+f.made)
		h.Release(ended())
		if !slices.Equal(f.discarded, []int{0}) {
			t.Errorf("discarded are %v; expected the broken one, once", f.discarded)
		}
	})
}

// TestTheDeathOfTheDeviceIsNoticedByRemaking: the work was done before.
func TestTheDeathOfTheDeviceIsNoticedByRemaking(t *testing.T) {
	d := newDevice()
	p := lease.New[int, *tail](lease.Config[int]{Name: "number", Device: d,
		Make:    func() (int, error) { return 0, d.Err() },
		Discard: func(int) {},
	}, numbers(1))
	h := take(t, p)
	h.Break()
	h.Release(ended())
	d.Kill(errors.New("the cause that the test gave"))
	for range 2 {
		if _, ok, err := p.TryAcquire(); ok || !errors.Is(err, weir.ErrDeviceLost) {
			t.Errorf("got %v, %v; expected ErrDeviceLost", ok, err)
		}
	}
}

func TestOneThingThatCannotBeRemadeDoesNotHinderTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{failing: errors.New("no memory for another one")}
		p := f.pool(2)
		broken, sound := take(t, p), take(t, p)
		broken.Break()
		broken.Release(ended())
		answer := acquire(context.Background(), p)
		sound.Release(ended())
		r := <-answer
		if r.err != nil {
			t.Fatalf("the waiter got %v; expected the sound thing", r.err)
		}
		expectValue(t, r.handle, 1)
		r.handle.Release(ended())
	})
}

// TestCloseWhileAThingIsRemadeLosesNone: the owner destroys the old one, so the
// new one is discarded.
func TestCloseWhileAThingIsRemadeLosesNone(t *testing.T) {
	f := &factory{}
	p := f.pool(1)
	h := take(t, p)
	h.Break()
	h.Release(ended())
	var owned []int
	f.during = func() { owned = p.Close() }
	if _, ok, err := p.TryAcquire(); ok || err == nil {
		t.Errorf("got %v, %v; expected a closed pool", ok, err)
	}
	if !slices.Equal(owned, []int{0}) || !slices.Equal(f.discarded, []int{100}) || !slices.Equal(p.Close(), owned) {
		t.Errorf("Close answered %v, then %v, and %v is discarded; expected each thing in one place", owned, p.Close(), f.discarded)
	}
}
