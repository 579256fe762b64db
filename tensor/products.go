package tensor

import "context"

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

// MatMul gathers the product of two matrices, as MatMul computes it, and answers its
// result, for Submit to fill. ok is false of a product that is an operation by
// itself, and of one that MatMul refuses: nothing was gathered, and MatMul says why.
func (x Products) MatMul(ctx context.Context, a, b *Array, opts ...ProductOption) (c *Array, ok bool) {
	const op = "tensor.MatMul"
	o, err := optionsOf(op, opts)
	if err != nil || a.none() || b.none() || a.rank != 2 || b.rank != 2 || a.dtype != b.dtype || a.memory() != b.memory() {
		return nil, false
	}
	p := product{op: op, precision: o.precision, alpha: 1, a: matrixOf(a), b: matrixOf(b)}
	m, n := p.a.rows, p.b.cols
	if p.a.cols != p.b.rows {
		return nil, false
	}
	p.c = matrix{rows: m, cols: n, rs: n, cs: 1}
	if !x.takes(&p) {
		return nil, false
	}
	shape := [...]int64{m, n}
	if c, err = emptyOn(ctx, op, a.memory(), a.dtype, shape[:]); err != nil {
		return nil, false
	}
	p.c.array = c
	first := len(x.opened)
	x.opened = append(x.opened, opened{buffer: p.a.array.Buffer(), read: true}, opened{buffer: p.b.array.Buffer(), read: true},
		opened{buffer: c.Buffer(), write: true})
	x.members = append(x.members, member{product: p, number: len(x.members), at: [3]int{first, first + 1, first + 2}, again: true, fresh: true})
	return c, true
}

// GemmInto gathers what GemmInto computes; see MatMul.
func (x Products) GemmInto(alpha complex128, a, b *Array, beta complex128, c *Array, opts ...ProductOption) (ok bool) {
	const op = "tensor.GemmInto"
	o, err := optionsOf(op, opts)
	if err != nil {
		return false
	}
	p, err := gemmPlan(op, alpha, a, b, beta, c)
	if err != nil {
		return false
	}
	p.precision = o.precision
	if !x.takes(&p) {
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
	if p.a.rows == 0 || p.a.cols == 0 || p.b.cols == 0 || p.a.rows*p.a.cols > x.largest/p.b.cols || p.a.array.dtype.IsInteger() || len(x.members) > 0 && p.a.array.memory() != x.members[0].a.array.memory() {
		return false
	}
	p.oriented = p.orient() && !p.packs(&p.a) && !p.packs(&p.b)
	return p.oriented
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
