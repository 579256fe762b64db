package host

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostblas"
)

// blas is one handle: a library and the workspace that products need. Products
// on several streams take turns with the workspace. mu is held while one runs,
// and no stream or event is touched under it; state is under stateMu.
type blas struct {
	dev *device
	lib *hostblas.Library

	mu      sync.Mutex
	scratch hostblas.Scratch
	bytes   atomic.Int64

	stateMu   sync.Mutex
	queued    int // products submitted and not done
	destroyed bool
}

func (b *blas) Gemm(st driver.Stream, g *driver.Gemm) error {
	const op = "BLAS.Gemm"
	s, err := b.dev.ours(op, st)
	if err != nil {
		return err
	}
	if err := checkGemm(b.dev, g); err != nil {
		return err
	}
	b.stateMu.Lock()
	if b.destroyed {
		b.stateMu.Unlock()
		return &weir.Error{Op: op, Device: b.dev.name, Kind: weir.KindLogic, Message: "the handle was destroyed", Err: weir.ErrClosed}
	}
	b.queued++
	b.stateMu.Unlock()
	if g.M == 0 || g.N == 0 || g.Batch == 0 {
		b.let()
		return s.usable(op)
	}
	err = s.submit(op, &work{kind: doGemm, blas: b, gemm: *g})
	if err != nil {
		b.let()
	}
	return err
}

func (b *blas) run(g *driver.Gemm) {
	defer b.let()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lib.Gemm(g, &b.scratch)
	b.bytes.Store(b.scratch.Bytes())
}

// tryRun is run if neither the handle nor a core has to be waited for.
func (b *blas) tryRun(g *driver.Gemm) bool {
	if !b.mu.TryLock() {
		return false
	}
	done := b.tryLocked(g)
	if done {
		b.let()
	}
	return done
}

func (b *blas) tryLocked(g *driver.Gemm) bool {
	defer b.mu.Unlock()
	done := b.lib.TryGemm(g, &b.scratch)
	b.bytes.Store(b.scratch.Bytes())
	return done
}

// let counts a product as done. With the last one of a destroyed handle the
// workspace goes.
func (b *blas) let() {
	b.stateMu.Lock()
	b.queued--
	last := b.destroyed && b.queued == 0
	b.stateMu.Unlock()
	if last {
		b.free()
	}
}

func (b *blas) free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scratch.Free()
	b.bytes.Store(0)
}

func (b *blas) WorkspaceBytes() int64 { return b.bytes.Load() }

func (b *blas) Destroy() error {
	b.stateMu.Lock()
	now := !b.destroyed && b.queued == 0
	b.destroyed = true
	b.stateMu.Unlock()
	if now {
		b.free()
	}
	return b.dev.alive("BLAS.Destroy")
}

func checkGemm(d *device, g *driver.Gemm) error {
	const op = "BLAS.Gemm"
	if !g.DType.Valid() || g.OpA > driver.ConjTrans || g.OpB > driver.ConjTrans {
		return d.argument(op, "dtype %v, operations %d and %d; expected known ones", g.DType, g.OpA, g.OpB)
	}
	if g.M < 0 || g.N < 0 || g.K < 0 || g.Batch < 0 {
		return d.argument(op, "m, n, k, batch = %d, %d, %d, %d; expected 0 or more", g.M, g.N, g.K, g.Batch)
	}
	a, b, c := [2]int64{g.M, g.K}, [2]int64{g.K, g.N}, [2]int64{g.M, g.N}
	if g.OpA != driver.NoTrans {
		a[0], a[1] = a[1], a[0]
	}
	if g.OpB != driver.NoTrans {
		b[0], b[1] = b[1], b[0]
	}
	for _, x := range [...]struct {
		name       string
		size       [2]int64 // rows, columns as stored
		ld, stride int64
		ptr        driver.Ptr
	}{{"a", a, g.LDA, g.StrideA, g.A}, {"b", b, g.LDB, g.StrideB, g.B}, {"c", c, g.LDC, g.StrideC, g.C}} {
		if x.ld < max(1, x.size[0]) {
			return d.argument(op, "ld%s = %d; expected at least %d", x.name, x.ld, max(1, x.size[0]))
		}
		if g.M == 0 || g.N == 0 || g.Batch == 0 || x.size[0] == 0 || x.size[1] == 0 {
			continue
		}
		if !address(x.ptr) {
			return d.argument(op, "%s at %#x; expected an address", x.name, x.ptr)
		}
		reach := float64(x.size[1])*float64(x.ld) + math.Abs(float64(g.Batch)*float64(x.stride))
		if reach*float64(g.DType.Size()) > math.MaxInt64/2 {
			return d.argument(op, "%s of %d×%d, ld %d, %d times at stride %d; expected less than 2^62 bytes", x.name, x.size[0], x.size[1], x.ld, g.Batch, x.stride)
		}
	}
	return nil
}
