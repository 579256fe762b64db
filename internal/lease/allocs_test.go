package lease_test

import (
	"context"
	goruntime "runtime"
	"testing"
)

func TestLeasingAnIdleSlotAllocatesNothing(t *testing.T) {
	p := newPool(2)
	work := ended()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if n := testing.AllocsPerRun(200, func() {
		h, err := p.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		more, err := h.Retain()
		if err != nil {
			t.Fatal(err)
		}
		more.Release(work)
		h.Release(work)
	}); n != 0 {
		t.Errorf("%v allocations; expected none", n)
	}
}

// TestParkingAllocatesNothingOnceWarm hands one slot to and fro between a
// goroutine that parks for it and this one.
func TestParkingAllocatesNothingOnceWarm(t *testing.T) {
	p := newPool(1)
	work := ended()
	wanted, got := make(chan struct{}), make(chan handle)
	go func() {
		defer close(got)
		for range wanted {
			h, err := p.Acquire(context.Background())
			if err != nil {
				t.Error(err)
			}
			got <- h
		}
	}()
	if n := testing.AllocsPerRun(200, func() {
		h := take(t, p)
		wanted <- struct{}{}
		for {
			if _, _, _, waiting := p.Counts(); waiting == 1 {
				break
			}
			goruntime.Gosched()
		}
		h.Release(work)
		(<-got).Release(work)
	}); n != 0 {
		t.Errorf("%v allocations for each waiter; expected none", n)
	}
	close(wanted)
	<-got
}
