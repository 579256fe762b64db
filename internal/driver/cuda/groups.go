//go:build cuda

package cuda

// #include "blas.h"
// #cgo noescape weir_blas_groups
// #cgo nocallback weir_blas_groups
import "C"

import (
	"unsafe"

	"github.com/weirgo/weir/internal/driver"
)

// mostProducts is how many products of groups one submission takes; more are
// several.
const mostProducts = 8192

// addressBytes is the size of a handle's memory for addresses. It is filled in
// stream order, so that it serves one submission after the other.
const addressBytes = 3 * mostProducts * 8

// groups are what a handle gathers for one submission, in memory that it keeps.
type groups struct {
	pending   []members
	products  int
	addresses []driver.Ptr // those of all A, then all B, then all C
	calls     []C.struct_weir_gemm
}

// members are products from to to of a group.
type members struct {
	*driver.GemmGroup
	from, to int
}

func (m *members) count() int { return m.to - m.from }

// GemmGroups has integer products and those without terms, which cuBLAS has not,
// launched one by one; the others together.
func (b *blas) GemmGroups(st driver.Stream, all []driver.GemmGroup) error {
	const op = "BLAS.GemmGroups"
	s, err := b.device.ours(op, st)
	if err != nil {
		return err
	}
	if err := driver.CheckGemmGroups(op, b.device.name, all); err != nil {
		return err
	}
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	if b.destroyed.Load() {
		return b.device.closed(op, "handle")
	}
	defer b.drop()
	for i := range all {
		g := &all[i]
		switch {
		case g.M == 0 || g.N == 0:
		case g.K == 0 || g.DType.IsInteger():
			err = s.each(op, g)
		default:
			err = b.gather(op, s, g)
		}
		if err != nil {
			return err
		}
	}
	return b.flush(op, s)
}

// each launches the kernel of every product of g.
func (s *stream) each(op string, g *driver.GemmGroup) error {
	one := g.Gemm
	one.Batch = 1
	for i := range g.Cs {
		one.A, one.B, one.C = g.As[i], g.Bs[i], g.Cs[i]
		err := error(nil)
		if g.K == 0 {
			err = s.scale(op, &one)
		} else {
			err = s.integers(op, &one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gather adds g's products to those of the next submission, and submits whenever
// there are enough.
func (b *blas) gather(op string, s *stream, g *driver.GemmGroup) error {
	for from := 0; from < len(g.Cs); {
		m := members{g, from, min(len(g.Cs), from+mostProducts-b.products)}
		b.pending = append(b.pending, m)
		b.products += m.count()
		from = m.to
		if b.products == mostProducts {
			if err := b.flush(op, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush submits what was gathered.
func (b *blas) flush(op string, s *stream) error {
	defer b.drop()
	if b.products == 0 {
		return nil
	}
	if b.products == 1 { // needs no addresses in device memory
		m := &b.pending[0]
		one := m.Gemm
		one.A, one.B, one.C, one.Batch = m.As[m.from], m.Bs[m.from], m.Cs[m.from], 1
		return b.multiply(op, s, &one)
	}
	if err := b.move(op, s); err != nil {
		return err
	}
	if s.capturing != nil {
		return b.captured(op, s)
	}
	b.collect()
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&b.addresses[0])), len(b.addresses)*8)
	if err := s.stage(op, driver.Ptr(b.at), bytes); err != nil {
		return err
	}
	result := C.weir_blas_groups(b.context.handle, b.handle, &b.calls[0], C.size_t(len(b.calls)))
	return b.device.checkLibrary(op, "cublas", b.context, result)
}

// captured has each group captured as a launch of its own: cuBLAS does not say that
// grouped products can be. The addresses lie in the graph's memory, and are written
// there by nothing that is captured.
func (b *blas) captured(op string, s *stream) error {
	for i := range b.pending {
		m := &b.pending[i]
		as, bs, cs := m.As[m.from:m.to], m.Bs[m.from:m.to], m.Cs[m.from:m.to]
		call := describe(&m.Gemm)
		if call.batch = C.int64_t(m.count()); call.batch == 1 {
			call.a, call.b, call.c = C.uint64_t(as[0]), C.uint64_t(bs[0]), C.uint64_t(cs[0])
		} else {
			at, err := s.capturing.place(op, as, bs, cs)
			if err != nil {
				return err
			}
			call.arrays, call.a, call.b, call.c = 1, at, at+C.uint64_t(8*len(as)), at+C.uint64_t(16*len(as))
		}
		if err := b.device.checkLibrary(op, "cublas", b.context, C.weir_blas_gemm(b.context.handle, b.handle, &call)); err != nil {
			return err
		}
	}
	return nil
}

// collect puts the addresses together and describes the groups that read them.
func (b *blas) collect() {
	b.addresses, b.calls = b.addresses[:0], b.calls[:0]
	for _, m := range b.pending {
		call := describe(&m.Gemm)
		call.arrays, call.batch = 1, C.int64_t(m.count())
		before := len(b.addresses)
		call.a = b.at + C.uint64_t(8*before)
		call.b = b.at + C.uint64_t(8*(b.products+before))
		call.c = b.at + C.uint64_t(8*(2*b.products+before))
		b.calls = append(b.calls, call)
		b.addresses = append(b.addresses, m.As[m.from:m.to]...)
	}
	for _, m := range b.pending {
		b.addresses = append(b.addresses, m.Bs[m.from:m.to]...)
	}
	for _, m := range b.pending {
		b.addresses = append(b.addresses, m.Cs[m.from:m.to]...)
	}
}

// drop forgets what was gathered.
func (b *blas) drop() {
	clear(b.pending)
	b.pending, b.products = b.pending[:0], 0
}
