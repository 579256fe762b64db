package tensor

import (
	"context"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/provider/raft"
)

// product is C = alpha·A·B + beta·C for a batch of strided matrices, before it
// is known how BLAS can be asked for it.
//
// BLAS is column-major: a matrix must have stride 1 along its columns (as it
// lies) or along its rows (transposed, and then perhaps conjugated), and a
// leading dimension that steps past the other extent. So the result decides: as
// it lies, or, when its rows are the contiguous ones, as Cᵀ = Bᵀ·Aᵀ. An operand
// that fits neither way, that must be conjugated without being transposed, or
// that overlaps the result, is packed: copied to a temporary first. A result
// that fits neither way is computed in a temporary and copied.
type product struct {
	op          string
	precision   Precision
	raft        bool // in the place of BLAS
	alpha, beta complex128
	a, b, c     matrix // m×k, k×n, m×n
	batch       []batchAxis
	// unpacked: all three fit as they lie, and are to stay so, since a plan counts
	// on it that nothing is packed.
	unpacked bool
	oriented bool // it is in the form that BLAS takes, and nothing is packed
	swapped  bool // a is the caller's b, and b his a
}

// matrix is a rows×cols matrix in an array's memory, strides in elements.
type matrix struct {
	array      *Array
	offset     int64
	rows, cols int64
	rs, cs     int64
	conj       bool
}

// batchAxis repeats the product n times, stepping through the operands.
type batchAxis struct{ n, a, b, c int64 }

func (x *matrix) transpose() { x.rows, x.cols, x.rs, x.cs = x.cols, x.rows, x.cs, x.rs }

// plain says whether x has elements, none of them twice, and rows that lie as a
// program's usually do: one after another.
func (x *matrix) plain() bool {
	return x.cs == 1 && x.rs >= x.cols && x.cols > 0 && x.rows > 0 && !x.conj
}

// leading is the leading dimension of a rows×cols matrix as it lies, column-major;
// ok is false when it does not lie so.
func leading(rows, cols, rs, cs int64) (ld int64, ok bool) {
	if rs != 1 && rows > 1 {
		return 0, false
	}
	if cols <= 1 {
		return max(rows, 1), true
	}
	return cs, cs >= max(rows, 1)
}

// ld is the leading dimension of x, turnedLD that of its transpose. What a product
// asks for each of its operands takes a pointer: a matrix is large.
func (x *matrix) ld() (ld int64, ok bool)       { return leading(x.rows, x.cols, x.rs, x.cs) }
func (x *matrix) turnedLD() (ld int64, ok bool) { return leading(x.cols, x.rows, x.cs, x.rs) }

// form is how BLAS reads x: op and leading dimension.
func (x *matrix) form() (op driver.Op, ld int64, ok bool) {
	if !x.conj {
		if ld, ok := x.ld(); ok {
			return driver.NoTrans, ld, true
		}
	}
	ld, ok = x.turnedLD()
	if x.conj {
		return driver.ConjTrans, ld, ok
	}
	return driver.Trans, ld, ok
}

// fits says whether BLAS takes x as it lies.
func (x *matrix) fits() bool {
	_, _, ok := x.form()
	return ok
}

// packed is the number of elements that a's and b's packing copies.
func (p *product) packed() (n int64) {
	for i, x := range [...]*matrix{&p.a, &p.b} {
		if p.packs(x) {
			n += p.packSize(x, i)
		}
	}
	return n
}

func (p *product) packs(x *matrix) bool {
	return !x.fits() || x.array.Buffer() == p.c.array.Buffer() && x.array.overlaps(p.c.array)
}

func (p *product) packSize(x *matrix, which int) int64 {
	n := x.rows * x.cols
	for _, ax := range p.batch {
		if ax.step(which) != 0 {
			n *= ax.n
		}
	}
	return n
}

// step is the batch stride of operand 0 (a), 1 (b) or 2 (c).
func (x batchAxis) step(which int) int64 { return [...]int64{x.a, x.b, x.c}[which] }

