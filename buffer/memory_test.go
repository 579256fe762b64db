package buffer_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
)

func TestADeviceHasOneMemory(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(10)
	defer w.free(b)
	if must(buffer.Of(w.r)) != w.m || w.m == w.other || b.Memory() != w.m || w.m.Resources() != w.r {
		t.Error("the memories of one device differ, or those of two are one")
	}
}

func TestNewRefusesSizesThatAreNotPositive(t *testing.T) {
	w := newWorld(t, options{})
	for _, bytes := range []int64{0, -1, math.MinInt64} {
		b, err := w.m.New(bytes)
		refuses(t, err, weir.ErrArgument, "buffer.New: %d bytes; expected a positive size", bytes)
		if b != nil {
			t.Error("it answers a buffer too")
		}
		_, err = w.m.NewPinned(bytes)
		refuses(t, err, weir.ErrArgument, "buffer.NewPinned: %d bytes; expected a positive size", bytes)
	}
}

func TestABufferHasTheSizeAskedForAndABlockThatHoldsIt(t *testing.T) {
	w := newWorld(t, options{})
	for _, bytes := range []int64{1, 255, 256, 257, 1025, 100_000, buffer.SmallLimit - 1, buffer.SmallLimit, 5_000_001} {
		b := w.new(bytes)
		if b.Bytes() != bytes || !b.Live() || buffer.BlockBytes(b) < bytes || buffer.Address(b)%buffer.SmallestBlock != 0 {
			t.Errorf("asked for %d bytes: %d in a block of %d at %#x", bytes, b.Bytes(), buffer.BlockBytes(b), buffer.Address(b))
		}
		w.free(b)
		if b.Bytes() != 0 || b.Live() {
			t.Errorf("after Free it has %d bytes", b.Bytes())
		}
	}
}

func TestInitMakesTheFirstFieldOfAnObjectABuffer(t *testing.T) {
	w := newWorld(t, options{})
	type object struct {
		own  buffer.Buffer
		name string
	}
	x := &object{name: "x"}
	w.ok(w.m.Init(&x.own, 40))
	if x.own.Bytes() != 40 {
		t.Errorf("it has %d bytes", x.own.Bytes())
	}
	x = nil
	runtime.Collect()
	if live := w.m.Live(); len(live) != 0 {
		t.Errorf("the unreachable object's buffer lives on: %v", live)
	}
}

func TestSmallBlocksMakeNoDriverCallsInSteadyState(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	use := func() {
		b, c := w.new(1000), w.new(30_000)
		acc := buffer.Begin(s)
		acc.Read(b)
		acc.Write(c)
		w.ok(acc.End())
		w.free(b, c)
	}
	use()
	w.wait(s)
	if n := w.count(fault.Any, func() {
		for range 1000 {
			use()
		}
	}); n > 2*64 { // asking the completions of the slabs' memory, once a block
		t.Errorf("%d driver calls in 1000 rounds", n)
	}
	for _, call := range []fault.Call{fault.PoolAlloc, fault.DeviceAlloc} {
		if n := w.plan.Counts()[call]; n > 2 {
			t.Errorf("%d calls of %s; expected one a class", n, call)
		}
	}
}

func TestAFreshBlockDependsOnNobodyAndAFreedOneOnItsUsers(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(2)
	old := w.new(64)
	at := buffer.Address(old)
	w.stall(s[0])
	w.write(s[0], old, nil)
	w.free(old)
	b := w.new(64)
	defer w.free(b)
	if buffer.Address(b) == at {
		t.Error("a block in use was given away although others were free")
	}
	arrives(t, w.write(s[1], b, nil))
}

