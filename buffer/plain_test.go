package buffer_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
)

// These devices have no stream-ordered pools.

func TestWithoutPoolsFreeWaitsForTheUsers(t *testing.T) {
	w := newWorld(t, options{plain: true})
	s := w.lease(w.r)
	b := w.new(3 << 20)
	release := w.stall(s)
	done := w.write(s, b, nil)
	w.plan.Delay(fault.EventSynchronize, release) // the work goes on when Free waits
	w.plan.Delay(fault.DeviceFree, func() {
		if !happened(done) {
			t.Error("memory in use was freed")
		}
	})
	soon(t, func() { w.free(b) })
	c := w.plan.Counts()
	if c[fault.DeviceAlloc] != 1 || c[fault.DeviceFree] != 1 || c[fault.DeviceNewPool] != 0 {
		t.Errorf("got %d plain allocations, %d frees, %d pools; expected 1, 1, 0", c[fault.DeviceAlloc], c[fault.DeviceFree], c[fault.DeviceNewPool])
	}
}

func TestWithoutPoolsSmallBlocksAreCachedAllTheSame(t *testing.T) {
	w := newWorld(t, options{plain: true})
	s := w.lease(w.r)
	w.stall(s)
	soon(t, func() {
		for range 100 {
			b := w.new(5000)
			w.write(s, b, nil)
			w.free(b) // a cached block waits for nothing
		}
	})
	if n := w.plan.Counts()[fault.DeviceAlloc]; n != 1 {
		t.Errorf("%d allocations; expected one slab", n)
	}
}

func TestWithoutPoolsMemoryIsCountedLimitedAndGivenBack(t *testing.T) {
	w := newWorld(t, options{plain: true, ResourceOptions: runtime.ResourceOptions{MemoryLimit: 8 << 20}})
	a, b := w.new(100), w.new(5<<20)
	if s := w.m.Stats(); s.Held != 5<<20+buffer.SlabBytes || s.Used != 5<<20+100 {
		t.Errorf("got %+v", s)
	}
	if _, err := w.m.New(2 << 20); !errors.Is(err, weir.ErrOutOfMemory) {
		t.Errorf("beyond the limit: %v; expected ErrOutOfMemory", err)
	}
	w.free(a)
	c := w.new(2 << 20) // the cached slab makes room
	if s := w.m.Stats(); s.Held != 7<<20 {
		t.Errorf("%d bytes are held; expected 7 MiB", s.Held)
	}
	w.plan.FailNth(fault.DeviceAlloc, 1, nil)
	d := w.new(1 << 20) // the driver's refusal is tried again
	w.free(b, c, d)
	if s := w.m.Stats(); s.Held != 0 {
		t.Errorf("%d bytes are held; expected none", s.Held)
	}
	if free, total := must2(w.inner.Memory()); free != total {
		t.Errorf("%d bytes are not back", total-free)
	}
}
