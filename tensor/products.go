package tensor

import (
	"context"
	"math"
	goruntime "runtime"

	"github.com/weirgo/weir/buffer"
)

// Products are matrix products that need nothing of each other, gathered to be
// submitted as one operation: with one lease and one completion, and in as few
// launches as the device allows. Element types, shapes and factors may differ. It is
// for tensor/flow, which knows what needs what. It belongs to one goroutine.
type Products struct {
	*batch
	largest int64
}

// NewProducts makes an empty one, for products of at most so many multiplications.
// Close is to be called when it is not needed any more.
func NewProducts(largest int64) Products { return Products{batches.Get().(*batch), largest} }

// Close forgets the products and gives their memory to the next Products.
func (x Products) Close() { x.giveBack() }

// Len is how many products were gathered.
func (x Products) Len() int { return len(x.members) }

// Truncate forgets all but the first n, after a panic among what a context carries.
func (x Products) Truncate(n int) { x.members = x.members[:n] }

// MatMul gathers the product of two matrices, as MatMul computes it, and answers its
// result, for Submit to fill. ok is false of a product that is an operation by
// itself, and of one that MatMul refuses: nothing was gathered, and MatMul says why.
func (x Products) MatMul(ctx context.Context, a, b *Array, opts ...ProductOption) (c *Array, ok bool) {
	const op = "tensor.MatMul"
	o, err := optionsOf(op, opts)
	if err != nil || o.provider == RAFT || a.none() || b.none() || a.rank != 2 || b.rank != 2 || a.dtype != b.dtype || a.memory() != b.memory() {
		return nil, false
	}
	m, n := a.shape()[0], b.shape()[1]
	if a.shape()[1] != b.shape()[0] {
		return nil, false
	}
	number := len(x.members)
	p := x.slot()
	p.op, p.precision, p.alpha = op, o.precision, 1
	// To a column-major BLAS, row-major C = A·B is Cᵀ = Bᵀ·Aᵀ.
	p.a.of(b)
	p.b.of(a)
	p.a.transpose()
	p.b.transpose()
	p.c = matrix{rows: n, cols: m, rs: 1, cs: max(n, 1)}
	p.oriented = x.fits(&p.product) && p.a.fits() && p.b.fits()
	if p.oriented {
		c = x.result(ctx, a.memory(), a.dtype, m, n)
	}
	if c == nil {
		x.members = x.members[:number]
		return nil, false
	}
	p.c.array = c
	first := len(x.opened)
	x.opened = append(x.opened, opened{buffer: b.Buffer(), read: true}, opened{buffer: a.Buffer(), read: true}, opened{buffer: c.Buffer(), write: true})
	p.number, p.at, p.again, p.fresh = number, [3]int{first, first + 1, first + 2}, true, true
	return c, true
}

// slot is the next member, which is zero.
func (x Products) slot() *member {
	if n := len(x.members); n < cap(x.members) {
		x.members = x.members[:n+1]
		x.members[n] = member{}
	} else {
		x.members = append(x.members, member{})
	}
	return &x.members[len(x.members)-1]
}

// result is a new row-major matrix, or nil if there is no memory for it.
func (x Products) result(ctx context.Context, m *buffer.Memory, dt DType, rows, cols int64) *Array {
	if recordingOf(ctx) != nil { // what is made there is the recording's, and stays
		shape := [...]int64{rows, cols}
		a, err := emptyOn(ctx, "tensor.MatMul", m, dt, shape[:])
		if err != nil {
			return nil
		}
		return a
	}
	if rows*cols > math.MaxInt64/dt.Size() {
		return nil
	}
	var a *Array
	if bytes := rows * cols * dt.Size(); bytes >= watchedAlone {
		a = &Array{}
		if m.Init(&a.own, bytes) != nil {
			return nil
		}
	} else {
		if x.chunk == nil || x.used == len(x.chunk) {
			x.chunk, x.used = newChunk(), 0
		}
		a = &x.chunk[x.used]
		if m.InitPart(&a.own, bytes) != nil {
			return nil
		}
		x.used++
	}
	a.dtype, a.rank = dt, 2
	a.inline[0], a.inline[1], a.inline[inlineRank], a.inline[inlineRank+1] = rows, cols, cols, 1
	register(ctx, a)
	return a
}

// chunk is memory for several arrays, which the collector looks after together: to
// look after each costs half of what it takes to make one. So the memory of those
// that nobody freed is given back when none of the chunk is in use.
type chunk [8]Array

// watchedAlone is how many bytes make an array too large for a chunk, in which it may
// outlive its use. To take that much costs more than to look after it.
const watchedAlone = 1 << 20

func newChunk() *chunk {
	c := &chunk{}
	goruntime.SetFinalizer(c, func(c *chunk) {
		for i := range c {
			c[i].own.Unreachable()
		}
	})
	return c
}

// GemmInto gathers what GemmInto computes; see MatMul.
func (x Products) GemmInto(alpha complex128, a, b *Array, beta complex128, c *Array, opts ...ProductOption) (ok bool) {
	const op = "tensor.GemmInto"
	o, err := optionsOf(op, opts)
	if err != nil || o.provider == RAFT {
		return false
	}
	p := product{precision: o.precision}
	if p.plan(op, alpha, a, b, beta, c) != nil || !x.takes(&p) {
		return false
	}
	number := len(x.members)
	x.add(number, p)
	m := &x.members[number]
	x.opened[m.at[0]].read, x.opened[m.at[1]].read, x.opened[m.at[2]].write = true, true, true
	m.again = beta == 0
	return true
}

// takes says whether the product can go with the others as it lies, and brings it
// into that form.
func (x Products) takes(p *product) bool {
	if !x.fits(p) {
		return false
	}
	p.oriented = p.oriented || p.orient() && !p.packs(&p.a) && !p.packs(&p.b)
	return p.oriented
}

// fits says whether the product is of a kind and a size that go with the others.
func (x Products) fits(p *product) bool {
	if p.a.rows == 0 || p.a.cols == 0 || p.b.cols == 0 || p.a.array.dtype.IsInteger() {
		return false
	}
	return p.a.rows <= x.largest/p.a.cols/p.b.cols && (len(x.members) == 0 || p.a.array.memory() == x.members[0].a.array.memory())
}

// Again says whether product i, of those gathered, computes the same if it is
// submitted twice.
func (x Products) Again(i int) bool { return x.members[i].again }

// Discard frees the result of product i if MatMul made it.
func (x Products) Discard(i int) error {
	if !x.members[i].fresh {
		return nil
	}
	return x.members[i].c.array.Free()
}

// Submit submits what was gathered. If it fails, submitted says whether products
// may have been computed, in whole or in part; else nothing was done.
func (x Products) Submit(ctx context.Context) (submitted bool, err error) {
	const op = "tensor.Products"
	if len(x.members) == 0 {
		return false, nil
	}
	if err := x.apart(op); err != nil {
		return false, err
	}
	err = x.together(ctx, op)
	return x.submitted, err
}
