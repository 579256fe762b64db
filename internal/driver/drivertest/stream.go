package drivertest

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

var streamTests = []test{
	{"a stream runs work in submission order", func(f *fixture) {
		d := f.device(0)
		a, b := f.alloc(d, 8), f.alloc(d, 8*64)
		s := f.stream(d)
		release := f.stall(s)
		for i := range int64(64) {
			write(f, s, a, i)
			f.ok(s.Copy(b+driver.Ptr(8*i), a, 8))
		}
		f.ok(s.Zero(b, 8))
		write(f, s, a, int64(-1))
		release()
		got := read[int64](f, s, b, 64)
		for i, v := range got {
			if v != int64(i) {
				f.t.Fatalf("copy %d saw value %d; the copies were reordered: %v", i, v, got)
			}
		}
	}},
	{"a stalled stream does not hold another", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		stalled, free := f.stream(d), f.stream(d)
		release := f.stall(stalled)
		write(f, free, p, int64(7))
		if got := read[int64](f, free, p, 1); got[0] != 7 {
			f.t.Errorf("the free stream read %v; expected 7", got)
		}
		f.sync("the free stream", free)
		f.finished("the free stream", free)
		f.pending("the stalled stream", stalled)
		release()
		f.sync("the stalled stream after its release", stalled)
		f.finished("the stalled stream after its release", stalled)
	}},
	{"no submission waits for a stalled stream", func(f *fixture) {
		d := f.device(0)
		const n = 16
		a, b, c := f.alloc(d, 8*n), f.alloc(d, 8*n), f.alloc(d, 8*n)
		s := f.stream(d)
		blas, e := f.blas(d), f.event(d)
		woken := newWaker()
		product := driver.Gemm{DType: dtype.Float64, M: 4, N: 4, K: 4, Alpha: 1, A: b, B: c, C: a, LDA: 4, LDB: 4, LDC: 4, Batch: 1}
		f.ok(errors.Join(s.Zero(b, 8*n), s.Zero(c, 8*n)))
		f.rehearse(blas, s, &product)
		release := f.stall(s)
		f.within("submission to a stalled stream", func() error {
			return errors.Join(
				s.Zero(a, 8*n),
				s.CopyIn(b, bytesOf(slices.Repeat([]float64{2}, n))),
				s.Copy(c, b, 8*n),
				s.Launch(&driver.Kernel{Op: driver.KernelAxpby, Out: line(c, dtype.Float64, n), A: line(b, dtype.Float64, n), Alpha: 1, Beta: 1}),
				blas.Gemm(s, &product),
				s.Record(e), s.Wait(e), s.Notify(woken),
			)
		})
		f.pending("the stalled stream", s)
		f.pending("the event behind the stall", e)
		release()
		woken.once(f, nil)
		for i, v := range read[float64](f, s, a, n) {
			if v != 4*2*4 {
				f.t.Errorf("element %d is %v; expected 32", i, v)
			}
		}
	}},
	{"CopyIn's slice may be reused at once", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		for _, n := range []int{1, 4096, 1<<20 + 3} {
			p := f.alloc(d, int64(n))
			src := slices.Repeat([]byte{0xa5}, n)
			release := f.stall(s)
			f.within("CopyIn to a stalled stream", func() error { return s.CopyIn(p, src) })
			clear(src)
			release()
			if got := read[byte](f, s, p, n); slices.ContainsFunc(got, func(b byte) bool { return b != 0xa5 }) {
				f.t.Errorf("a CopyIn of %d bytes saw what was written to its slice afterwards", n)
			}
		}
	}},
	{"CopyOut waits for the earlier work of its stream", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		s := f.stream(d)
		write(f, s, p, int64(1))
		release := f.stall(s)
		write(f, s, p, int64(2))
		var released atomic.Bool
		got := make([]int64, 1)
		out := f.startWaiting("CopyOut", func() error {
			err := s.CopyOut(bytesOf(got), p)
			if !released.Load() {
				return errors.Join(err, errors.New("returned while the stream was stalled"))
			}
			return err
		})
		released.Store(true)
		release()
		f.ok(out.join())
		if got[0] != 2 {
			f.t.Errorf("CopyOut read %d; expected 2", got[0])
		}
	}},
	{"Synchronize waits for the earlier work", func(f *fixture) {
		s := f.stream(f.device(0))
		release := f.stall(s)
		var released atomic.Bool
		var tasks []*task
		for range 3 {
			tasks = append(tasks, f.startWaiting("Stream.Synchronize", func() error {
				err := s.Synchronize()
				if !released.Load() {
					return errors.Join(err, errors.New("returned while the stream was stalled"))
				}
				return err
			}))
		}
		released.Store(true)
		release()
		f.all(tasks)
	}},
	{"Synchronize does not wait for later work", func(f *fixture) {
		s := f.stream(f.device(0))
		release := f.stall(s)
		sync := f.startWaiting("Stream.Synchronize", s.Synchronize)
		release()
		f.ok(sync.join())
		again := f.stall(s)
		f.pending("the stream", s)
		again()
	}},
	{"a synchronised stream is idle", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		s := f.stream(d)
		for range 5000 {
			f.ok(errors.Join(s.Zero(p, 8), s.Synchronize()))
			f.finished("the stream right after Synchronize", s)
		}
	}},
	{"a destroyed stream finishes its work", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		s, other, e := f.stream(d), f.stream(d), f.event(d)
		release := f.stall(s)
		write(f, s, p, int64(5))
		f.ok(s.Record(e))
		woken := newWaker()
		f.ok(s.Notify(woken))
		f.within("Destroy of a stalled stream", s.Destroy)
		f.pending("an event of the destroyed stream", e)
		f.ok(other.Wait(e))
		release()
		woken.once(f, nil)
		if got := read[int64](f, other, p, 1); got[0] != 5 {
			f.t.Errorf("read %v; expected the work of the destroyed stream, 5", got)
		}
	}},
	{"a destroyed stream takes no more work", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		s, other, e := f.stream(d), f.stream(d), f.event(d)
		behind := f.stall(other)
		pending := f.record(d, other)
		f.ok(s.Destroy())
		f.ok(s.Destroy())
		f.refused(s.Record(e), "Stream.Record", d, weir.ErrClosed)
		f.refused(s.Wait(pending), "Stream.Wait", d, weir.ErrClosed)
		f.refused(s.Notify(newWaker()), "Stream.Notify", d, weir.ErrClosed)
		f.refused(second(s.Query()), "Stream.Query", d, weir.ErrClosed)
		f.refused(s.Synchronize(), "Stream.Synchronize", d, weir.ErrClosed)
		f.refused(s.Copy(p, p+4, 4), "Stream.Copy", d, weir.ErrClosed)
		f.refused(s.CopyIn(p, make([]byte, 8)), "Stream.CopyIn", d, weir.ErrClosed)
		f.refused(s.CopyOut(make([]byte, 8), p), "Stream.CopyOut", d, weir.ErrClosed)
		f.refused(s.Zero(p, 8), "Stream.Zero", d, weir.ErrClosed)
		f.refused(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(p, dtype.Int64, 1)}), "Stream.Launch", d, weir.ErrClosed)
		f.refused(s.Call(func() {}), "Stream.Call", d, nil)
		f.finished("an event whose Record was refused", e)
		behind()
	}},
	{"Call runs Go code in stream order", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		var order []int
		err := s.Call(func() { order = append(order, 0) })
		if errors.Is(err, weir.ErrNotSupported) {
			f.refused(err, "Stream.Call", d, weir.ErrNotSupported)
			f.t.Skipf("the device runs no Go code")
		}
		f.ok(err)
		for i := 1; i < 32; i++ {
			f.ok(s.Call(func() { order = append(order, i) }))
		}
		f.sync("the stream", s)
		if len(order) != 32 || !slices.IsSorted(order) {
			f.t.Errorf("the calls ran as %v", order)
		}
	}},
	{"several goroutines submit to one stream", func(f *fixture) {
		d := f.device(0)
		const goroutines, each = 4, 25
		one, sum := f.alloc(d, 8), f.alloc(d, 8)
		s := f.stream(d)
		write(f, s, one, int64(1))
		f.ok(s.Zero(sum, 8))
		var tasks []*task
		for range goroutines {
			tasks = append(tasks, f.start("a goroutine that submits", func() error {
				for range each {
					if err := s.Launch(&driver.Kernel{Op: driver.KernelAxpby, Alpha: 1, Beta: 1,
						Out: line(sum, dtype.Int64, 1), A: line(one, dtype.Int64, 1)}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		f.all(tasks)
		if got := read[int64](f, s, sum, 1); got[0] != goroutines*each {
			f.t.Errorf("the sum is %d; expected %d increments, one after the other", got[0], goroutines*each)
		}
	}},
	{"copies of one stream from several goroutines do not mix", func(f *fixture) {
		d := f.device(0)
		const n, goroutines, each = 1 << 20, 3, 30
		p := f.alloc(d, n)
		s := f.stream(d)
		f.ok(s.Zero(p, n))
		var tasks []*task
		for g := range goroutines {
			tasks = append(tasks, f.start("a goroutine that copies in and out", func() error {
				in, out := slices.Repeat([]byte{byte(g + 1)}, n), make([]byte, n)
				for range each {
					if err := errors.Join(s.CopyIn(p, in), s.CopyOut(out, p)); err != nil {
						return err
					}
					if slices.ContainsFunc(out, func(b byte) bool { return b != out[0] }) {
						return errors.New("a CopyOut saw half of a CopyIn of its own stream")
					}
				}
				return nil
			}))
		}
		f.all(tasks)
	}},
}

// line is a contiguous view of n elements.
func line(p driver.Ptr, t dtype.DType, n int64) driver.View {
	return driver.View{Ptr: p, DType: t, Shape: []int64{n}, Strides: []int64{1}}
}
