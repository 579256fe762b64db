//go:build cuda

package cuda

// #include "solver.h"
// #cgo noescape weir_solver_new
// #cgo noescape weir_solver_reserve
// #cgo noescape weir_solver_read
// #cgo noescape weir_solver_svd_sizes
// #cgo noescape weir_solver_svd
import "C"

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// solver is a cuSOLVER handle with a workspace of its own.
type solver struct {
	device    *device
	context   *context
	handle    *C.struct_weir_solver
	bytes     atomic.Int64 // of the workspace
	destroyed atomic.Bool
}

func (d *device) NewSolver() (driver.Solver, error) {
	const op = "Device.NewSolver"
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	h := &solver{device: d, context: c}
	if err := d.checkLibrary(op, "cusolver", c, C.weir_solver_new(c.handle, &h.handle)); err != nil {
		d.release()
		return nil, err
	}
	return h, nil
}

// Native is the cusolverDnHandle_t, for foreign code while the handle lives.
func (h *solver) Native() uintptr { return uintptr(C.weir_solver_native(h.handle)) }

func (h *solver) WorkspaceBytes() int64 { return h.bytes.Load() }

func (h *solver) Destroy() error {
	const op = "Solver.Destroy"
	if h.destroyed.Swap(true) {
		return h.device.alive(op)
	}
	defer h.device.release()
	h.bytes.Store(0)
	if err := h.device.alive(op); err != nil {
		C.weir_solver_forget(h.handle)
		return err
	}
	return h.device.check(op, C.weir_solver_destroy(h.context.handle, h.handle))
}