func TestABlockInFlightIsPassedOverWhileThereIsMemoryForASlab(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(2)
	all := fill(w)
	w.stall(s[0])
	w.write(s[0], all[0], nil)
	w.free(all[0])
	all[0] = w.new(900_000)
	defer func() { w.free(all...) }()
	arrives(t, w.write(s[1], all[0], nil)) // it depends on nobody
	w.free(all[1])
	at := buffer.Address(all[2])
	w.free(all[2]) // finished ones are free at once
	var again []*buffer.Buffer
	for range 5 { // three of the new slab, then what was freed
		again = append(again, w.new(900_000))
	}
	if n := w.m.Stats().Held; n > 8<<20 || !slices.ContainsFunc(again, func(b *buffer.Buffer) bool { return buffer.Address(b) == at }) {
		t.Errorf("%d bytes are held, and a finished block was not reused", n)
	}
	all[1], all[2] = again[0], again[1]
	all = append(all, again[2:]...)
}

// fill takes all blocks of one slab.
func fill(w *world) []*buffer.Buffer {
	const bytes = 900_000 // four to a slab
	var all []*buffer.Buffer
	for range 4 {
		all = append(all, w.new(bytes))
	}
	w.wait(w.r.Reclaim())
	return all
}

func oneSlab() options {
	return options{ResourceOptions: runtime.ResourceOptions{MemoryLimit: 4 << 20}}
}

func TestABlockInUseIsReusedAtOnceOnTheStreamOfItsLastUse(t *testing.T) {
	w := newWorld(t, oneSlab())
	s := w.streams(2)
	all := fill(w)
	at := buffer.Address(all[0])
	release := w.stall(s[0])
	old := w.write(s[0], all[0], nil)
	w.free(all[0])
	b := w.new(900_000) // waits for nothing
	all[0] = b
	defer func() { w.free(all...) }()
	if buffer.Address(b) != at {
		t.Errorf("the block is at %#x; expected the freed one at %#x", buffer.Address(b), at)
	}
	if n := w.count(fault.StreamWait, func() { w.write(s[0], b, nil) }); n != 0 {
		t.Errorf("on the stream of the last use it makes %d waits", n)
	}
	check := w.write(s[1], b, func(buffer.Ptr) {
		if !happened(old) {
			t.Error("the new owner's work came before the old owner's was done")
		}
	})
	if happened(check) {
		t.Error("the new owner's work ran while the old owner's was stalled")
	}
	release()
	arrives(t, check)
}

func TestOnceManyBlocksAreInFlightOneOfThemIsTaken(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	const bytes = 512 << 10 // four to a slab
	var all []*buffer.Buffer
	for range buffer.InFlight + 4 {
		all = append(all, w.new(bytes))
	}
	w.stall(s)
	free := func(all []*buffer.Buffer) {
		for _, b := range all {
			w.write(s, b, nil)
			w.free(b)
		}
	}
	free(all[:buffer.InFlight])
	var b [2]*buffer.Buffer
	if n := w.count(fault.PoolAlloc, func() { b[0] = w.new(bytes) }); n != 1 {
		t.Errorf("with %d in flight there were %d allocations; expected a new slab", buffer.InFlight, n)
	}
	rest := []*buffer.Buffer{w.new(bytes), w.new(bytes), w.new(bytes)} // of that slab
	free(all[buffer.InFlight:])
	if n := w.count(fault.PoolAlloc, func() { b[1] = w.new(bytes) }); n != 0 {
		t.Errorf("with more in flight there were %d allocations; expected none", n)
	}
	w.free(b[0], b[1])
	w.free(rest...)
}

// The reclamation stream may be kept back by an unfinished free. Small blocks
// are then taken from the slab that is there; nobody takes slab after slab.
func TestAStalledReclamationTakesNoMoreSlabsThanAreNeeded(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	large := w.new(3 << 20)
	w.stall(s)
	w.write(s, large, nil)
	w.free(large)
	before := w.m.Stats().Held
	var all []*buffer.Buffer
	soon(t, func() {
		for range 5 {
			all = append(all, must(w.m.New(900_000)))
		}
	})
	if got, most := w.m.Stats().Held-before, int64(8<<20); got > most {
		t.Errorf("5 blocks of 900000 bytes took %d bytes; expected two slabs, at most %d", got, most)
	}
	w.free(all...)
}

