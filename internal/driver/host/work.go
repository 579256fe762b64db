package host

import (
	"slices"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// work is one entry of a stream's queue.
type work struct {
	kind  workKind
	event *event
	gen   uint64
	waker driver.Waker
	fn    func()
	dst   driver.Ptr
	src   driver.Ptr
	bytes int64 // of doKernel: what it goes through
	host  []byte
	kept  bool // host is the stream's own copy
	over  chan struct{}
	blas  *blas
	svd   *decomposition
	// Of doGemm: one of the two.
	gemm   driver.Gemm
	groups *captured
}

type workKind uint8

const (
	doRecord workKind = iota
	doWait
	doNotify
	doCall
	doKernel
	doCopy
	doCopyIn
	doCopyOut
	doZero
	doGemm
	doSVD
)

// Handing work over costs about 5 us: a goroutine is started, often on a
// processor that has to be woken. Less work than that (at some tens of GFLOP/s
// and GB/s) is done sooner than handed over.
const (
	smallFLOPs = 1 << 20
	smallBytes = 1 << 15
)

// small says whether the work is done sooner than handed over. Copies of plain
// slices are done at once whatever their size: the caller waits for the slice
// anyhow.
func (w *work) small() bool {
	switch w.kind {
	case doCopy, doZero, doKernel:
		return w.bytes <= smallBytes
	case doCopyIn, doCopyOut:
		return !w.kept
	case doGemm:
		if w.groups != nil {
			return w.groups.flops() <= smallFLOPs
		}
		return flops(&w.gemm, w.gemm.Batch) <= smallFLOPs
	}
	return false
}

// flops is the work of a product, done so many times.
func flops(g *driver.Gemm, times int64) float64 {
	return float64(g.M) * float64(g.N) * float64(max(g.K, 1)) * float64(times) * 2
}

// keep makes the work independent of the caller's slice.
func (w *work) keep() {
	if w.kind == doCopyIn && !w.kept {
		w.host, w.kept = slices.Clone(w.host), true
	}
}

// do does work that is no record, wait or notification.
func (w *work) do() {
	switch w.kind {
	case doCall, doKernel:
		w.fn()
	case doCopy:
		copy(hostmem.Bytes(uintptr(w.dst), w.bytes), hostmem.Bytes(uintptr(w.src), w.bytes))
	case doCopyIn:
		copy(hostmem.Bytes(uintptr(w.dst), int64(len(w.host))), w.host)
	case doCopyOut:
		copy(w.host, hostmem.Bytes(uintptr(w.src), int64(len(w.host))))
	case doZero:
		clear(hostmem.Bytes(uintptr(w.dst), w.bytes))
	case doGemm:
		w.blas.run(w)
	case doSVD:
		w.svd.run()
	}
}

// tell says to who waits for a copy that it is over: after it was counted as
// finished, so that he finds the stream idle if nothing came behind it.
func (w *work) tell() {
	if w.over != nil {
		close(w.over)
		w.over = nil
	}
}

// drop lets go of work of a dead device.
func (w *work) drop() {
	switch w.kind {
	case doCopyOut:
		w.tell()
	case doGemm:
		w.blas.let()
	case doSVD:
		w.svd.let()
	}
}
