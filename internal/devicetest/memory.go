package devicetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Devices take memory for pools in pieces of up to 32 MiB, so what is to be seen
// in what they hold is larger.
const large = 96 << 20

// keepNothing has the pool give unused memory back at a synchronisation.
func keepNothing() runtime.ResourceOptions {
	return runtime.ResourceOptions{ReleaseThreshold: -1}
}

// pooled skips the test where the device has no stream-ordered pools.
func (w *world) pooled() {
	w.t.Helper()
	if !w.r.Device().Capabilities().StreamOrderedPools {
		w.t.Skipf("%s has no stream-ordered pools", w.name)
	}
}

// held is what the memory holds of the device once what is unused is given back.
func (w *world) held() int64 {
	w.t.Helper()
	w.within("Trim", w.m.Trim)
	return w.m.Stats().Held
}

// expectNoneHeld waits for frees in flight, gives back what is unused, and finds
// nothing left.
func (w *world) expectNoneHeld() {
	w.t.Helper()
	w.within("Trim", w.m.Trim) // slabs are freed on the reclamation stream
	w.sync(w.r.Reclaim())
	if held := w.held(); held != 0 {
		w.t.Errorf("%d bytes are held; expected none", held)
	}
}

// blocks takes all blocks of one slab.
func (w *world) blocks() []*buffer.Buffer {
	w.t.Helper()
	var all []*buffer.Buffer
	for range 4 { // of this size, four to a slab
		all = append(all, w.bytes(blockBytes))
	}
	return all
}

const blockBytes = 900_000 / 8 * 8

// refuseMemory has the device out of memory from now on.
func (w *world) refuseMemory() {
	w.plan.FailFrom(fault.PoolAlloc, 1, nil)
	w.plan.FailFrom(fault.DeviceAlloc, 1, nil)
}

