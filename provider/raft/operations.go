package raft

import (
	"sync"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/rows"
)

// Product describes C = alpha·op(A)·op(B) + beta·C, batched, column-major, as package
// blas has it. Compute is not read: nothing is rounded before it is multiplied.
type Product = driver.Gemm

// Reduction is what a row is reduced to.
type Reduction = rows.Reduction

const (
	Sum  = rows.Sum
	Mean = rows.Mean
	Norm = rows.Norm // root of the sum of squares
	Min  = rows.Min
	Max  = rows.Max
)

// Reducing describes what each of Rows rows of N elements at A, one row after another,
// is reduced to: an element at Out. Sums are of float64, rounded once; where a row has a
// NaN, so is its result. N is at least 1.
type Reducing struct {
	DType   dtype.DType // float32 or float64
	To      Reduction
	Rows, N int64
	A, Out  driver.Ptr
}

// Selection describes the K largest or smallest elements of each of Rows rows of N
// elements at A: K values in their order, and where in the row they are, int64, both row
// after row. Elements are ordered as their bits are: NaN lies beyond infinity of its
// sign. Which of equal ones are taken is not said. K is 1 to N.
type Selection struct {
	DType              dtype.DType // float32 or float64
	Smallest           bool
	Rows, N, K         int64
	A, Values, Indices driver.Ptr
}

// Decomposition describes the K largest singular values S of the M×N matrix A and their
// vectors, the columns of U, M×K, and of V, N×K, as random projections onto
// K + Oversampling dimensions approximate them, which Iterations power iterations
// sharpen (Halko, Martinsson and Tropp, "Finding structure with randomness", 2011,
// algorithm 4.4). Matrices are column-major without gaps. K is at least 1, and
// K + Oversampling less than M and N, and than 2³¹ over the larger of them. With NaN or
// infinity in A all results are NaN.
type Decomposition struct {
	DType                    dtype.DType // float32 or float64
	M, N, K                  int64
	Oversampling, Iterations int64
	A, U, S, V               driver.Ptr
}

// Gemm submits a product to the lease's stream; each of a batch is one of RAFT's. No
// extent is 0, and each fits in 32 bits. Addresses come from an open access on that
// stream, as those of the other operations do.
func Gemm(l *Lease, p *Product) error {
	const op = "raft.Gemm"
	c, err := begin(l, op)
	if err != nil {
		return err
	}
	defer c.end()
	if err := driver.CheckGemm(op, c.dev.Name(), p); err != nil {
		return err
	}
	c.alpha, c.beta = real(p.Alpha), real(p.Beta)
	stored := func(i int, at driver.Ptr, op driver.Op, rows, cols, ld int64) {
		rs, cs := int64(1), ld
		if op != driver.NoTrans {
			rs, cs = ld, 1
		}
		c.view(i, p.DType, at, [2]int64{rows, cols}, [2]int64{rs, cs})
	}
	size := p.DType.Size()
	for i := range p.Batch {
		step := func(at driver.Ptr, stride int64) driver.Ptr { return at + driver.Ptr(i*stride*size) }
		stored(0, step(p.A, p.StrideA), p.OpA, p.M, p.K, p.LDA)
		stored(1, step(p.B, p.StrideB), p.OpB, p.K, p.N, p.LDB)
		stored(2, step(p.C, p.StrideC), driver.NoTrans, p.M, p.N, p.LDC)
		if err := c.submit(c.operations.gemm, address(&c.alpha), address(&c.views[0]), address(&c.views[1]), address(&c.beta), address(&c.views[2])); err != nil {
			return err
		}
	}
	return nil
}

// Reduce submits a reduction to the lease's stream.
func Reduce(l *Lease, p *Reducing) error {
	c, err := begin(l, "raft.Reduce")
	if err != nil {
		return err
	}
	defer c.end()
	c.view(0, p.DType, p.A, [2]int64{p.Rows, p.N}, [2]int64{p.N, 1})
	c.vector(1, p.DType, p.Out, p.Rows)
	return c.submit(c.operations.reduce, uintptr(p.To), address(&c.views[0]), address(&c.views[1]))
}

