package devicetest

import (
	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
)

// plainTests are of memory on devices that have no stream-ordered pools, or do
// as if. A plain free waits for the device, so none is made under a stall but
// where that is what is shown.
var plainTests = []test{
	{"without pools Free waits for the users", func(f *fixture) {
		w := f.memory(options{counted: true, plain: true})
		s, b := w.lease(w.r), w.bytes(3<<20)
		w.fill(s, b, 1)
		w.sync(s)
		release := w.stall(s)
		w.fill(s, b, 2)
		c := w.tail(s)
		waited := false
		w.plan.Delay(fault.EventSynchronize, func() { // the work goes on when Free waits
			waited = true
			release()
		})
		w.plan.Delay(fault.DeviceFree, func() {
			if done, err := c.Done(); !done || err != nil {
				w.t.Errorf("memory was freed with its user done: %v, %v", done, err)
			}
		})
		w.free(b)
		if n := w.plan.Counts(); !waited || n[fault.DeviceAlloc] != 1 || n[fault.DeviceFree] != 1 || n[fault.DeviceNewPool] != 0 {
			w.t.Errorf("Free waited: %v; %d plain allocations, %d frees, %d pools; expected 1, 1, 0", waited,
				n[fault.DeviceAlloc], n[fault.DeviceFree], n[fault.DeviceNewPool])
		}
	}},
	{"without pools small blocks are cached all the same", func(f *fixture) {
		w := f.memory(options{counted: true, plain: true})
		s := w.lease(w.r)
		w.free(w.bytes(5000))
		release := w.stall(s)
		for range 40 {
			b := w.bytes(5000)
			w.look(s, b)
			w.free(b) // a cached block waits for nothing
		}
		if n := w.plan.Counts()[fault.DeviceAlloc]; n != 1 {
			w.t.Errorf("%d allocations; expected one slab", n)
		}
		release()
	}},
	{"without pools memory is counted, limited and given back", func(f *fixture) {
		const slab = 2 << 20
		w := f.memory(options{counted: true, plain: true, ResourceOptions: runtime.ResourceOptions{MemoryLimit: 8 << 20}})
		a, b := w.bytes(100), w.bytes(5<<20)
		if s := w.m.Stats(); s.Held != 5<<20+slab || s.Used != 5<<20+100 {
			w.t.Errorf("got %+v", s)
		}
		err := second(w.m.New(2 << 20))
		w.refused(err, weir.ErrOutOfMemory, "buffer.New on %s: asked for %d bytes; %d held, of which %d in use; limit %d: "+
			"buffer.New on %s: %d bytes more than the %d held exceed the limit of %d",
			w.name, 2<<20, 5<<20+slab, 5<<20+100, 8<<20, w.name, 2<<20, 5<<20+slab, 8<<20)
		w.free(a)
		c := w.bytes(2 << 20) // the cached slab makes room
		if s := w.m.Stats(); s.Held != 7<<20 {
			w.t.Errorf("%d bytes are held; expected 7 MiB", s.Held)
		}
		w.plan.FailNth(fault.DeviceAlloc, 1, nil)
		d := w.bytes(1 << 20) // the driver's refusal is tried again
		w.free(b, c, d)
		if s := w.m.Stats(); s.Held != 0 {
			w.t.Errorf("%d bytes are held; expected none", s.Held)
		}
		w.within("Close", w.rt.Close)
		w.expectNothingHeld()
	}},
	{"without pools the ledger orders all the same", func(f *fixture) {
		w := f.memory(options{plain: true})
		s, b, one := w.streams(2), w.bytes(2<<20), w.bytes(2<<20)
		w.fill(s[0], b, 1)
		w.fill(s[0], one, 1)
		w.sync(s[0])
		release := w.stall(s[0])
		w.step(s[0], b, one, 2)
		w.step(s[1], b, one, 3)
		w.pending("the second step", w.tail(s[1]))
		release()
		w.expect("both steps", s[1], b, 10)
	}},
}
