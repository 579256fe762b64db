package drivertest

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// absurd are sizes that no device has; the last overflows when it is rounded.
var absurd = []int64{1 << 62, math.MaxInt64}

var memoryTests = []test{
	{"allocations are aligned and do not overlap", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		sizes := []int{1, 3, 16, 4097, 1 << 16}
		var at []driver.Ptr
		for i, n := range sizes {
			p := f.alloc(d, int64(n))
			if p == 0 || p%16 != 0 {
				f.t.Errorf("%d bytes at %#x; expected an address that every element type may have", n, p)
			}
			f.ok(s.CopyIn(p, slices.Repeat([]byte{byte(i + 1)}, n)))
			at = append(at, p)
		}
		for i, n := range sizes {
			if got := read[byte](f, s, at[i], n); slices.ContainsFunc(got, func(b byte) bool { return b != byte(i+1) }) {
				f.t.Errorf("allocation %d was overwritten by another", i)
			}
		}
	}},
	{"page-locked memory is read and written by streams", func(f *fixture) {
		d := f.device(0)
		host, p := f.allocHost(d, 64), f.alloc(d, 64)
		s := f.stream(d)
		write(f, s, p, []byte("from the device to page-locked memory")...)
		f.ok(s.Copy(host, p, 37))
		f.ok(s.Zero(p, 64))
		f.ok(s.Copy(p, host, 37))
		if got := string(read[byte](f, s, p, 37)); got != "from the device to page-locked memory" {
			f.t.Errorf("the bytes came back as %q", got)
		}
	}},
	{"sizes that are not positive are refused", func(f *fixture) {
		d := f.device(0)
		for _, n := range []int64{0, -1, math.MinInt64} {
			f.refused(second(d.Alloc(n)), "Device.Alloc", d, weir.ErrArgument)
			f.refused(second(d.AllocHost(n)), "Device.AllocHost", d, weir.ErrArgument)
		}
	}},
	{"sizes that no device has are out of memory", func(f *fixture) {
		d := f.device(0)
		for _, n := range absurd {
			f.refused(second(d.Alloc(n)), "Device.Alloc", d, weir.ErrOutOfMemory)
			f.refused(second(d.AllocHost(n)), "Device.AllocHost", d, weir.ErrOutOfMemory)
		}
		f.alloc(d, 1<<16)
	}},
	{"memory is freed once", func(f *fixture) {
		d := f.device(0)
		p, err := d.Alloc(4096)
		f.ok(err)
		h, err := d.AllocHost(4096)
		f.ok(err)
		f.refused(d.Free(p+16), "Device.Free", d, weir.ErrArgument)
		f.refused(d.FreeHost(p), "Device.FreeHost", d, weir.ErrArgument)
		f.ok(d.Free(p))
		f.ok(d.FreeHost(h))
		f.refused(d.Free(p), "Device.Free", d, weir.ErrArgument)
		f.refused(d.FreeHost(h), "Device.FreeHost", d, weir.ErrArgument)
		f.refused(d.Free(0), "Device.Free", d, weir.ErrArgument)
	}},
	{"Free waits for work that uses the memory", func(f *fixture) { freeWaits(f, false) }},
	{"Free waits for the work of a destroyed stream", func(f *fixture) { freeWaits(f, true) }},
	{"copies of every size and alignment move just their bytes", func(f *fixture) {
		d := f.device(0)
		const n = 256
		p, q := f.alloc(d, n), f.alloc(d, n)
		s := f.stream(d)
		src := make([]byte, n)
		for i := range src {
			src[i] = byte(i)
		}
		write(f, s, p, src...)
		for _, size := range []int{1, 2, 3, 7, 8, 15, 16, 33, 100} {
			for _, shift := range []int{0, 1, 5, 16} {
				f.ok(s.Zero(q, n))
				f.ok(s.Copy(q+driver.Ptr(shift), p+driver.Ptr(2*shift+1), int64(size)))
				want := make([]byte, n)
				copy(want[shift:], src[2*shift+1:2*shift+1+size])
				if got := read[byte](f, s, q, n); !slices.Equal(got, want) {
					f.t.Errorf("a copy of %d bytes to offset %d gave %v", size, shift, got)
				}
			}
		}
	}},
	{"Zero clears just its bytes", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 64)
		s := f.stream(d)
		write(f, s, p, slices.Repeat([]byte{9}, 64)...)
		f.ok(s.Zero(p+5, 19))
		want := slices.Repeat([]byte{9}, 64)
		clear(want[5:24])
		if got := read[byte](f, s, p, 64); !slices.Equal(got, want) {
			f.t.Errorf("cleared bytes 5 to 24 of 64: %v", got)
		}
	}},
	{"moving nothing is allowed", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		s := f.stream(d)
		f.ok(errors.Join(s.Copy(p, p, 0), s.Copy(0, 0, 0), s.Zero(p, 0), s.Zero(0, 0),
			s.CopyIn(p, nil), s.CopyIn(0, nil), s.CopyOut(nil, p), s.CopyOut(nil, 0)))
		f.sync("the stream", s)
	}},
	{"negative sizes and no address are refused", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 64)
		s := f.stream(d)
		for _, n := range []int64{-1, math.MinInt64} {
			f.refused(s.Copy(p, p+32, n), "Stream.Copy", d, weir.ErrArgument)
			f.refused(s.Zero(p, n), "Stream.Zero", d, weir.ErrArgument)
		}
		f.refused(s.Copy(0, p, 8), "Stream.Copy", d, weir.ErrArgument)
		f.refused(s.Copy(p, 0, 8), "Stream.Copy", d, weir.ErrArgument)
		f.refused(s.Zero(0, 8), "Stream.Zero", d, weir.ErrArgument)
		f.refused(s.CopyIn(0, make([]byte, 8)), "Stream.CopyIn", d, weir.ErrArgument)
		f.refused(s.CopyOut(make([]byte, 8), 0), "Stream.CopyOut", d, weir.ErrArgument)
		f.sync("the stream", s)
	}},
	{"copies between devices run on a stream of either", func(f *fixture) {
		d0, d1 := f.device(0), f.device(1)
		p, q, back := f.alloc(d0, 1<<12), f.alloc(d1, 1<<12), f.alloc(d0, 1<<12)
		s0, s1 := f.stream(d0), f.stream(d1)
		src := make([]byte, 1<<12)
		for i := range src {
			src[i] = byte(i * 7)
		}
		write(f, s0, p, src...)
		f.ok(s0.CopyPeer(q, 1, p, 0, 1<<12))
		f.ok(s1.Wait(f.record(d0, s0)))
		f.ok(s1.CopyPeer(back, 0, q, 1, 1<<12))
		if got := read[byte](f, s1, back, 1<<12); !slices.Equal(got, src) {
			f.t.Errorf("the bytes changed on the way to the other device and back")
		}
	}},
	{"copies between devices reach memory of pools, whenever these were made", func(f *fixture) {
		const n = 1 << 12
		d0, d1 := f.device(0), f.device(1)
		s0, s1 := f.stream(d0), f.stream(d1)
		early0, early1 := f.pool(d0, driver.PoolConfig{}), f.pool(d1, driver.PoolConfig{})
		value := byte(0)
		travel := func(p0, p1 driver.Pool) {
			f.t.Helper()
			p, q, back := f.take(p0, s0, n), f.take(p1, s1, n), f.take(p0, s0, n)
			for _, s := range []driver.Stream{s0, s1} { // of either device
				value++
				src := slices.Repeat([]byte{value}, n)
				write(f, s0, p, src...)
				f.ok(s.Wait(f.record(d0, s0)))
				f.ok(s.Wait(f.record(d1, s1)))
				f.ok(s.CopyPeer(q, 1, p, 0, n))
				f.ok(s.CopyPeer(back, 0, q, 1, n))
				f.sync("the copies", s)
				if got := read[byte](f, s0, back, n); !slices.Equal(got, src) {
					f.t.Errorf("the bytes changed on the way to the other device's pool and back")
				}
			}
			f.ok(errors.Join(p0.Free(s0, p), p1.Free(s1, q), p0.Free(s0, back)))
		}
		travel(early0, early1)
		late0, late1 := f.pool(d0, driver.PoolConfig{}), f.pool(d1, driver.PoolConfig{})
		travel(late0, late1)
		travel(early0, late1)
	}},
	{"copies between devices refuse what is none", func(f *fixture) {
		d0, d1 := f.device(0), f.device(1)
		p, q := f.alloc(d0, 64), f.alloc(d1, 64)
		s := f.stream(d0)
		count := f.family.Count()
		for _, err := range []error{
			s.CopyPeer(q, -1, p, 0, 8), s.CopyPeer(q, 1, p, -1, 8), s.CopyPeer(q, count, p, 0, 8), s.CopyPeer(q, 1, p, count, 8),
			s.CopyPeer(q, 1, q+8, 1, 8), s.CopyPeer(q, 1, p, 0, -1), s.CopyPeer(0, 1, p, 0, 8), s.CopyPeer(q, 1, 0, 0, 8),
		} {
			f.refused(err, "Stream.CopyPeer", d0, weir.ErrArgument)
		}
		f.ok(errors.Join(s.CopyPeer(0, 1, 0, 0, 0), s.CopyPeer(p, 0, p+32, 0, 32)))
		f.sync("the stream", s)
		f.ok(s.Destroy())
		f.refused(s.CopyPeer(q, 1, p, 0, 8), "Stream.CopyPeer", d0, weir.ErrClosed)
	}},
}

// freeWaits frees memory that a stalled stream is to read.
func freeWaits(f *fixture, destroyed bool) {
	const n = 1 << 16
	d := f.device(0)
	p, err := d.Alloc(n)
	f.ok(err)
	q := f.alloc(d, n)
	s, after := f.stream(d), f.stream(d)
	release := f.stall(s)
	f.ok(s.Zero(p, n))
	f.ok(s.Copy(q, p, n))
	e := f.record(d, s)
	if destroyed {
		f.ok(s.Destroy())
	}
	var released atomic.Bool
	free := f.startWaiting("Free of memory in use", func() error {
		err := d.Free(p)
		if !released.Load() {
			return errors.Join(err, errors.New("returned while work that uses the memory was stalled"))
		}
		return err
	})
	released.Store(true)
	release()
	f.ok(free.join())
	f.ok(after.Wait(e))
	if got := read[byte](f, after, q, n); slices.ContainsFunc(got, func(b byte) bool { return b != 0 }) {
		f.t.Errorf("the memory was given back before it was copied")
	}
}
