package lease_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir"
)

func TestASlotReturnsAfterTheLastOfItsHandles(t *testing.T) {
	for name, order := range map[string][]int{"first first": {0, 1, 2}, "first last": {2, 1, 0}, "first amid": {1, 0, 2}} {
		t.Run(name, func(t *testing.T) {
			p := newPool(1)
			handles := []handle{take(t, p)}
			for range 2 {
				h, err := handles[len(handles)-1].Retain()
				if err != nil {
					t.Fatal(err)
				}
				handles = append(handles, h)
			}
			for i, k := range order {
				expectCounts(t, p, 0, 1, 0, 0)
				h := handles[k]
				h.Release(ended())
				h.Release(ended()) // once more does nothing
				if _, err := h.Value(); h.Valid() || !errors.Is(err, weir.ErrStale) {
					t.Errorf("after its release a handle answers %v; expected ErrStale", err)
				}
				for _, k := range order[i+1:] {
					if v, err := handles[k].Value(); v != 0 || err != nil {
						t.Errorf("another handle of the slot answers %v, %v", v, err)
					}
				}
			}
			expectCounts(t, p, 0, 0, 1, 0)
		})
	}
}

// TestAStaleCopyNeverReleasesSomebodyElsesLease uses every kind of old handle
// while others hold the slot.
func TestAStaleCopyNeverReleasesSomebodyElsesLease(t *testing.T) {
	p := newPool(1)
	old := []handle{take(t, p)}
	for range 2 {
		h, err := old[0].Retain()
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, h)
	}
	for _, h := range old {
		h.Release(ended())
	}
	old = append(old, handle{})
	// The new lease has just as many holders, by the same numbers.
	present := []handle{take(t, p)}
	for range 2 {
		h, err := present[0].Retain()
		if err != nil {
			t.Fatal(err)
		}
		present = append(present, h)
	}
	for _, h := range old {
		h.Break()
		if h.Leave() {
			t.Error("a stale handle left a slot last")
		}
		h.Release(ended())
		if _, err := h.Retain(); !errors.Is(err, weir.ErrStale) {
			t.Errorf("retaining a stale handle answers %v; expected ErrStale", err)
		}
		if _, err := h.Value(); !errors.Is(err, weir.ErrStale) {
			t.Errorf("using a stale handle answers %v; expected ErrStale", err)
		}
	}
	for _, h := range present {
		if !h.Valid() {
			t.Error("a stale handle released somebody else's lease")
		}
		h.Release(ended())
	}
	expectCounts(t, p, 0, 0, 1, 0)
}

// TestALentHandleIsGoodAsLongAsItsOwnersAndGivesNothingUp, of a first and of a
// further holder.
func TestALentHandleIsGoodAsLongAsItsOwnersAndGivesNothingUp(t *testing.T) {
	p := newPool(1)
	first := take(t, p)
	further, err := first.Retain()
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []handle{first, further} {
		lent := owner.Lend()
		if lent.Leave() {
			t.Error("a lent handle left a slot last, or does not know what it is")
		}
		lent.Release(ended())
		if v, err := lent.Lend().Value(); v != 0 || err != nil || !owner.Valid() {
			t.Errorf("after its release a lent handle answers %v, %v and its owner is valid %v", v, err, owner.Valid())
		}
		own, err := lent.Retain()
		if err != nil {
			t.Fatal(err)
		}
		if own.Release(ended()); own.Valid() {
			t.Error("what a lent handle retained is lent too")
		}
		expectCounts(t, p, 0, 1, 0, 0)
		owner.Release(ended())
		if _, err := lent.Value(); lent.Valid() || !errors.Is(err, weir.ErrStale) {
			t.Errorf("after its owner's release a lent handle answers %v; expected ErrStale", err)
		}
	}
	expectCounts(t, p, 0, 0, 1, 0)
}

// TestOfHandlesReleasedAtOnceOneIsTheLast lets many goroutines leave one slot at
// the same time: one of them, and only one, owes the tail.
func TestOfHandlesReleasedAtOnceOneIsTheLast(t *testing.T) {
	p := newPool(1)
	for range 500 {
		first := take(t, p)
		handles := []handle{first, first} // a copy is the same claim
		for range 3 {
			h, err := first.Retain()
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
		}
		work := &tail{}
		var last atomic.Int32
		start := make(chan struct{})
		var all sync.WaitGroup
		for _, h := range handles {
			all.Go(func() {
				<-start
				if h.Leave() {
					last.Add(1)
					h.Return(work)
				}
			})
		}
		close(start)
		all.Wait()
		if n := last.Load(); n != 1 {
			t.Fatalf("%d of %d handles were the last", n, len(handles))
		}
		if _, ok, _ := p.TryAcquire(); ok {
			t.Fatal("the slot was leased before its work was done")
		}
		work.finish()
	}
}

// TestBetweenLeaveAndReturnNobodyHoldsTheSlot is what lets the last holder
// record its tail without anybody submitting more.
func TestBetweenLeaveAndReturnNobodyHoldsTheSlot(t *testing.T) {
	p := newPool(1)
	h := take(t, p)
	if !h.Leave() {
		t.Fatal("the only handle is not the last")
	}
	if _, err := h.Value(); !errors.Is(err, weir.ErrStale) {
		t.Errorf("a handle that left answers %v; expected ErrStale", err)
	}
	if _, err := h.Retain(); !errors.Is(err, weir.ErrStale) {
		t.Errorf("retaining a handle that left answers %v; expected ErrStale", err)
	}
	expectCounts(t, p, 0, 1, 0, 0)
	if _, ok, err := p.TryAcquire(); ok || err != nil {
		t.Errorf("a slot that was left and not returned: got %v, %v; expected no slot", ok, err)
	}
	h.Return(ended())
	take(t, p).Release(ended())
}

func TestAnImpossibleTransitionPanics(t *testing.T) {
	for name, impossible := range map[string]func(p *pool){
		"a return of what is held": func(p *pool) {
			h, _, _ := p.TryAcquire()
			h.Return(ended())
		},
		"a second return": func(p *pool) {
			h, _, _ := p.TryAcquire()
			h.Release(ended())
			h.Return(ended())
		},
		"a return of somebody else's": func(p *pool) {
			h, _, _ := p.TryAcquire()
			h.Release(ended())
			other, _, _ := p.TryAcquire()
			other.Leave()
			h.Return(ended())
		},
		"a return while others hold": func(p *pool) {
			h, _, _ := p.TryAcquire()
			_, _ = h.Retain()
			h.Leave()
			h.Return(ended())
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			impossible(newPool(1))
		})
	}
}

func TestAHandleNamesItsSlot(t *testing.T) {
	p := newPool(3)
	for range 3 {
		h := take(t, p)
		if v, err := h.Value(); err != nil || v != h.Index() {
			t.Errorf("slot %d holds %d, %v", h.Index(), v, err)
		}
	}
	if i := (handle{}).Index(); i != -1 {
		t.Errorf("the zero handle is of slot %d; expected -1", i)
	}
}