// SelectK submits a selection to the lease's stream.
func SelectK(l *Lease, p *Selection) error {
	c, err := begin(l, "raft.SelectK")
	if err != nil {
		return err
	}
	defer c.end()
	smallest := uintptr(0)
	if p.Smallest {
		smallest = 1
	}
	c.view(0, p.DType, p.A, [2]int64{p.Rows, p.N}, [2]int64{p.N, 1})
	c.view(1, p.DType, p.Values, [2]int64{p.Rows, p.K}, [2]int64{p.K, 1})
	c.view(2, dtype.Int64, p.Indices, [2]int64{p.Rows, p.K}, [2]int64{p.K, 1})
	return c.submit(c.operations.selectK, smallest, address(&c.views[0]), address(&c.views[1]), address(&c.views[2]))
}

// RandomizedSVD submits a decomposition to the lease's stream, and waits for it.
func RandomizedSVD(l *Lease, p *Decomposition) error {
	c, err := begin(l, "raft.RandomizedSVD")
	if err != nil {
		return err
	}
	defer c.end()
	c.view(0, p.DType, p.A, [2]int64{p.M, p.N}, [2]int64{1, p.M})
	c.view(1, p.DType, p.U, [2]int64{p.M, p.K}, [2]int64{1, p.M})
	c.vector(2, p.DType, p.S, p.K)
	c.view(3, p.DType, p.V, [2]int64{p.N, p.K}, [2]int64{1, p.N})
	return c.submit(c.operations.rsvd, address(&c.views[0]), address(&c.views[1]), address(&c.views[2]), address(&c.views[3]),
		uintptr(p.Oversampling), uintptr(p.Iterations))
}

// view is csrc/native's rr_view, bound.
type view struct {
	data           driver.Ptr
	dtype          int32 // the interface's codes are dtype's numbers
	memory         int32
	device         int32
	rank           int32
	shape, strides [8]int64
}

// ofDevice is RR_MEMORY_DEVICE.
const ofDevice = 2

// call is one call of an operation with what it reads, which lies on the heap.
type call struct {
	*Handle
	lease       *Lease
	op          string
	stream      uintptr
	views       [4]view
	alpha, beta float64
}

var calls = sync.Pool{New: func() any { return new(call) }}

func begin(l *Lease, op string) (*call, error) {
	h, err := l.Value()
	if err != nil {
		return nil, err
	}
	s, err := l.Stream().Submit()
	if err != nil {
		return nil, err
	}
	c := calls.Get().(*call)
	c.Handle, c.lease, c.op, c.stream = h, l, op, s.Native()
	return c, nil
}

func (c *call) end() {
	*c = call{}
	calls.Put(c)
}

// view fills in view i, of a matrix.
func (c *call) view(i int, dt dtype.DType, at driver.Ptr, shape, strides [2]int64) {
	c.vector(i, dt, at, shape[0])
	v := &c.views[i]
	v.rank = 2
	copy(v.shape[:], shape[:])
	copy(v.strides[:], strides[:])
}

func (c *call) vector(i int, dt dtype.DType, at driver.Ptr, n int64) {
	v := &c.views[i]
	*v = view{data: at, dtype: int32(dt), memory: ofDevice, device: int32(c.dev.Ordinal()), rank: 1}
	v.shape[0], v.strides[0] = n, 1
}

// submit calls an operation of libweirraft, which take the handle and the stream first.
func (c *call) submit(fn uintptr, args ...uintptr) error {
	var all [8]uintptr
	all[0], all[1] = c.Handle.handle, c.stream
	n := copy(all[2:], args)
	err := c.operations.call(c.op, c.dev.Name(), fn, all[:2+n]...)
	if err != nil {
		c.lease.Break()
	}
	return err
}