// swap asks for the transposed product instead.
func (p *product) swap() {
	p.a, p.b, p.swapped = p.b, p.a, !p.swapped
	p.a.transpose()
	p.b.transpose()
	p.c.transpose()
	for i, x := range p.batch {
		p.batch[i].a, p.batch[i].b = x.b, x.a
	}
}

// orient brings the product into the form that BLAS takes with the least
// packing; false when the result fits neither way.
func (p *product) orient() bool {
	if p.c.conj { // conj(C) = conj(alpha)·conj(A)·conj(B) + conj(beta)·conj(C)
		p.a.conj, p.b.conj, p.c.conj = !p.a.conj, !p.b.conj, false
		p.alpha, p.beta = conjugate(p.alpha), conjugate(p.beta)
	}
	_, straight := p.c.ld()
	_, turned := p.c.turnedLD()
	if !straight && !turned {
		return false
	}
	if !straight {
		p.swap()
		return true
	}
	if turned && p.packed() > 0 {
		before := p.packed()
		if p.swap(); p.packed() >= before {
			p.swap()
		}
	}
	return true
}

func conjugate(z complex128) complex128 { return complex(real(z), -imag(z)) }

// simplify folds batch axes into the matrices where strides allow, innermost
// first, merges those that step evenly, and puts the longest last.
func (p *product) simplify() {
	if len(p.batch) == 0 {
		return
	}
	var axes []batchAxis // innermost first
	for _, x := range slices.Backward(p.batch) {
		if x.n == 1 || p.foldRows(x) || p.foldCols(x) {
			continue
		}
		if k := len(axes) - 1; k >= 0 {
			if in := axes[k]; x.a == in.n*in.a && x.b == in.n*in.b && x.c == in.n*in.c {
				axes[k].n *= x.n
				continue
			}
		}
		axes = append(axes, x)
	}
	slices.Reverse(axes)
	longest := 0
	for i, x := range axes {
		if x.n >= axes[longest].n {
			longest = i
		}
	}
	if len(axes) > 0 {
		x := axes[longest]
		axes = append(slices.Delete(axes, longest, longest+1), x)
	}
	p.batch = axes
}

// foldRows makes a batch axis that b does not step along part of the rows.
func (p *product) foldRows(x batchAxis) bool {
	if x.b != 0 {
		return false
	}
	a, c := p.a, p.c
	if p.a.rows == 1 {
		p.a.rs, p.c.rs = x.a, x.c
	} else if x.a != p.a.rows*p.a.rs || x.c != p.c.rows*p.c.rs {
		return false
	}
	p.a.rows *= x.n
	p.c.rows *= x.n
	if p.unpacked && !(p.a.fits() && p.c.fits()) {
		p.a, p.c = a, c
		return false
	}
	return true
}

// foldCols makes a batch axis that a does not step along part of the columns,
// which are the rows of the transposed product.
func (p *product) foldCols(x batchAxis) bool {
	p.swap()
	defer p.swap()
	return p.foldRows(batchAxis{n: x.n, a: x.b, b: x.a, c: x.c})
}

// run submits the product. Temporaries are taken before the lease and freed,
// in stream order, after the scope's end.
func (p *product) run(ctx context.Context) error {
	if p.c.rows == 0 || p.c.cols == 0 {
		return nil
	}
	for _, x := range p.batch {
		if x.n == 0 {
			return nil
		}
	}
	if p.a.cols == 0 {
		return p.scale(ctx)
	}
	if p.raft {
		if err := p.forRAFT(ctx); err != nil {
			return err
		}
	}
	if p.oriented {
		return p.runPacked(ctx, nil, nil)
	}
	p.simplify()
	if !p.orient() {
		return p.runThroughCopy(ctx)
	}
	var packA, packB *Array
	var err error
	if p.packs(&p.a) {
		if packA, err = p.temporary(ctx, p.a, 0); err != nil {
			return err
		}
		defer packA.Free()
	}
	if p.packs(&p.b) {
		if packB, err = p.temporary(ctx, p.b, 1); err != nil {
			return err
		}
		defer packB.Free()
	}
	return p.runPacked(ctx, packA, packB)
}

