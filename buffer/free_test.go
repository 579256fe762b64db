package buffer_test

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/runtime"
)

func TestFreeReturnsWhileTheStreamIsBusyAndTheMemoryComesBackLater(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(3)
	b := w.new(5 << 20)
	var release [3]func()
	for i := range s {
		release[i] = w.stall(s[i])
		w.read(s[i], b, nil)
	}
	soon(t, func() { w.free(b) })
	if b.Live() || b.Bytes() != 0 {
		t.Error("the freed buffer is still live")
	}
	held := func() int64 { w.ok(w.m.Trim()); return w.m.Stats().Held }
	for i := range s {
		if got := held(); got != 5<<20 {
			t.Errorf("with %d readers done %d bytes are held; expected all", i, got)
		}
		release[i]()
		w.wait(s[i])
	}
	w.wait(w.r.Reclaim())
	if got := held(); got != 0 {
		t.Errorf("with all readers done %d bytes are held", got)
	}
}

func TestFreeTakesNoOperationStream(t *testing.T) {
	w := newWorld(t, options{ResourceOptions: runtime.ResourceOptions{Streams: 1}})
	s := w.lease(w.r) // the only one
	w.stall(s)
	b := w.new(3 << 20)
	w.write(s, b, nil)
	soon(t, func() { w.free(b) })
}

func TestASecondFreeDoesNothing(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(64)
	w.free(b)
	next := w.new(64)
	defer w.free(next)
	if n := w.count(fault.Any, func() { w.free(b, b) }); n != 0 || !next.Live() {
		t.Errorf("it made %d driver calls; the next buffer lives: %t", n, next.Live())
	}
	if got := w.m.Stats().Buffers; got != 1 {
		t.Errorf("%d buffers are counted; expected 1", got)
	}
}

func TestFreesAtOnceGiveTheBlockBackOnce(t *testing.T) {
	w := newWorld(t, options{})
	for _, bytes := range []int64{64, 2 << 20} {
		for range 50 {
			b := w.new(bytes)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := b.Free(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		if s := w.m.Stats(); s.Buffers != 0 || s.Used != 0 {
			t.Errorf("%d bytes: at last %+v", bytes, s)
		}
	}
}

// A reused block's ledger is that of the new owner: an old handle sees nothing
// of it.
func TestAFreedHandleNeverTouchesTheNextOwner(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	old := w.new(3 << 20)
	w.free(old)
	next := w.new(3 << 20)
	defer w.free(next)
	acc := buffer.Begin(s)
	acc.Write(old)
	if !errors.Is(acc.End(), weir.ErrClosed) {
		t.Error("an access through the freed handle was opened")
	}
	w.free(old)
	if _, err := old.Partition(buffer.Range{Bytes: 1}); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("partitioning it answers %v", err)
	}
	if !next.Live() {
		t.Error("the next owner was freed")
	}
}

func TestTheCollectorFreesWhatIsUnreachable(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	release := w.stall(s)
	func() {
		for _, bytes := range []int64{64, 3 << 20, 3 << 20} {
			w.write(s, w.new(bytes), nil)
		}
		must(w.new(100).Partition(buffer.Range{Bytes: 10}, buffer.Range{Offset: 50, Bytes: 10}))
	}()
	soon(t, runtime.Collect) // it does not wait for the stalled stream
	if live := w.m.Live(); len(live) != 0 {
		t.Errorf("%v live on", live)
	}
	if held := w.m.Stats().Held; held < 6<<20 {
		t.Errorf("memory in use was given back: %d bytes are held", held)
	}
	release()
}

func TestLiveWaitsForWhatTheCollectorFoundToBeFreed(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	w.write(s, must(w.m.NewPinned(64)), nil)
	gate := make(chan struct{})
	w.plan.Delay(fault.DeviceFreeHost, func() { <-gate })
	runtime.Collect()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if live := w.m.Live(); len(live) != 0 || !happened(gate) {
			t.Errorf("it answers %v before the reclaimer was done", live)
		}
	}()
	for range 100 {
		goruntime.Gosched()
	}
	close(gate)
	arrives(t, done)
}

func TestCloseWaitsForFreesInFlight(t *testing.T) {
	for _, bytes := range []int64{64, 3 << 20} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			w := newWorld(t, options{})
			s := w.lease(w.r)
			b := w.new(bytes)
			gate, worked := make(chan struct{}), false
			acc := buffer.Begin(s)
			acc.Write(b)
			w.ok(s.Call(func() { <-gate; worked = true }))
			w.ok(acc.End())
			w.free(b)
			w.ok(s.Release())
			w.plan.Delay(fault.StreamSynchronize, sync.OnceFunc(func() { close(gate) })) // it goes on when Close waits
			w.plan.Delay(fault.PoolDestroy, func() {
				if !worked {
					t.Error("the pool was destroyed while its memory was in use")
				}
			})
			soon(t, func() { w.ok(w.rt.Close()) })
			if free, total := must2(w.inner.Memory()); free != total {
				t.Errorf("%d bytes are not back", total-free)
			}
		})
	}
}

