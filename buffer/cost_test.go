package buffer_test

import (
	goruntime "runtime"
	"testing"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
)

// rounds is n, fewer under the race detector, which slows them tenfold.
func rounds(n int) int {
	if underRace {
		return n / 10
	}
	return n
}

// heap is the live Go heap.
func heap() int64 {
	goruntime.GC()
	goruntime.GC()
	var s goruntime.MemStats
	goruntime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// flat checks that do, run many times, leaves the heap as it was.
func flat(t *testing.T, do func()) {
	t.Helper()
	before := heap()
	do()
	if grown := heap() - before; grown > 256<<10 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

func TestAMillionReadsKeepTheLedgerBoundedAndTheHeapFlat(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(4)
	b := w.new(64)
	defer w.free(b)
	w.write(s[0], b, nil)
	longest := 0
	read := func(n int) {
		for i := range n {
			acc := buffer.Begin(s[i%4])
			acc.Read(b)
			if i%100 == 0 { // something to be done later than the host goes on
				w.ok(s[i%4].Call(func() {}))
			} else {
				must(s[i%4].Submit())
			}
			w.ok(acc.End())
			if i%1000 == 0 {
				longest = max(longest, buffer.LedgerLength(b))
				w.ok(s[i/1000%4].Synchronize(t.Context())) // so that the device is never far behind
			}
		}
		for _, s := range s {
			w.ok(s.Synchronize(t.Context()))
		}
	}
	read(rounds(100_000)) // streams keep room for what was once queued
	flat(t, func() { read(rounds(1_000_000)) })
	if longest > len(s)+1 { // a reader a stream, and the writer
		t.Errorf("the ledger grew to %d completions; expected at most one a stream and the writer", longest)
	}
}

func TestAllocatingAndFreeingForeverHoldsNoMoreThanAtFirst(t *testing.T) {
	w := newWorld(t, options{inline: true})
	s := w.lease(w.r)
	use := func(n int) {
		for i := range n {
			b := must(w.m.New([]int64{100, 5000, 70_000}[i%3]))
			acc := buffer.Begin(s)
			p := acc.Write(b)
			w.ok(must(s.Submit()).Zero(p, 100))
			w.ok(acc.End())
			w.free(b)
		}
	}
	use(10_000)
	held := w.m.Stats().Held
	flat(t, func() { use(rounds(200_000)) })
	if got := w.m.Stats(); got.Held != held || got.Buffers != 0 || got.Used != 0 {
		t.Errorf("at last %+v; at first %d bytes were held", got, held)
	}
}

func TestAnAccessAllocatesNothing(t *testing.T) {
	w := newWorld(t, options{inline: true})
	s := w.streams(2)
	x, y, z := w.new(64), w.new(64), w.new(64)
	defer w.free(x, y, z)
	i := 0
	scope := func() {
		acc := buffer.Begin(s[i&1]) // waits for the other stream's work
		i++
		acc.Read(x)
		acc.Read(y)
		acc.Write(z)
		must(s[i&1].Submit())
		if err := acc.End(); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		scope()
	}
	if n := testing.AllocsPerRun(2000, scope); n > 0 {
		t.Errorf("a scope of three operands makes %v allocations; expected none", n)
	}
}

func TestASmallBufferIsOneAllocation(t *testing.T) {
	w := newWorld(t, options{inline: true})
	cycle := func() {
		b, err := w.m.New(1000)
		if err == nil {
			err = b.Free()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	if n := testing.AllocsPerRun(2000, cycle); n > 1 {
		t.Errorf("New and Free make %v allocations; expected the Buffer alone", n)
	}
}

// quiet is a world for benchmarks: work runs where it is submitted and nothing
// is counted, so that Weir's own cost is what is measured.
func quiet(b *testing.B) *world { return newWorld(b, options{inline: true, bare: true}) }

func BenchmarkAccessOfThreeOperands(b *testing.B) {
	w := quiet(b)
	s := w.lease(w.r)
	x, y, z := w.new(64), w.new(64), w.new(64)
	defer w.free(x, y, z)
	b.ReportAllocs()
	for b.Loop() {
		acc := buffer.Begin(s)
		acc.Read(x)
		acc.Read(y)
		acc.Write(z)
		must(s.Submit())
		w.ok(acc.End())
	}
}

// Independent buffers share no lock, so that goroutines do not slow each other
// down: compare -cpu 1 with more.
func BenchmarkAccessesOfIndependentBuffersInParallel(b *testing.B) {
	w := quiet(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		s, err := w.r.Streams().Acquire(b.Context())
		if err != nil {
			b.Error(err)
			return
		}
		defer s.Release()
		x, y := must(w.m.New(64)), must(w.m.New(64))
		for pb.Next() {
			acc := buffer.Begin(s)
			acc.Read(x)
			acc.Write(y)
			must(s.Submit())
			if err := acc.End(); err != nil {
				b.Error(err)
			}
		}
		if err := x.Free(); err != nil {
			b.Error(err)
		}
		if err := y.Free(); err != nil {
			b.Error(err)
		}
	})
}

// The naive thing beside it: every goroutine accesses one buffer.
func BenchmarkReadsOfOneBufferInParallel(b *testing.B) {
	w := quiet(b)
	x := w.new(64)
	defer w.free(x)
	b.RunParallel(func(pb *testing.PB) {
		s, err := w.r.Streams().Acquire(b.Context())
		if err != nil {
			b.Error(err)
			return
		}
		defer s.Release()
		for pb.Next() {
			acc := buffer.Begin(s)
			acc.Read(x)
			must(s.Submit())
			if err := acc.End(); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkNewAndFree(b *testing.B) {
	for _, c := range []struct {
		name  string
		bytes int64
	}{{"small", 1000}, {"large", 2 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			w := quiet(b)
			b.ReportAllocs()
			for b.Loop() {
				x, err := w.m.New(c.bytes)
				if err == nil {
					err = x.Free()
				}
				w.ok(err)
			}
		})
	}
}

// The naive thing beside it: the driver's own pool, without ledger or cache.
func BenchmarkDriverPoolAllocAndFree(b *testing.B) {
	d := must(host.New(host.Options{}).Open(0))
	s := must(d.NewStream(0))
	defer s.Destroy()
	pool := must(d.NewPool(driver.PoolConfig{ReleaseThreshold: 1 << 30}))
	defer pool.Destroy()
	for b.Loop() {
		if err := pool.Free(s, must(pool.Alloc(s, 1000))); err != nil {
			b.Fatal(err)
		}
	}
}
