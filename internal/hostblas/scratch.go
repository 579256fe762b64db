package hostblas

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// Scratch is the workspace of one BLAS handle. It grows with the products that
// it serves, up to about 7 MiB for each core that takes part. The zero value is
// ready; it is used by one goroutine at a time and must not be copied.
type Scratch struct {
	place   waiter
	threads [1]uintptr // the argument of external.setThreads
	workers []*worker

	// The products of one call, by how they use cores.
	lib   *Library
	alone []part // one after another, each while it holds all cores
	apart []part // together, their tiles handed to workers

	// The parts being computed. next is the first tile that no worker has taken.
	parts []part
	plan  plan
	next  atomic.Int64
	done  sync.WaitGroup // helpers at work

	panicked atomic.Pointer[Panic] // the first of the helpers that did
}

// part is the products of one description: one, a strided batch, or a group.
type part struct {
	g          driver.Gemm  // its scalars rounded, K = 0 where A and B are not read
	as, bs, cs []driver.Ptr // of a group; else nil
	plan       plan
	end        int64 // tiles of this part and of those before it
}

// Bytes is the memory that s holds outside the Go heap.
func (s *Scratch) Bytes() int64 {
	var n int64
	for _, w := range s.workers {
		n += w.staging.bytes + w.packing.bytes
	}
	return n
}

// Free gives the workspace back. The Scratch can be used again.
func (s *Scratch) Free() {
	for _, w := range s.workers {
		w.staging.release()
		w.packing.release()
	}
	s.workers = nil
}

// worker i of s, made at first use.
func (s *Scratch) worker(i int) *worker {
	for len(s.workers) <= i {
		w := &worker{s: s, call: newFortranCall()}
		// One closure for the worker's life, so that starting a helper does not
		// allocate.
		w.help = func() {
			defer s.done.Done()
			defer s.lib.cores.release(1)
			defer s.keepPanic()
			debug.SetPanicOnFault(true) // as its caller has it
			w.work()
		}
		s.workers = append(s.workers, w)
	}
	return s.workers[i]
}

// worker computes tiles on one core.
type worker struct {
	s       *Scratch
	part    int // of the tile that it had last
	call    *fortranCall
	help    func()
	staging region // blocks converted to the type that is computed with
	packing region // panels of a loop's own layout
}

// region is a worker's reusable block of memory. Small requests are served from
// fixed, which is always there.
type region struct {
	fixed  [1024]complex128 // complex128 for its alignment
	p      uintptr
	bytes  int64
	refuse bool // tests: as if the system had no memory
}

// reserve makes room for n bytes outside the Go heap.
func (r *region) reserve(n int64) bool {
	if n <= r.bytes {
		return true
	}
	if r.refuse {
		return false
	}
	r.release()
	p, err := hostmem.Alloc(n)
	if err != nil {
		return false
	}
	r.p, r.bytes = p, n
	return true
}

func (r *region) release() {
	if r.bytes > 0 {
		_ = hostmem.Free(r.p, r.bytes) // only a bug could make it fail
		r.p, r.bytes = 0, 0
	}
}

// extent is the size of a block of a product.
type extent struct{ m, n, k int64 }

func (e extent) within(m, n, k int64) extent {
	return extent{min(e.m, m), min(e.n, n), min(e.k, k)}
}

// room answers the block size to compute an m×n×k product of T with, and need
// elements for it: large blocks where the memory is had, else small ones, which
// always fit.
func room[T any](r *region, m, n, k int64, large, small extent, need func(extent) int64) (extent, []T) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	block := large.within(m, n, k)
	count := need(block)
	if count*size > int64(unsafe.Sizeof(r.fixed)) {
		if r.reserve(count * size) {
			return block, hostmem.Slice[T](r.p, count)
		}
		block = small.within(m, n, k)
		count = need(block)
	}
	return block, unsafe.Slice((*T)(unsafe.Pointer(&r.fixed)), count)
}