// Memory whose users could not be waited for in stream order is freed only once
// the host has waited for them.
func TestWhenTheReclaimingWaitFailsTheHostWaits(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	b := w.new(3 << 20)
	gate, worked := make(chan struct{}), false
	acc := buffer.Begin(s)
	acc.Write(b)
	w.ok(s.Call(func() { <-gate; worked = true }))
	w.ok(acc.End())
	w.plan.FailNth(fault.StreamWait, 1, nil)
	w.plan.Delay(fault.EventSynchronize, sync.OnceFunc(func() { close(gate) })) // it goes on when Free waits
	w.plan.Delay(fault.PoolFree, func() {
		if !worked {
			t.Error("memory in use was freed")
		}
	})
	var err error
	soon(t, func() { err = b.Free() })
	if !errors.Is(err, fault.ErrInjected) || !worked {
		t.Errorf("Free answers %v, its users done: %t; expected the failed wait, true", err, worked)
	}
	w.wait(w.r.Reclaim())
	w.ok(w.m.Trim())
	if s := w.m.Stats(); s.Held != 0 || s.Buffers != 0 {
		t.Errorf("it left %+v", s)
	}
}

func TestMemoryWhoseUsersCannotBeWaitedForIsKept(t *testing.T) {
	w := newWorld(t, options{mayFail: true})
	s := w.lease(w.r)
	b := w.new(3 << 20)
	release := w.stall(s)
	w.write(s, b, nil)
	w.plan.FailNth(fault.StreamWait, 1, nil)
	w.plan.FailNth(fault.EventSynchronize, 1, nil)
	if n := w.count(fault.PoolFree, func() {
		if err := b.Free(); !errors.Is(err, fault.ErrInjected) {
			t.Errorf("Free answers %v; expected the failures", err)
		}
	}); n != 0 {
		t.Error("memory in use was freed")
	}
	release()
	if err := errors.Join(s.Release(), w.rt.Close()); err == nil {
		t.Error("Close does not say that memory was kept")
	}
}

func TestAFailedFreeIsAnsweredByWhoeverFreesOrByClose(t *testing.T) {
	w := newWorld(t, options{mayFail: true})
	mine, its := errors.New("mine"), errors.New("the collector's")
	w.plan.FailNth(fault.PoolFree, 1, mine)
	if err := w.new(3 << 20).Free(); !errors.Is(err, mine) {
		t.Errorf("Free answers %v", err)
	}
	w.plan.FailNth(fault.PoolFree, 1, its)
	w.new(3 << 20)
	runtime.Collect()
	if err := w.rt.Close(); !errors.Is(err, its) || errors.Is(err, mine) {
		t.Errorf("Close answers %v; expected what nobody heard of, and that alone", err)
	}
}

func TestABufferThatOutlivesTheRuntimeIsHarmless(t *testing.T) {
	for _, bytes := range []int64{64, 3 << 20} {
		family := host.New(host.Options{HandOver: true})
		rt := must(runtime.StartFamilies([]driver.Family{family}, runtime.Options{}))
		r := must(runtime.Enrolled())[0]
		m := must(buffer.Of(r))
		b := must(m.New(bytes))
		if err := rt.Close(); !errors.Is(err, weir.ErrLeak) {
			t.Errorf("Close answers %v; expected the leak", err)
		}
		hostmem.Bytes(uintptr(buffer.Address(b)), bytes)[bytes-1] = 1 // its memory is still mapped
		if err := b.HostWrite(t.Context(), func([]byte) error { return nil }); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("%d bytes: writing answers %v; expected ErrClosed", bytes, err)
		}
		if err := b.Free(); err != nil && !errors.Is(err, weir.ErrClosed) {
			t.Errorf("%d bytes: Free answers %v; expected nil or ErrClosed", bytes, err)
		}
		if b.Live() {
			t.Error("it still lives")
		}
	}
}

func TestABufferFreedWhileTheRuntimeClosesLeavesNothing(t *testing.T) {
	w := newWorld(t, options{mayFail: true})
	b := w.new(64)
	free := sync.OnceFunc(func() { w.free(b) })
	w.plan.Delay(fault.StreamSynchronize, free) // after the memory was drained, before it is destroyed
	if err := w.rt.Close(); !errors.Is(err, weir.ErrLeak) {
		t.Errorf("Close answers %v; expected the leak it saw", err)
	}
	if free, total := must2(w.inner.Memory()); free != total {
		t.Errorf("%d bytes are not back", total-free)
	}
}
