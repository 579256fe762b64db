package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// A pool of oneLimit bytes has room for one block and not for two. Devices
// take memory in large pieces, so these are large.
const (
	block    = 48 << 20
	oneLimit = 64 << 20
	keepAll  = 1 << 40
)

// pool answers a pool; the test is skipped on a device that has none.
func (f *fixture) pool(d driver.Device, c driver.PoolConfig) driver.Pool {
	f.t.Helper()
	if !d.Capabilities().StreamOrderedPools {
		f.t.Skipf("%s has no stream-ordered pools", d.Name())
	}
	p, err := d.NewPool(c)
	f.ok(err)
	f.afterwards(d, "Pool.Destroy", p.Destroy)
	return p
}

func (f *fixture) stats(p driver.Pool) driver.PoolStats {
	f.t.Helper()
	s, err := p.Stats()
	f.ok(err)
	if s.Used < 0 || s.Used > s.Held || s.HighUsed < s.Used || s.HighHeld < s.Held {
		f.t.Fatalf("the statistics %+v contradict themselves", s)
	}
	return s
}

// take allocates from a pool, which must succeed and must not wait.
func (f *fixture) take(p driver.Pool, s driver.Stream, bytes int64) (at driver.Ptr) {
	f.t.Helper()
	f.within(fmt.Sprintf("Pool.Alloc of %d bytes", bytes), func() (err error) {
		at, err = p.Alloc(s, bytes)
		return err
	})
	return at
}

// drop frees to a pool, which must succeed and must not wait.
func (f *fixture) drop(p driver.Pool, s driver.Stream, at driver.Ptr) {
	f.t.Helper()
	f.within("Pool.Free", func() error { return p.Free(s, at) })
}

