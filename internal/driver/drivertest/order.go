package drivertest

import (
	"slices"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

var orderTests = []test{
	{"a wait holds a stream until the event is done", func(f *fixture) {
		d := f.device(0)
		p, q := f.alloc(d, 8), f.alloc(d, 8)
		a, b := f.stream(d), f.stream(d)
		write(f, a, p, int64(1))
		release := f.stall(a)
		write(f, a, p, int64(2))
		e := f.record(d, a)
		f.ok(b.Wait(e))
		f.ok(b.Copy(q, p, 8))
		f.pending("the waiting stream", b)
		release()
		if got := read[int64](f, b, q, 1); got[0] != 2 {
			f.t.Errorf("the waiting stream copied %d; expected what the other wrote, 2", got[0])
		}
	}},
	{"a wait does not hold the work before it", func(f *fixture) {
		d := f.device(0)
		a, b := f.stream(d), f.stream(d)
		release := f.stall(a)
		e := f.record(d, a)
		before := f.record(d, b)
		f.ok(b.Wait(e))
		after := f.record(d, b)
		f.sync("an event before the wait", before)
		f.pending("an event after the wait", after)
		release()
		f.sync("an event after the wait", after)
	}},
	{"a wait captures the record of its time", func(f *fixture) {
		d := f.device(0)
		a, b := f.stream(d), f.stream(d)
		first := f.stall(a)
		e := f.record(d, a)
		f.ok(b.Wait(e))
		second := f.stall(a)
		f.ok(a.Record(e))
		first()
		f.sync("a stream that waits for the first record", b)
		f.pending("the event", e)
		second()
		f.sync("the event", e)
	}},
	{"a wait for a finished record ignores a later one", func(f *fixture) {
		d := f.device(0)
		a, b := f.stream(d), f.stream(d)
		e := f.record(d, a)
		f.sync("the event", e)
		held := f.stall(b)
		f.ok(b.Wait(e))
		release := f.stall(a)
		f.ok(a.Record(e))
		held()
		f.sync("a stream that waits for the first record", b)
		f.pending("the event", e)
		release()
	}},
	{"a wait survives the event", func(f *fixture) {
		d := f.device(0)
		a, b, e := f.stream(d), f.stream(d), f.event(d)
		release := f.stall(a)
		f.ok(a.Record(e))
		f.ok(b.Wait(e))
		f.ok(e.Destroy())
		f.pending("the waiting stream", b)
		release()
		f.sync("the waiting stream", b)
	}},
	{"a wait survives the stream of the record", func(f *fixture) {
		d := f.device(0)
		a, b := f.stream(d), f.stream(d)
		release := f.stall(a)
		e := f.record(d, a)
		f.ok(b.Wait(e))
		f.ok(a.Destroy())
		f.pending("the waiting stream", b)
		release()
		f.sync("the waiting stream", b)
	}},
	{"a stream waits for itself without hanging", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		release := f.stall(s)
		e := f.record(d, s)
		f.ok(s.Wait(e))
		release()
		f.sync("the stream", s)
	}},
	{"one event holds many streams", func(f *fixture) {
		d := f.device(0)
		a := f.stream(d)
		release := f.stall(a)
		e := f.record(d, a)
		var waiting []driver.Stream
		for range 4 {
			s := f.stream(d)
			f.ok(s.Wait(e))
			waiting = append(waiting, s)
		}
		for _, s := range waiting {
			f.pending("a waiting stream", s)
		}
		release()
		for _, s := range waiting {
			f.sync("a waiting stream", s)
		}
	}},
	{"a wait works across devices", func(f *fixture) {
		d0, d1 := f.device(0), f.device(1)
		p, q := f.alloc(d0, 8), f.alloc(d1, 8)
		a, b := f.stream(d0), f.stream(d1)
		write(f, a, p, int64(1))
		release := f.stall(a)
		write(f, a, p, int64(2))
		e := f.record(d0, a)
		f.ok(b.Wait(e))
		f.ok(b.CopyPeer(q, 1, p, 0, 8))
		f.pending("the waiting stream of the other device", b)
		release()
		if got := read[int64](f, b, q, 1); got[0] != 2 {
			f.t.Errorf("the other device copied %d; expected 2", got[0])
		}
	}},
	{"a chain of waits carries a value through every stream", func(f *fixture) {
		const length = 24
		d := f.device(0)
		one := f.alloc(d, 8)
		p := f.alloc(d, 8)
		streams := []driver.Stream{f.stream(d), f.stream(d), f.stream(d)}
		write(f, streams[0], one, int64(1))
		write(f, streams[0], p, int64(0))
		release := f.stall(streams[0])
		e := f.record(d, streams[0])
		for i := range length {
			s := streams[i%len(streams)]
			f.ok(s.Wait(e))
			f.ok(s.Launch(addOne(p, one)))
			e = f.record(d, s)
		}
		f.pending("the end of the chain", e)
		release()
		f.sync("the end of the chain", e)
		if got := read[int64](f, streams[0], p, 1); got[0] != length {
			f.t.Errorf("the chain counted to %d; expected %d", got[0], length)
		}
	}},
	{"a diamond joins both its sides", func(f *fixture) {
		d := f.device(0)
		top, left, right, bottom := f.alloc(d, 8), f.alloc(d, 8), f.alloc(d, 8), f.alloc(d, 8)
		s := []driver.Stream{f.stream(d), f.stream(d), f.stream(d), f.stream(d)}
		release := f.stall(s[0])
		slow := f.stall(s[2])
		write(f, s[0], top, int64(3))
		fork := f.record(d, s[0])
		f.ok(s[1].Wait(fork))
		f.ok(s[1].Copy(left, top, 8))
		f.ok(s[2].Wait(fork))
		f.ok(s[2].Copy(right, top, 8))
		f.ok(s[3].Wait(f.record(d, s[1])))
		f.ok(s[3].Wait(f.record(d, s[2])))
		f.ok(s[3].Launch(&driver.Kernel{Op: driver.KernelMul,
			Out: line(bottom, dtype.Int64, 1), A: line(left, dtype.Int64, 1), B: line(right, dtype.Int64, 1)}))
		release()
		f.sync("the fast side", s[1])
		f.pending("the join", s[3])
		slow()
		if got := read[int64](f, s[3], bottom, 1); got[0] != 9 {
			f.t.Errorf("the join computed %d; expected 9", got[0])
		}
	}},
	{"two streams hand a buffer to and fro", func(f *fixture) {
		d := f.device(0)
		one, p := f.alloc(d, 8), f.alloc(d, 8)
		a, b := f.stream(d), f.stream(d)
		write(f, a, one, int64(1))
		write(f, a, p, int64(0))
		ping, pong := f.event(d), f.event(d)
		for range 50 {
			f.ok(a.Launch(addOne(p, one)))
			f.ok(a.Record(ping))
			f.ok(b.Wait(ping))
			f.ok(b.Launch(addOne(p, one)))
			f.ok(b.Record(pong))
			f.ok(a.Wait(pong))
		}
		if got := read[int64](f, a, p, 1); got[0] != 100 {
			f.t.Errorf("counted to %d; expected 100", got[0])
		}
	}},
	{"random programs compute what a sequential one does", randomPrograms},
	{"a launch captures its views", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8*4)
		s := f.stream(d)
		f.ok(s.Zero(p, 8*4))
		release := f.stall(s)
		k := driver.Kernel{Op: driver.KernelFill, Out: line(p, dtype.Int64, 2), Alpha: 5}
		f.ok(s.Launch(&k))
		k.Out.Shape[0], k.Out.Strides[0], k.Out.Ptr, k.Alpha = 4, 0, p+16, 6
		release()
		if got := read[int64](f, s, p, 4); !slices.Equal(got, []int64{5, 5, 0, 0}) {
			f.t.Errorf("filled %v; expected [5 5 0 0], whatever became of the kernel afterwards", got)
		}
	}},
	{"a product captures its description", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8*3)
		s, b := f.stream(d), f.blas(d)
		write(f, s, p, 2.0, 3.0, 0.0)
		g := driver.Gemm{DType: dtype.Float64, M: 1, N: 1, K: 1, Alpha: 1, A: p, B: p + 8, C: p + 16, LDA: 1, LDB: 1, LDC: 1, Batch: 1}
		f.rehearse(b, s, &g)
		release := f.stall(s)
		f.ok(b.Gemm(s, &g))
		g.Alpha, g.A = 100, p+16
		release()
		if got := read[float64](f, s, p, 3); got[2] != 6 {
			f.t.Errorf("the product is %v; expected 6, whatever became of its description afterwards", got[2])
		}
	}},
}

// addOne is p += 1, where one holds 1.
func addOne(p, one driver.Ptr) *driver.Kernel {
	return &driver.Kernel{Op: driver.KernelAxpby, Alpha: 1, Beta: 1, Out: line(p, dtype.Int64, 1), A: line(one, dtype.Int64, 1)}
}
