package host

import (
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
	queued    int // calls submitted and not done
	destroyed bool
}

func (b *blas) Gemm(st driver.Stream, g *driver.Gemm) error {
	const op = "BLAS.Gemm"
	s, err := b.dev.ours(op, st)
	if err != nil {
		return err
	}
	if err := driver.CheckGemm(op, b.dev.name, g); err != nil {
		return err
	}
	if err := b.count(op); err != nil {
		return err
	}
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

// count counts one more submission in, or says that the handle was destroyed.
func (b *blas) count(op string) error {
	b.stateMu.Lock()
	defer b.stateMu.Unlock()
	if b.destroyed {
		return &weir.Error{Op: op, Device: b.dev.name, Kind: weir.KindLogic, Message: "the handle was destroyed", Err: weir.ErrClosed}
	}
	b.queued++
	return nil
}

// run does one submission.
func (b *blas) run(w *work) {
	defer b.let()
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.groups != nil {
		b.lib.GemmGroups(w.groups.all, &b.scratch)
		w.groups.giveBack()
	} else {
		b.lib.Gemm(&w.gemm, &b.scratch)
	}
	b.bytes.Store(b.scratch.Bytes())
}

// tryRun is run if neither the handle nor a core has to be waited for.
func (b *blas) tryRun(w *work) bool {
	if !b.mu.TryLock() {
		return false
	}
	done := b.tryLocked(w)
	if done {
		b.let()
	}
	return done
}

func (b *blas) tryLocked(w *work) (done bool) {
	defer b.mu.Unlock()
	if w.groups != nil {
		if done = b.lib.TryGemmGroups(w.groups.all, &b.scratch); done {
			w.groups.giveBack()
		}
	} else {
		done = b.lib.TryGemm(&w.gemm, &b.scratch)
	}
	b.bytes.Store(b.scratch.Bytes())
	return done
}

// let counts a submission as done. With the last one of a destroyed handle the
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