func TestStatsCountWhatBuffersAskedForAndWhatIsKept(t *testing.T) {
	w := newWorld(t, options{ResourceOptions: runtime.ResourceOptions{MemoryLimit: 100 << 20}})
	expect := func(what string, buffers, used, high int64) {
		t.Helper()
		s := w.m.Stats()
		if s.Buffers != buffers || s.Used != used || s.HighUsed != high || s.Limit != 100<<20 {
			t.Errorf("%s: got %+v; expected %d buffers, %d used, %d at most", what, s, buffers, used, high)
		}
		if s.Held < s.Used+s.Cached {
			t.Errorf("%s: got %+v; held is less than used and cached together", what, s)
		}
		free, total := must2(w.inner.Memory())
		if total-free != s.Held {
			t.Errorf("%s: the device has given %d bytes and %d are counted", what, total-free, s.Held)
		}
	}
	expect("at first", 0, 0, 0)
	a, b := w.new(100), w.new(3<<20)
	expect("two buffers", 2, 3<<20+100, 3<<20+100)
	w.free(b)
	expect("the large one freed", 1, 100, 3<<20+100)
	w.m.ResetPeak()
	expect("the peak reset", 1, 100, 100)
	p := must(w.m.NewPinned(5000))
	expect("page-locked memory is not the device's", 2, 100, 100)
	w.free(a, p)
	expect("all freed", 0, 0, 100)
	if s := w.m.Stats(); s.Cached != buffer.SlabBytes {
		t.Errorf("%d bytes are cached; expected the slab's %d", s.Cached, buffer.SlabBytes)
	}
	w.wait(w.r.Reclaim())
	w.ok(w.m.Trim())
	if s := w.m.Stats(); s.Cached != 0 || s.Held != 0 {
		t.Errorf("after Trim %d bytes are cached and %d held", s.Cached, s.Held)
	}
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}

func TestTrimKeepsASlabOfWhichABlockLives(t *testing.T) {
	w := newWorld(t, options{})
	a, b := w.new(5000), w.new(5000)
	w.free(b)
	w.ok(w.m.Trim())
	if s := w.m.Stats(); s.Held == 0 || s.Cached == 0 {
		t.Errorf("a live buffer's slab went: %+v", s)
	}
	c := w.new(5000)
	w.free(a, c)
	w.ok(w.m.Trim())
	w.wait(w.r.Reclaim())
	w.ok(w.m.Trim())
	if s := w.m.Stats(); s.Held != 0 {
		t.Errorf("%d bytes are held after all was freed", s.Held)
	}
}

func TestTheReleaseThresholdSaysHowMuchUnusedMemoryIsKept(t *testing.T) {
	for _, c := range []struct {
		name            string
		threshold, held int64
	}{
		{"none", -1, 0},
		{"an eighth of the device by default", 0, 9 << 20},
		{"as asked", 7 << 20, 6 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, options{ResourceOptions: runtime.ResourceOptions{ReleaseThreshold: c.threshold}})
			w.free(w.new(3<<20), w.new(3<<20), w.new(3<<20))
			w.ok(must(w.r.Reclaim().Submit()).Synchronize())
			if got := w.m.Stats().Held; got != c.held {
				t.Errorf("%d bytes are held; expected %d", got, c.held)
			}
			w.ok(w.m.Trim())
			if got := w.m.Stats().Held; got != 0 {
				t.Errorf("after Trim %d bytes are held", got)
			}
		})
	}
}

func TestBuffersKnowTheirStackInDebugMode(t *testing.T) {
	w := newWorld(t, options{ResourceOptions: runtime.ResourceOptions{Debug: true}})
	b := w.new(10)
	parts := must(w.new(20).Partition(buffer.Range{Bytes: 10}))
	defer w.free(b, parts[0])
	for _, l := range w.m.Live() {
		if !strings.Contains(l.Stack, t.Name()) {
			t.Errorf("%v was made at\n%s\nexpected a stack through this test", l, l.Stack)
		}
	}
}