// SVD calls gesvd, the QR iteration, which waits for the stream: it looks at the
// matrix on the host in between, as cuSOLVER's other methods do (12.0, measured).
// So the questions here may wait too. They are whether A is finite, since gesvd
// goes on for very long with NaN and infinity, and whether the iteration
// converged; where not, the results are filled with NaN.
//
// gesvd wants a matrix that is not wider than long. A wide one is transposed:
// Aᵀ = U'·S·V' makes U = V'ᵀ and VH = U'ᵀ.
func (h *solver) SVD(st driver.Stream, p *driver.SVD) error {
	const op = "Solver.SVD"
	s, err := h.device.ours(op, st)
	if err != nil {
		return err
	}
	if err := driver.CheckSVD(op, h.device.name, p); err != nil {
		return err
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if h.destroyed.Load() {
		return h.device.closed(op, "handle")
	}
	if min(p.M, p.N) == 0 {
		return s.identities(op, p)
	}
	d := decomposition{solver: h, stream: s, op: op, given: p, tall: *p}
	if err := d.reserve(); err != nil {
		return err
	}
	if err := h.check(op, C.weir_solver_begin(h.context.handle, h.handle, s.handle, C.uint64_t(s.serial))); err != nil {
		return err
	}
	err = d.run()
	if ended := h.check(op, C.weir_solver_end(h.context.handle, h.handle, s.handle)); err == nil {
		err = ended
	}
	return err
}

func (h *solver) check(op string, result C.int) error {
	return h.device.checkLibrary(op, "cusolver", h.context, result)
}

// identities are the full factors of a matrix without elements.
func (s *stream) identities(op string, p *driver.SVD) error {
	if p.Factors != driver.FactorsFull {
		return nil
	}
	for _, x := range [...]struct {
		at    driver.Ptr
		n, ld int64
	}{{p.U, p.M, p.LDU}, {p.VH, p.N, p.LDVH}} {
		if x.n == 0 {
			continue
		}
		diagonal := driver.View{Ptr: x.at, DType: p.DType, Shape: []int64{x.n}, Strides: []int64{x.ld + 1}}
		if err := s.fill(op, matrix(p.DType, x.at, x.n, x.n, x.ld), 0); err != nil {
			return err
		}
		if err := s.fill(op, diagonal, 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) fill(op string, v driver.View, value complex128) error {
	return s.launch(op, &driver.Kernel{Op: driver.KernelFill, Out: v, Alpha: value}, 1)
}

// matrix is a column-major matrix as kernels see it, columns first.
func matrix(t dtype.DType, at driver.Ptr, rows, columns, ld int64) driver.View {
	return driver.View{Ptr: at, DType: t, Shape: []int64{columns, rows}, Strides: []int64{ld, 1}}
}

// transposed is the transpose of a view of two axes.
func transposed(v driver.View) driver.View {
	return driver.View{Ptr: v.Ptr, DType: v.DType, Shape: []int64{v.Shape[1], v.Shape[0]}, Strides: []int64{v.Strides[1], v.Strides[0]}}
}

// decomposition is one call: what was given, and the problem for cuSOLVER, which
// is the same or lies in the workspace.
type decomposition struct {
	solver *solver
	stream *stream
	op     string
	given  *driver.SVD
	tall   driver.SVD
	call   C.struct_weir_svd
	sums   driver.Ptr // of the columns, and then of all
}

func (d *decomposition) wide() bool { return d.given.M < d.given.N }

// reserve lays the workspace out.
func (d *decomposition) reserve() error {
	p, h := &d.tall, d.solver
	columnsU, rowsVH := d.given.FactorExtents()
	if d.wide() {
		p.M, p.N = p.N, p.M
		columnsU, rowsVH = rowsVH, columnsU
		p.LDA, p.LDU, p.LDVH = p.M, p.M, max(rowsVH, 1)
	}
	p.LDU, p.LDVH = max(p.LDU, p.M), max(p.LDVH, rowsVH, 1) // also where there are none
	d.call = C.struct_weir_svd{dtype: C.int32_t(p.DType), factors: C.int32_t(p.Factors), m: C.int64_t(p.M), n: C.int64_t(p.N),
		lda: C.int64_t(p.LDA), ldu: C.int64_t(p.LDU), ldvh: C.int64_t(p.LDVH)}
	if err := h.check(d.op, C.weir_solver_svd_sizes(h.context.handle, h.handle, &d.call)); err != nil {
		return err
	}
	size := p.DType.Size()
	var end int64 // of the workspace
	place := func(bytes int64) driver.Ptr {
		const apart = 256
		at := end
		end += (bytes + apart - 1) &^ (apart - 1)
		return driver.Ptr(at)
	}
	work, info, sums := place(int64(d.call.work_bytes)), place(4), place((p.N+1)*size)
	var a, u, vh driver.Ptr
	if d.wide() {
		a, u, vh = place(p.M*p.N*size), place(p.M*columnsU*size), place(rowsVH*p.N*size)
	}
	if end < 0 { // more than an int64 holds
		return h.device.outOfMemory(d.op, "asked for a workspace of more than 2^63 bytes")
	}
	var at C.uint64_t
	var has C.size_t
	result := C.weir_solver_reserve(h.context.handle, h.handle, C.size_t(end), &at, &has)
	h.bytes.Store(int64(has))
	if result == codeOutOfMemory {
		return h.device.outOfMemory(d.op, "asked for a workspace of %d bytes%s", end, h.device.freeNow())
	}
	if err := h.device.check(d.op, result); err != nil {
		return err
	}
	base := driver.Ptr(at)
	d.sums = base + sums
	if d.wide() {
		p.A, p.U, p.VH = base+a, base+u, base+vh
	}
	d.call.work, d.call.info = at+C.uint64_t(work), at+C.uint64_t(info)
	d.call.a, d.call.s, d.call.u, d.call.vh = C.uint64_t(p.A), C.uint64_t(p.S), C.uint64_t(p.U), C.uint64_t(p.VH)
	return nil
}

func (d *decomposition) run() error {
	p, h := &d.tall, d.solver
	a := matrix(p.DType, p.A, p.M, p.N, p.LDA)
	if d.wide() {
		given := matrix(p.DType, d.given.A, d.given.M, d.given.N, d.given.LDA)
		if err := d.copy(a, transposed(given)); err != nil {
			return err
		}
	}
	finite, err := d.finite(a)
	if err != nil {
		return err
	}
	if !finite {
		return d.fail()
	}
	if err := h.check(d.op, C.weir_solver_svd(h.context.handle, h.handle, &d.call)); err != nil {
		return err
	}
	var info [4]byte
	if err := d.read(driver.Ptr(d.call.info), info[:]); err != nil {
		return err
	}
	if info != [4]byte{} {
		return d.fail()
	}
	if !d.wide() || p.Factors == driver.FactorsNone {
		return nil
	}
	g := d.given
	columnsU, rowsVH := g.FactorExtents()
	if err := d.copy(matrix(g.DType, g.U, g.M, columnsU, g.LDU), transposed(matrix(p.DType, p.VH, columnsU, g.M, p.LDVH))); err != nil {
		return err
	}
	return d.copy(matrix(g.DType, g.VH, rowsVH, g.N, g.LDVH), transposed(matrix(p.DType, p.U, g.N, rowsVH, p.LDU)))
}

func (d *decomposition) copy(to, from driver.View) error {
	return d.stream.launch(d.op, &driver.Kernel{Op: driver.KernelCopy, Out: to, A: from}, 2)
}

// finite says whether all elements are. Their sum is then, unless it overflows; so
// if it is not, a second sum is of smaller elements.
func (d *decomposition) finite(a driver.View) (bool, error) {
	finite, err := d.finiteSum(a)
	if finite || err != nil {
		return finite, err
	}
	const small = 0x1p-64 // there are fewer elements than 2^62
	if err := d.scale(a, small); err != nil {
		return false, err
	}
	if finite, err = d.finiteSum(a); !finite || err != nil {
		return false, err
	}
	return true, d.scale(a, 1/small)
}

// scale multiplies a by a power of 2, which is exact but for elements that are
// nothing beside the largest.
func (d *decomposition) scale(a driver.View, by float64) error {
	return d.stream.launch(d.op, &driver.Kernel{Op: driver.KernelAxpby, Out: a, A: a, Alpha: complex(by, 0)}, 2)
}

// finiteSum says whether the sum of all elements is finite.
func (d *decomposition) finiteSum(a driver.View) (bool, error) {
	t, n := a.DType, a.Shape[0]
	columns := driver.View{Ptr: d.sums, DType: t, Shape: []int64{n}, Strides: []int64{1}}
	all := driver.View{Ptr: d.sums + driver.Ptr(n*t.Size()), DType: t}
	if err := d.stream.launch(d.op, &driver.Kernel{Op: driver.KernelSum, Out: columns, A: a}, 2); err != nil {
		return false, err
	}
	if err := d.stream.launch(d.op, &driver.Kernel{Op: driver.KernelSum, Out: all, A: columns}, 2); err != nil {
		return false, err
	}
	var room [16]byte
	sum := room[:t.Size()]
	if err := d.read(all.Ptr, sum); err != nil {
		return false, err
	}
	for len(sum) > 0 {
		var x float64
		if t.Real() == dtype.Float32 {
			x = float64(math.Float32frombits(binary.NativeEndian.Uint32(sum)))
			sum = sum[4:]
		} else {
			x = math.Float64frombits(binary.NativeEndian.Uint64(sum))
			sum = sum[8:]
		}
		if x-x != 0 {
			return false, nil
		}
	}
	return true, nil
}

// read copies from the device, and waits for the stream.
func (d *decomposition) read(from driver.Ptr, to []byte) error {
	h := d.solver
	return h.device.check(d.op, C.weir_solver_read(h.context.handle, d.stream.handle, C.uint64_t(from), C.size_t(len(to)), unsafe.Pointer(&to[0])))
}

// fail makes all results NaN.
func (d *decomposition) fail() error {
	g := d.given
	nan := complex(math.NaN(), math.NaN())
	columnsU, rowsVH := g.FactorExtents()
	results := []driver.View{{Ptr: g.S, DType: g.DType.Real(), Shape: []int64{min(g.M, g.N)}, Strides: []int64{1}}}
	if g.Factors != driver.FactorsNone {
		results = append(results, matrix(g.DType, g.U, g.M, columnsU, g.LDU), matrix(g.DType, g.VH, rowsVH, g.N, g.LDVH))
	}
	for _, v := range results {
		if err := d.stream.fill(d.op, v, nan); err != nil {
			return err
		}
	}
	return nil
}