var poolTests = []test{
	{"statistics count what is used and held", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{ReleaseThreshold: keepAll}), f.stream(d)
		if st := f.stats(p); st != (driver.PoolStats{}) {
			f.t.Errorf("a new pool has %+v", st)
		}
		a, b := f.take(p, s, block), f.take(p, s, 1000)
		both := f.stats(p)
		if both.Used < block+1000 || both.Used > 2*block {
			f.t.Errorf("%d bytes are used after allocating %d", both.Used, block+1000)
		}
		f.drop(p, s, a)
		f.sync("the stream", s)
		one := f.stats(p)
		if one.Used != both.Used-block || one.HighUsed != both.Used {
			f.t.Errorf("%+v after freeing %d of %+v", one, block, both)
		}
		f.drop(p, s, b)
		f.sync("the stream", s)
		none := f.stats(p)
		if none.Used != 0 || none.Held < block || none.HighUsed != both.Used || none.HighHeld != both.HighHeld {
			f.t.Errorf("%+v after freeing everything of %+v, below the release threshold", none, both)
		}
	}},
	{"a pool is not asked for nothing", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{}), f.stream(d)
		for _, n := range []int64{0, -1} {
			f.refused(second(p.Alloc(s, n)), "Pool.Alloc", d, weir.ErrArgument)
		}
		f.refused(second(d.NewPool(driver.PoolConfig{Limit: -1})), "Device.NewPool", d, weir.ErrArgument)
		f.refused(second(d.NewPool(driver.PoolConfig{ReleaseThreshold: -1})), "Device.NewPool", d, weir.ErrArgument)
		f.refused(p.Trim(-1), "Pool.Trim", d, weir.ErrArgument)
	}},
	{"blocks are aligned and do not overlap", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{}), f.stream(d)
		sizes := []int{1, 3, 16, 4097, 1 << 16, 200, 1, 255}
		var at []driver.Ptr
		for i, n := range sizes {
			q := f.take(p, s, int64(n))
			if q == 0 || q%16 != 0 {
				f.t.Errorf("%d bytes at %#x; expected an address that every element type may have", n, q)
			}
			f.ok(s.CopyIn(q, slices.Repeat([]byte{byte(i + 1)}, n)))
			at = append(at, q)
		}
		for i, n := range sizes {
			if got := read[byte](f, s, at[i], n); slices.ContainsFunc(got, func(b byte) bool { return b != byte(i+1) }) {
				f.t.Errorf("block %d was overwritten by another", i)
			}
			f.drop(p, s, at[i])
		}
	}},
	{"the limit is kept and named", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{Limit: oneLimit}), f.stream(d)
		a := f.take(p, s, block)
		held := f.stats(p).Held
		_, err := p.Alloc(s, block)
		f.refused(err, "Pool.Alloc", d, weir.ErrOutOfMemory)
		for what, n := range map[string]int64{"asked for": block, "held": held, "allowed": oneLimit} {
			if err != nil && !strings.Contains(err.Error(), fmt.Sprint(n)) {
				f.t.Errorf("%q does not say that %d bytes are %s", err, n, what)
			}
		}
		f.drop(p, s, a)
		f.drop(p, s, f.take(p, s, block))
		if st := f.stats(p); st.HighHeld > oneLimit {
			f.t.Errorf("the pool held %d bytes; its limit is %d", st.HighHeld, oneLimit)
		}
	}},
	{"a pool without a limit answers out of memory for sizes that no device has", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{}), f.stream(d)
		for _, n := range absurd {
			f.refused(second(p.Alloc(s, n)), "Pool.Alloc", d, weir.ErrOutOfMemory)
		}
		f.drop(p, s, f.take(p, s, 1000))
	}},
	{"a limit refuses sizes that no device has", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{Limit: oneLimit}), f.stream(d)
		a := f.take(p, s, 1000)
		for _, n := range absurd {
			f.refused(second(p.Alloc(s, n)), "Pool.Alloc", d, weir.ErrOutOfMemory)
		}
		f.drop(p, s, a)
	}},
	{"the stream of a free reuses the memory at once", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{Limit: oneLimit}), f.stream(d)
		release := f.stall(s)
		for range 5 {
			f.drop(p, s, f.take(p, s, block))
		}
		f.pending("the stream", s)
		if st := f.stats(p); st.HighHeld > oneLimit {
			f.t.Errorf("the pool grew to %d bytes for one block at a time", st.HighHeld)
		}
		release()
	}},
	{"reuse on the same stream is ordered", func(f *fixture) {
		d := f.device(0)
		const n = 1 << 10
		out := f.alloc(d, 2*8*n)
		p, s := f.pool(d, driver.PoolConfig{}), f.stream(d)
		release := f.stall(s)
		for i := range 2 {
			at := f.take(p, s, 8*n)
			f.ok(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(at, dtype.Int64, n), Alpha: complex(float64(i+1), 0)}))
			f.ok(s.Copy(out+driver.Ptr(i*8*n), at, 8*n))
			f.drop(p, s, at)
		}
		release()
		want := append(slices.Repeat([]int64{1}, n), slices.Repeat([]int64{2}, n)...)
		if !slices.Equal(read[int64](f, s, out, 2*n), want) {
			f.t.Errorf("a block's next user overwrote it before its last one had read it")
		}
	}},
	{"another stream gets the memory only when its free is done", func(f *fixture) {
		d := f.device(0)
		p := f.pool(d, driver.PoolConfig{Limit: oneLimit})
		owner, other := f.stream(d), f.stream(d)
		at := f.take(p, owner, block)
		release := f.stall(owner)
		f.drop(p, owner, at)
		f.refused(second(p.Alloc(other, block)), "Pool.Alloc", d, weir.ErrOutOfMemory)
		release()
		f.sync("the stream of the free", owner)
		f.drop(p, other, f.take(p, other, block))
	}},
	{"memory whose free is unfinished is not shared", func(f *fixture) {
		d := f.device(0)
		const n, blocks = 1 << 12, 8
		p := f.pool(d, driver.PoolConfig{})
		owner, other := f.stream(d), f.stream(d)
		release := f.stall(owner)
		for range blocks {
			at := f.take(p, owner, 8*n)
			f.ok(owner.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(at, dtype.Int64, n), Alpha: -1}))
			f.drop(p, owner, at)
		}
		var taken []driver.Ptr
		for i := range blocks {
			at := f.take(p, other, 8*n)
			f.ok(other.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(at, dtype.Int64, n), Alpha: complex(float64(i), 0)}))
			taken = append(taken, at)
		}
		f.sync("the other stream", other)
		release()
		f.sync("the stream of the frees", owner)
		for i, at := range taken {
			if !slices.Equal(read[int64](f, other, at, n), slices.Repeat([]int64{int64(i)}, n)) {
				f.t.Errorf("block %d was written by work that precedes an unfinished free", i)
			}
			f.drop(p, other, at)
		}
	}},
	{"a block is freed on another stream than it was taken on", func(f *fixture) {
		d := f.device(0)
		p := f.pool(d, driver.PoolConfig{Limit: oneLimit})
		a, b := f.stream(d), f.stream(d)
		at := f.take(p, a, block)
		release := f.stall(a)
		f.ok(a.Zero(at, 8))
		f.ok(b.Wait(f.record(d, a)))
		f.drop(p, b, at)
		f.refused(second(p.Alloc(a, block)), "Pool.Alloc", d, weir.ErrOutOfMemory)
		f.drop(p, b, f.take(p, b, block))
		release()
		f.sync("the stream of the free", b)
		f.drop(p, a, f.take(p, a, block))
	}},
	{"Trim gives unused memory back and keeps what it is told to", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{ReleaseThreshold: keepAll}), f.stream(d)
		used := f.take(p, s, 1000)
		f.ok(s.CopyIn(used, []byte("still here")))
		var at []driver.Ptr
		for range 3 {
			at = append(at, f.take(p, s, block))
		}
		for _, q := range at {
			f.drop(p, s, q)
		}
		f.sync("the stream", s)
		if st := f.stats(p); st.Held < 3*block {
			f.t.Fatalf("the pool holds %d bytes below its release threshold; %d were freed", st.Held, 3*block)
		}
		f.ok(p.Trim(keepAll))
		if st := f.stats(p); st.Held < 3*block {
			f.t.Errorf("Trim kept %d bytes and was told to keep all", st.Held)
		}
		f.ok(p.Trim(block + block/2))
		if st := f.stats(p); st.Held-st.Used > block+block/2 {
			f.t.Errorf("Trim kept %d unused bytes; expected at most %d", st.Held-st.Used, block+block/2)
		}
		f.ok(p.Trim(0))
		if st := f.stats(p); st.Held >= block {
			f.t.Errorf("Trim kept %d bytes; expected nothing but one small block", st.Held)
		}
		if got := string(read[byte](f, s, used, 10)); got != "still here" {
			f.t.Errorf("Trim changed memory in use to %q", got)
		}
		f.drop(p, s, used)
	}},
	{"Trim leaves memory whose free is unfinished", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{ReleaseThreshold: keepAll}), f.stream(d)
		at := f.take(p, s, block)
		release := f.stall(s)
		f.ok(s.Zero(at, block))
		f.drop(p, s, at)
		f.within("Trim while a free is unfinished", func() error { return p.Trim(0) })
		if st := f.stats(p); st.Held < block {
			f.t.Errorf("Trim left %d bytes; %d are still in use by the device", st.Held, block)
		}
		release()
		f.sync("the stream", s)
		f.ok(p.Trim(0))
		if st := f.stats(p); st.Held != 0 {
			f.t.Errorf("Trim left %d bytes of an unused pool", st.Held)
		}
	}},
	{"a synchronisation trims to the release threshold", func(f *fixture) {
		d := f.device(0)
		keeps, gives := f.pool(d, driver.PoolConfig{ReleaseThreshold: keepAll}), f.pool(d, driver.PoolConfig{})
		s := f.stream(d)
		for _, p := range []driver.Pool{keeps, gives} {
			f.drop(p, s, f.take(p, s, block))
		}
		f.sync("the stream", s)
		if st := f.stats(keeps); st.Held < block {
			f.t.Errorf("the pool with a high threshold kept %d bytes", st.Held)
		}
		if st := f.stats(gives); st.Held != 0 {
			f.t.Errorf("the pool with threshold 0 kept %d bytes", st.Held)
		}
	}},
	{"Destroy waits for frees in flight and may be repeated", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{}), f.stream(d)
		at := f.take(p, s, block)
		release := f.stall(s)
		f.ok(s.Zero(at, block))
		f.drop(p, s, at)
		var released atomic.Bool
		destroy := f.startWaiting("Pool.Destroy", func() error {
			err := p.Destroy()
			if !released.Load() {
				return errors.Join(err, errors.New("returned while a free was unfinished"))
			}
			return err
		})
		released.Store(true)
		release()
		f.ok(destroy.join())
		f.ok(p.Destroy())
		f.refused(second(p.Alloc(s, 8)), "Pool.Alloc", d, weir.ErrClosed)
		f.refused(p.Free(s, at), "Pool.Free", d, nil)
		f.refused(p.Trim(0), "Pool.Trim", d, weir.ErrClosed)
		f.refused(second(p.Stats()), "Pool.Stats", d, weir.ErrClosed)
	}},
	{"a destroyed stream's frees come to an end", func(f *fixture) {
		d := f.device(0)
		p := f.pool(d, driver.PoolConfig{Limit: oneLimit})
		s, other := f.stream(d), f.stream(d)
		release := f.stall(s)
		f.drop(p, s, f.take(p, s, block))
		last := f.record(d, s)
		f.ok(s.Destroy())
		release()
		f.sync("the last event of the destroyed stream", last)
		f.drop(p, other, f.take(p, other, block))
	}},
	{"a pool's memory is freed once and on its own device", func(f *fixture) {
		d := f.device(0)
		p, another, s := f.pool(d, driver.PoolConfig{}), f.pool(d, driver.PoolConfig{}), f.stream(d)
		at := f.take(p, s, 4096)
		f.refused(another.Free(s, at), "Pool.Free", d, weir.ErrArgument)
		f.refused(p.Free(s, at+16), "Pool.Free", d, weir.ErrArgument)
		f.refused(p.Free(s, 0), "Pool.Free", d, weir.ErrArgument)
		f.drop(p, s, at)
		f.refused(p.Free(s, at), "Pool.Free", d, weir.ErrArgument)
	}},
	{"a pool serves streams of its own device", func(f *fixture) {
		d := f.device(0)
		p, s, foreign := f.pool(d, driver.PoolConfig{}), f.stream(d), f.stream(f.device(1))
		at := f.take(p, s, 64)
		f.refused(second(p.Alloc(foreign, 64)), "Pool.Alloc", d, weir.ErrArgument)
		f.refused(p.Free(foreign, at), "Pool.Free", d, weir.ErrArgument)
		f.drop(p, s, at)
	}},
	{"a destroyed stream takes and gives no memory", func(f *fixture) {
		d := f.device(0)
		p, s, gone := f.pool(d, driver.PoolConfig{}), f.stream(d), f.stream(d)
		at := f.take(p, s, 64)
		f.ok(gone.Destroy())
		f.refused(second(p.Alloc(gone, 64)), "Pool.Alloc", d, weir.ErrClosed)
		f.refused(p.Free(gone, at), "Pool.Free", d, weir.ErrClosed)
		f.drop(p, s, at)
	}},
}