var memoryTests = []test{
	{"a buffer has the size asked for, apart from all others", func(f *fixture) {
		w := f.memory(options{})
		s := w.lease(w.r)
		sizes := []int64{1, 8, 255, 256, 257, 1025, 100_000, 1<<20 - 1, 1 << 20, 5_000_001}
		var all []*buffer.Buffer
		for i, n := range sizes {
			b := w.bytes(n)
			if b.Bytes() != n || w.at(s, b)%256 != 0 {
				w.t.Errorf("asked for %d bytes: %d at %#x", n, b.Bytes(), w.at(s, b))
			}
			w.ok(upload(s, b, slices.Repeat([]byte{byte(i + 1)}, int(n))))
			all = append(all, b)
		}
		for i, b := range all {
			got := make([]byte, b.Bytes())
			w.ok(download(s, got, b))
			if slices.ContainsFunc(got, func(x byte) bool { return x != byte(i+1) }) {
				w.t.Errorf("the buffer of %d bytes was overwritten by another", b.Bytes())
			}
		}
	}},
	{"Free returns while the stream is busy and the memory comes back later", func(f *fixture) {
		w := f.memory(options{ResourceOptions: keepNothing()})
		w.pooled()
		s, b := w.streams(3), w.bytes(large)
		w.fill(s[0], b, 1)
		w.sync(s[0])
		var releases []func()
		for _, s := range s {
			releases = append(releases, w.stall(s))
			w.look(s, b)
		}
		w.free(b)
		if b.Live() || b.Bytes() != 0 {
			w.t.Error("the freed buffer still lives")
		}
		for i, s := range s {
			if held := w.held(); held < large {
				w.t.Errorf("with %d readers done %d bytes are held; expected %d", i, held, large)
			}
			releases[i]()
			w.sync(s)
		}
		w.expectNoneHeld()
	}},
	{"Free takes no stream of the pool", func(f *fixture) {
		w := f.memory(pool(1))
		w.pooled()
		s, b := w.lease(w.r), w.bytes(3<<20) // the only stream
		w.stall(s)
		w.fill(s, b, 1)
		w.free(b)
	}},
	{"taking memory does not depend on what is still being given back", func(f *fixture) {
		w := f.memory(options{})
		w.pooled()
		s, old := w.streams(2), w.bytes(3<<20)
		w.stall(s[0])
		w.fill(s[0], old, 1)
		w.free(old)
		b := w.bytes(3 << 20)
		w.fill(s[1], b, 2)
		w.expect("a new buffer", s[1], b, 2)
	}},
	{"memory that is freed in use keeps its contents for who uses it", func(f *fixture) {
		w := f.memory(options{})
		w.pooled()
		s := w.streams(3)
		for _, bytes := range []int64{8 * words, blockBytes, 3 << 20} {
			old, out := w.bytes(bytes), w.bytes(bytes)
			w.fill(s[0], old, 1)
			w.sync(s[0])
			release := w.stall(s[0])
			w.move(s[0], out, old)
			w.free(old)
			var next []*buffer.Buffer
			for i := range 6 { // whichever of them gets the memory
				b := w.bytes(bytes)
				w.fill(s[1+i%2], b, int64(10+i))
				next = append(next, b)
			}
			release()
			w.expect(fmt.Sprintf("what was read of %d bytes before they were freed", bytes), s[0], out, 1)
			for i, b := range next {
				w.expect("a next owner", s[0], b, int64(10+i))
				w.free(b)
			}
		}
	}},
	{"a block in use is reused at once on the stream of its last use, elsewhere after it", func(f *fixture) {
		w := f.memory(options{counted: true})
		s, out, small := w.streams(2), w.new(words), w.blocks()[0]
		w.fill(s[0], small, 1)
		w.sync(s[0])
		at := w.at(s[0], small)
		w.sync(s[0])
		release := w.stall(s[0])
		w.ok(operate(s[0], out, []*buffer.Buffer{small}, func(d driver.Stream, at []driver.Ptr) error { return d.Copy(at[0], at[1], 8*words) }))
		w.free(small)
		w.refuseMemory() // so that the block in flight is all there is
		next := w.bytes(blockBytes)
		w.plan.Clear()
		if got := w.at(s[0], next); got != at {
			w.t.Fatalf("the next owner lies at %#x; expected the freed block at %#x", got, at)
		}
		if n := w.count(fault.StreamWait, func() { w.fill(s[0], next, 2) }); n != 0 {
			w.t.Errorf("on the stream of the last use the new owner makes %d waits", n)
		}
		w.free(next)
		w.refuseMemory()
		next = w.bytes(blockBytes)
		w.plan.Clear()
		w.fill(s[1], next, 3)
		w.pending("the new owner's work on another stream", w.tail(s[1]))
		release()
		w.expect("what the last owner's work saw", s[1], out, 1)
		w.expect("what the new owner wrote", s[1], next, 3)
	}},
	{"a block in flight is passed over while there is other memory", func(f *fixture) {
		w := f.memory(options{})
		s, all := w.streams(2), w.blocks()
		at := w.at(s[0], all[0])
		w.sync(s[0])
		w.stall(s[0])
		w.fill(s[0], all[0], 1)
		w.free(all[0])
		b := w.bytes(blockBytes) // of another slab
		if w.at(s[1], b) == at {
			w.t.Error("a block in use was given away although there is other memory")
		}
		w.fill(s[1], b, 2)
		w.expect("a block that depends on nobody", s[1], b, 2)
		w.free(all[1])
		var again []driver.Ptr
		for range 5 { // three of the other slab, and what is finished
			b := w.bytes(blockBytes)
			again = append(again, w.at(s[1], b))
		}
		if slices.Contains(again, at) {
			w.t.Error("a block in use was given away although finished ones were free")
		}
	}},
	{"small blocks make no driver calls in steady state", func(f *fixture) {
		w := f.memory(options{counted: true})
		s := w.lease(w.r)
		use := func() {
			b, err := w.m.New(1000)
			w.ok(err)
			c, err := w.m.New(30_000)
			w.ok(err)
			acc := buffer.Begin(s)
			acc.Read(b)
			acc.Write(c)
			w.ok(acc.End())
			w.ok(b.Free())
			w.ok(c.Free())
		}
		use()
		for _, s := range []stream.Stream{s, w.r.Supply()} { // what it used, and the taking of the memory
			w.sync(s)
		}
		before := w.plan.Counts()
		for range 1000 {
			use()
		}
		after := w.plan.Counts()
		if n := after[fault.Any] - before[fault.Any]; n > 2*64 { // asking the completions of the slabs' memory, once a block
			w.t.Errorf("%d driver calls in 1000 rounds", n)
		}
		for _, call := range []fault.Call{fault.PoolAlloc, fault.DeviceAlloc, fault.PoolFree, fault.DeviceFree} {
			if n := after[call] - before[call]; n != 0 {
				w.t.Errorf("%d calls of %s", n, call)
			}
		}
	}},
	{"statistics count what buffers asked for and what is kept", func(f *fixture) {
		w := f.memory(options{ResourceOptions: runtime.ResourceOptions{MemoryLimit: 512 << 20}})
		expect := func(what string, buffers, used, high int64) {
			w.t.Helper()
			s := w.m.Stats()
			if s.Buffers != buffers || s.Used != used || s.HighUsed != high || s.Limit != 512<<20 || s.Held < s.Used+s.Cached {
				w.t.Errorf("%s: got %+v; expected %d buffers, %d used, %d at most", what, s, buffers, used, high)
			}
		}
		expect("at first", 0, 0, 0)
		a, b := w.bytes(100), w.bytes(large)
		expect("two buffers", 2, large+100, large+100)
		w.free(b)
		expect("the large one freed", 1, 100, large+100)
		w.m.ResetPeak()
		expect("the peak reset", 1, 100, 100)
		p := w.pinned(5000)
		expect("page-locked memory is not the device's", 2, 100, 100)
		w.free(a, p)
		expect("all freed", 0, 0, 100)
		w.expectNoneHeld()
		if s := w.m.Stats(); s.Cached != 0 {
			w.t.Errorf("after Trim %d bytes are cached", s.Cached)
		}
	}},
	{"the release threshold says how much unused memory is kept", func(f *fixture) {
		for _, threshold := range []int64{-1, 1 << 30} {
			w := f.memory(options{ResourceOptions: runtime.ResourceOptions{ReleaseThreshold: threshold}})
			w.pooled()
			w.free(w.bytes(large))
			// A synchronisation in the driver is where pools trim themselves.
			w.within("Synchronize", func() error { return must(w.r.Reclaim().Submit()).Synchronize() })
			held := w.m.Stats().Held
			if threshold < 0 && held != 0 || threshold > 0 && held < large {
				w.t.Errorf("with a threshold of %d, %d bytes are held of %d that were freed", threshold, held, large)
			}
			w.expectNoneHeld()
			w.within("Close", w.rt.Close)
		}
	}},
	{"the collector frees what is unreachable, without waiting for the device", func(f *fixture) {
		w := f.memory(options{ResourceOptions: keepNothing()})
		w.pooled()
		s := w.lease(w.r)
		release := w.stall(s)
		func() {
			for _, bytes := range []int64{64, large, 3 << 20} {
				w.ok(fill(s, must(w.m.New(bytes)), 1))
			}
		}()
		w.within("Collect", func() error { runtime.Collect(); return nil })
		if live := w.m.Live(); len(live) != 0 {
			w.t.Errorf("%v live on", live)
		}
		if held := w.held(); held < large {
			w.t.Errorf("memory in use was given back: %d bytes are held", held)
		}
		release()
		w.sync(s)
		w.expectNoneHeld()
	}},
	{"many goroutines never get one block at once", func(f *fixture) {
		w := f.memory(options{})
		var tasks []*task
		for g := range 4 {
			tasks = append(tasks, w.start("a goroutine", func() error {
				type owned struct {
					b    *buffer.Buffer
					mark int64
				}
				var live []owned
				for i := range 60 {
					b, err := w.m.New([]int64{64, 904, 70_000, 600_000}[i%4])
					if err != nil {
						return err
					}
					live = append(live, owned{b, int64(1000*g + i)})
					err = w.once(func(s stream.Stream) error { return fill(s, b, live[len(live)-1].mark) })
					if err == nil && len(live) > 8 {
						x := live[i%8]
						live = slices.Delete(live, i%8, i%8+1)
						if err = w.once(func(s stream.Stream) error { return holds(s, x.b, x.mark) }); err == nil {
							err = x.b.Free()
						}
					}
					if err == nil && i%20 == 0 {
						err = w.m.Trim()
					}
					if err != nil {
						return err
					}
				}
				for _, x := range live {
					if err := x.b.Free(); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		w.all(tasks)
		if s := w.m.Stats(); s.Buffers != 0 || s.Used != 0 {
			w.t.Errorf("at last %+v", s)
		}
	}},
}

// once makes one operation on whichever stream is idle.
func (w *world) once(do func(s stream.Stream) error) error {
	s, err := w.r.Streams().Acquire(context.Background())
	if err != nil {
		return err
	}
	err = do(s)
	if rerr := s.Release(); err == nil {
		err = rerr
	}
	return err
}