// runPacked submits the product in the form that BLAS takes, with memory to pack
// operands into.
func (p *product) runPacked(ctx context.Context, packA, packB *Array) error {
	var x multiplication
	if p.raft {
		x.raft = new(raft.Lease)
	}
	if err := x.begin(ctx, written(p.a.array, p.b.array, p.c.array), p.c.array); err != nil {
		return err
	}
	err := p.submit(&x, packA, packB)
	return x.end(err)
}

func (p *product) submit(x *multiplication, packA, packB *Array) error {
	acc := &x.acc
	size := driver.Ptr(p.c.array.dtype.Size())
	c := acc.Write(p.c.array.Buffer())
	open := func(x *matrix) driver.Ptr {
		if x.array.Buffer() == p.c.array.Buffer() {
			return c
		}
		return acc.Read(x.array.Buffer())
	}
	a, b := driver.Ptr(0), driver.Ptr(0)
	if p.a.cols > 0 {
		a, b = open(&p.a), open(&p.b)
	}
	var toA, toB driver.Ptr
	if packA != nil {
		toA = acc.Write(packA.Buffer())
	}
	if packB != nil {
		toB = acc.Write(packB.Buffer())
	}
	if acc.Err() != nil {
		return nil // End answers it
	}
	if packA != nil {
		if err := p.pack(x, &p.a, 0, a, packA, toA); err != nil {
			return err
		}
		a = toA
	}
	if packB != nil {
		if err := p.pack(x, &p.b, 1, b, packB, toB); err != nil {
			return err
		}
		b = toB
	}
	g := p.description()
	g.Batch = 1
	a += driver.Ptr(p.a.offset) * size
	b += driver.Ptr(p.b.offset) * size
	c += driver.Ptr(p.c.offset) * size
	outer := p.batch
	if k := len(p.batch) - 1; k >= 0 {
		ax := p.batch[k]
		g.Batch, g.StrideA, g.StrideB, g.StrideC = ax.n, ax.a, ax.b, ax.c
		outer = p.batch[:k]
	}
	if len(outer) == 0 {
		g.A, g.B, g.C = a, b, c
		return x.gemm(&g)
	}
	return p.repeat(x, &g, outer, a, b, c)
}

// description is what BLAS is asked for, without addresses and batch.
func (p *product) description() blas.Product {
	g := blas.Product{DType: p.c.array.dtype, Compute: p.precision.compute(), M: p.c.rows, N: p.c.cols, K: p.a.cols, Alpha: p.alpha, Beta: p.beta}
	g.OpA, g.LDA, _ = p.a.form()
	g.OpB, g.LDB, _ = p.b.form()
	g.LDC, _ = p.c.ld()
	if g.K == 0 { // empty operands fit however they lie
		g.OpA, g.OpB, g.LDA, g.LDB = driver.NoTrans, driver.NoTrans, g.M, 1
	}
	return g
}

// repeat submits the product once for each place of the outer batch axes.
func (p *product) repeat(x *multiplication, g *blas.Product, outer []batchAxis, a, b, c driver.Ptr) error {
	if len(outer) == 0 {
		g.A, g.B, g.C = a, b, c
		return x.gemm(g)
	}
	ax, size := outer[0], p.c.array.dtype.Size()
	for range ax.n {
		if err := p.repeat(x, g, outer[1:], a, b, c); err != nil {
			return err
		}
		a += driver.Ptr(ax.a * size)
		b += driver.Ptr(ax.b * size)
		c += driver.Ptr(ax.c * size)
	}
	return nil
}

// source is what packing copies: the batch axes that x steps along, its rows,
// its columns.
func (p *product) source(x matrix, which int) layout {
	var shape, strides []int64
	for _, ax := range p.batch {
		if s := ax.step(which); s != 0 {
			shape, strides = append(shape, ax.n), append(strides, s)
		}
	}
	return layoutOf(append(shape, x.rows, x.cols), append(strides, x.rs, x.cs))
}

// temporary makes the array that x is packed into: contiguous, and such that
// BLAS reads it as it lies.
func (p *product) temporary(ctx context.Context, x matrix, which int) (*Array, error) {
	l := p.source(x, which)
	return emptyOn(unscoped(ctx), p.op, x.array.memory(), x.array.dtype, l.shape())
}

