package tensor

import (
	"context"

	"github.com/weirgo/weir"
)

// MatMul is the matrix product of the last two axes, as NumPy's matmul: the
// leading axes stretch to a common shape; a vector counts as a row on the left
// and as a column on the right, and the result loses that axis. Operands have
// one element type; float16 and bfloat16 accumulate in float32, integers wrap.
// The result is a new row-major array.
//
// Results on the host device and on CUDA agree within K·eps·|A|·|B|, K being
// the summed extent and eps the accumulation type's, unless a Precision allows
// more.
func MatMul(ctx context.Context, a, b *Array, opts ...ProductOption) (*Array, error) {
	const op = "tensor.MatMul"
	o, err := optionsOf(op, opts)
	if err != nil {
		return nil, err
	}
	if err := sameDevice(op, namesAB, a, b); err != nil {
		return nil, err
	}
	if err := sameDType(op, namesAB, a, b); err != nil {
		return nil, err
	}
	if a.rank == 0 || b.rank == 0 {
		return nil, weir.Argf(op, "a is %s and b %s; expected at least one axis each", shapeString(a.shape()), shapeString(b.shape()))
	}
	left, right := a, b
	if a.rank == 1 {
		left = a.with(layoutOf([]int64{1, a.shape()[0]}, []int64{0, a.strides()[0]}), a.offset)
	}
	if b.rank == 1 {
		right = b.with(layoutOf([]int64{b.shape()[0], 1}, []int64{b.strides()[0], 0}), b.offset)
	}
	shape, p, err := matmulPlan(op, a, b, left, right)
	if err != nil {
		return nil, err
	}
	c, err := emptyOn(ctx, op, a.memory(), a.dtype, shape.shape())
	if err != nil {
		return nil, err
	}
	p.c, p.precision, p.raft = matrixOf(c), o.precision, o.provider.computes(c)
	for i := range p.batch {
		p.batch[i].c = c.strides()[i]
	}
	rows, cols := p.c.rows, p.c.cols
	if err := p.run(ctx); err != nil {
		return nil, join(err, c.Free())
	}
	if a.rank == 1 || b.rank == 1 {
		dims := shape.shape()[:shape.rank-2]
		if a.rank > 1 {
			dims = append(dims, rows)
		}
		if b.rank > 1 {
			dims = append(dims, cols)
		}
		c.layout = rowMajor(dims)
	}
	return c, nil
}

// matmulPlan checks extents and answers the shape of the result and the
// product without it.
func matmulPlan(op string, a, b, left, right *Array) (layout, product, error) {
	p := product{op: op, alpha: 1, a: matrixOf(left), b: matrixOf(right)}
	if p.a.cols != p.b.rows {
		return layout{}, p, weir.Argf(op, "a is %s and b %s; expected a's last extent, %d, to equal b's %s, %d",
			shapeString(a.shape()), shapeString(b.shape()), p.a.cols, map[bool]string{true: "only one", false: "last but one"}[b.rank == 1], p.b.rows)
	}
	rank := max(left.rank, right.rank)
	out := newLayout(rank)
	for i := range rank - 2 {
		na, sa := batchAt(left, rank, i)
		nb, sb := batchAt(right, rank, i)
		n := max(na, nb)
		if na == 0 || nb == 0 {
			n = 0
		}
		if na != n && na != 1 || nb != n && nb != 1 {
			return layout{}, p, weir.Argf(op, "a is %s and b %s; their leading axes do not stretch to one shape", shapeString(a.shape()), shapeString(b.shape()))
		}
		if na == 1 {
			sa = 0
		}
		if nb == 1 {
			sb = 0
		}
		out.shape()[i] = n
		p.batch = append(p.batch, batchAxis{n: n, a: sa, b: sb})
	}
	out.shape()[rank-2], out.shape()[rank-1] = p.a.rows, p.b.cols
	return out, p, nil
}

// batchAt is the extent and stride of batch axis i of rank-2 ones, missing
// leading ones being 1.
func batchAt(a *Array, rank, i int) (n, stride int64) {
	if i -= rank - a.rank; i < 0 {
		return 1, 0
	}
	return a.shape()[i], a.strides()[i]
}

// GemmInto computes c = alpha·a·b + beta·c for matrices of one element type.
// Transposition, conjugation and leading dimensions come from the arrays'
// strides. beta = 0 does not read c, so NaNs in it do not survive; an extent of
// 0 between a and b still scales c. Where c overlaps a or b, that operand is
// copied first. With factors that do not fit the element type it is an
// ErrArgument.
func GemmInto(ctx context.Context, alpha complex128, a, b *Array, beta complex128, c *Array, opts ...ProductOption) error {
	const op = "tensor.GemmInto"
	o, err := optionsOf(op, opts)
	if err != nil {
		return err
	}
	p := product{precision: o.precision}
	if err := p.plan(op, alpha, a, b, beta, c); err != nil {
		return err
	}
	p.raft = o.provider.computes(c)
	return p.run(ctx)
}

// plan checks the operands of GemmInto and makes p their product.
func (p *product) plan(op string, alpha complex128, a, b *Array, beta complex128, c *Array) error {
	if err := sameDevice(op, namesABC, a, b, c); err != nil {
		return err
	}
	if a.dtype != b.dtype || a.dtype != c.dtype {
		return sameDType(op, namesABC, a, b, c)
	}
	if err := scalars(op, c.dtype, alpha, beta); err != nil {
		return err
	}
	if a.rank != 2 || b.rank != 2 || c.rank != 2 {
		return weir.Argf(op, "a is %s, b %s and c %s; expected matrices", shapeString(a.shape()), shapeString(b.shape()), shapeString(c.shape()))
	}
	p.op, p.alpha, p.beta = op, alpha, beta
	p.a.of(a)
	p.b.of(b)
	p.c.of(c)
	if p.a.cols != p.b.rows || p.c.rows != p.a.rows || p.c.cols != p.b.cols {
		return weir.Argf(op, "a is %s, b %s and c %s; expected m×k, k×n and m×n", shapeString(a.shape()), shapeString(b.shape()), shapeString(c.shape()))
	}
	if p.a.plain() && p.b.plain() && p.c.plain() && a.Buffer() != c.Buffer() && b.Buffer() != c.Buffer() {
		p.swap()
		p.oriented = true
		return nil
	}
	return writable(op, c)
}