// pack copies *x from address from to t at address to, and makes *x what was
// packed.
func (p *product) pack(m *multiplication, x *matrix, which int, from driver.Ptr, t *Array, to driver.Ptr) error {
	src := x.array.with(p.source(*x, which), x.offset)
	src.conj = x.conj
	if err := m.launch(copyOf(t, to, src, from)); err != nil {
		return err
	}
	packedAxis := 0
	for i, ax := range p.batch {
		if ax.step(which) == 0 {
			continue
		}
		step := t.strides()[packedAxis]
		if which == 0 {
			p.batch[i].a = step
		} else {
			p.batch[i].b = step
		}
		packedAxis++
	}
	*x = matrix{array: t, rows: x.rows, cols: x.cols, rs: t.strides()[t.rank-2], cs: t.strides()[t.rank-1]}
	return nil
}

// result is C with the batch axes.
func (p *product) result() *Array {
	shape := make([]int64, 0, len(p.batch)+2)
	strides := make([]int64, 0, len(p.batch)+2)
	for _, ax := range p.batch {
		shape, strides = append(shape, ax.n), append(strides, ax.c)
	}
	whole := p.c.array.with(layoutOf(append(shape, p.c.rows, p.c.cols), append(strides, p.c.rs, p.c.cs)), p.c.offset)
	whole.conj = p.c.conj
	return whole
}

// scale is a product without terms: C = beta·C, in place however C lies.
func (p *product) scale(ctx context.Context) error {
	beta, c := p.beta, p.result()
	if c.conj {
		beta = conjugate(beta)
	}
	return onStream(ctx, c, func(x *operation) error {
		v := c.view(x.acc.Write(c.Buffer()))
		if beta == 0 {
			return x.launch(&driver.Kernel{Op: driver.KernelFill, Out: v})
		}
		return x.launch(&driver.Kernel{Op: driver.KernelAxpby, Out: v, A: v, Alpha: beta})
	})
}

// runThroughCopy computes in a temporary, for results that BLAS cannot write.
func (p *product) runThroughCopy(ctx context.Context) error {
	whole := p.result()
	t, err := emptyOn(unscoped(ctx), p.op, p.c.array.memory(), p.c.array.dtype, whole.shape())
	if err != nil {
		return err
	}
	defer t.Free()
	if p.beta != 0 {
		if err := convertInto(ctx, t, whole); err != nil {
			return err
		}
	}
	q := *p
	q.batch = slices.Clone(p.batch)
	for i := range q.batch {
		q.batch[i].c = t.strides()[i]
	}
	q.c = matrix{array: t, rows: p.c.rows, cols: p.c.cols, rs: t.strides()[t.rank-2], cs: t.strides()[t.rank-1]}
	if err := q.run(ctx); err != nil {
		return err
	}
	return convertInto(ctx, whole, t)
}

// matrixOf is the matrix of an array's last two axes.
func matrixOf(a *Array) (x matrix) {
	x.of(a)
	return x
}

// of makes x matrixOf(a).
func (x *matrix) of(a *Array) {
	shape, strides, k := a.shape(), a.strides(), a.rank
	x.array, x.offset, x.conj = a, a.offset, a.conj
	x.rows, x.cols, x.rs, x.cs = shape[k-2], shape[k-1], strides[k-2], strides[k-1]
}

// scalars checks that a product's factors fit its element type.
func scalars(op string, dt DType, alpha, beta complex128) error {
	if imag(alpha) == 0 && imag(beta) == 0 && !dt.IsInteger() {
		return nil
	}
	for _, f := range [...]struct {
		name  string
		value complex128
	}{{"alpha", alpha}, {"beta", beta}} {
		if !dt.IsComplex() && imag(f.value) != 0 {
			return weir.Argf(op, "%s is %v for %v arrays; expected a real number", f.name, f.value, dt)
		}
		if dt.IsInteger() && real(f.value) != float64(int64(real(f.value))) {
			return weir.Argf(op, "%s is %v for %v arrays; expected an integer", f.name, real(f.value), dt)
		}
	}
	return nil
}
