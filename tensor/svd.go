package tensor

import (
	"context"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/solver"
)

// SVDOption says which factors SVD answers; see FullFactors and Rank.
type SVDOption func(*decomposition)

// FullFactors has SVD answer square factors: u m×m and vh n×n. What is beyond
// the first min(m, n) vectors completes them, in no particular way.
func FullFactors() SVDOption { return func(d *decomposition) { d.factors = solver.Full } }

// Rank has SVD answer the k largest singular values and their vectors, or all
// where there are no more. Their product is as near to a as a matrix of that rank
// can be (Eckart and Young, 1936). All are computed, and the results are views
// that keep the memory of all.
func Rank(k int) SVDOption { return func(d *decomposition) { d.rank, d.ranked = k, true } }

// SVD decomposes the matrices of the last two axes: a = u·diag(s)·vh. The leading
// axes, if any, are those of the results, and their matrices are decomposed one
// after the other. Of m×n matrices u is m×k, s has k values and vh is k×n, with
// k = min(m, n); options change that. The singular values in s are real, not
// negative, and come from large to small. The columns of u and the rows of vh are
// orthonormal; signs (phases, of complex ones) are not unique, nor are vectors of
// equal singular values. a is float32, float64, complex64 or complex128, any
// view, and is not changed; the results are new row-major arrays.
//
// The values, the product of the factors and their orthonormality are within a
// small multiple of max(m, n)·eps of the largest singular value, or of 1; small
// singular values have no accuracy of their own. A matrix with NaN or infinity,
// or one for which the iteration does not converge, has NaN in all its results.
//
// SVD returns when submitted. On CUDA it also waits for a, and for all but the
// end of the decomposition, since cuSOLVER looks at the matrix on the host.
func SVD(ctx context.Context, a *Array, opts ...SVDOption) (u, s, vh *Array, err error) {
	d := decomposition{op: "tensor.SVD", a: a, factors: solver.Thin}
	for i, o := range opts {
		if o == nil {
			return nil, nil, nil, weir.Argf(d.op, "option %d is nil; expected FullFactors or Rank", i)
		}
		o(&d)
	}
	if err := d.run(ctx); err != nil {
		return nil, nil, nil, err
	}
	return d.truncated()
}

// SingularValues is the s of SVD, without the cost of the others.
func SingularValues(ctx context.Context, a *Array) (*Array, error) {
	d := decomposition{op: "tensor.SingularValues", a: a, factors: solver.None}
	if err := d.run(ctx); err != nil {
		return nil, err
	}
	return d.s, nil
}

// waitsForDevice is why a decomposition is not recorded.
const waitsForDevice = "it waits for the device"

// decomposition is one call.
type decomposition struct {
	op       string
	a        *Array
	factors  solver.Factors
	rank     int
	ranked   bool
	u, s, vh *Array
}

func (d *decomposition) check() error {
	if err := sameDevice(d.op, namesA, d.a); err != nil {
		return err
	}
	switch {
	case d.a.dtype.IsInteger() || d.a.dtype.Size() < 4:
		return weir.Argf(d.op, "a is %v; expected float32, float64, complex64 or complex128; convert it with tensor.AsType", d.a.dtype)
	case d.a.rank < 2:
		return weir.Argf(d.op, "a is %s; expected at least two axes", shapeString(d.a.shape()))
	case d.ranked && d.rank < 0:
		return weir.Argf(d.op, "rank %d; expected 0 or more", d.rank)
	case d.ranked && d.factors == solver.Full:
		return weir.Argf(d.op, "rank %d of full factors; expected one of the two options", d.rank)
	}
	return nil
}

// run decomposes all matrices under one lease and one access.
//
// Libraries are column-major, arrays row-major: there a is aᵀ = vhᵀ·diag(s)·uᵀ.
// So the matrix is handed over as it lies in a row-major copy, and vh and u as
// the U and VH of the transpose.
func (d *decomposition) run(ctx context.Context) error {
	if err := d.check(); err != nil {
		return err
	}
	if err := recordable(ctx, d.op, waitsForDevice); err != nil {
		return err
	}
	work, err := emptyOn(unscoped(ctx), d.op, d.a.memory(), d.a.dtype, d.a.shape())
	if err != nil {
		return err
	}
	defer work.Free()
	if err := d.make(ctx); err != nil {
		return err
	}
	if err := d.submit(ctx, work); err != nil {
		for _, x := range []*Array{d.u, d.s, d.vh} {
			err = join(err, x.Free())
		}
		return err
	}
	return nil
}

// make makes the results.
func (d *decomposition) make(ctx context.Context) error {
	shape := d.a.shape()
	lead, m, n := shape[:d.a.rank-2], shape[d.a.rank-2], shape[d.a.rank-1]
	k := min(m, n)
	result := func(to **Array, dt DType, last ...int64) error {
		a, err := emptyOn(ctx, d.op, d.a.memory(), dt, append(append([]int64(nil), lead...), last...))
		*to = a
		return err
	}
	err := result(&d.s, d.a.dtype.Real(), k)
	if d.factors == solver.None || err != nil {
		return err
	}
	columns, rows := k, k
	if d.factors == solver.Full {
		columns, rows = m, n
	}
	if err = result(&d.u, d.a.dtype, m, columns); err == nil {
		err = result(&d.vh, d.a.dtype, rows, n)
	}
	if err != nil {
		err = join(err, d.s.Free(), d.u.Free())
	}
	return err
}

func (d *decomposition) submit(ctx context.Context, work *Array) error {
	count := int64(1)
	for _, n := range d.a.shape()[:d.a.rank-2] {
		count *= n
	}
	if count == 0 {
		return nil
	}
	l, err := solver.AcquireAfter(ctx, d.a.resources(), written(d.a))
	if err != nil {
		return err
	}
	acc := buffer.Begin(l.Stream())
	err = d.decompose(&l, &acc, work, count)
	return join(err, acc.End(), l.Release())
}

func (d *decomposition) decompose(l *solver.Lease, acc *buffer.Access, work *Array, count int64) error {
	from, to := acc.Read(d.a.Buffer()), acc.Write(work.Buffer())
	m, n := d.a.shape()[d.a.rank-2], d.a.shape()[d.a.rank-1]
	p := solver.Decomposition{DType: d.a.dtype, Factors: d.factors, M: n, N: m, A: to, S: acc.Write(d.s.Buffer()), LDA: max(n, 1)}
	if d.factors != solver.None {
		p.U, p.LDU = acc.Write(d.vh.Buffer()), max(n, 1)
		p.VH, p.LDVH = acc.Write(d.u.Buffer()), max(d.u.shape()[d.u.rank-1], 1)
	}
	if acc.Err() != nil {
		return nil // End answers it
	}
	s, err := l.Stream().Submit()
	if err != nil {
		return err
	}
	if err := s.Launch(copyOf(work, to, d.a, from)); err != nil {
		return err
	}
	step := func(x *Array) driver.Ptr { return driver.Ptr(x.Bytes() / count) }
	for range count {
		if err := solver.SVD(l, &p); err != nil {
			return err
		}
		p.A += step(work)
		p.S += step(d.s)
		if d.factors != solver.None {
			p.U += step(d.vh)
			p.VH += step(d.u)
		}
	}
	return nil
}

// truncated answers the results, cut to the rank that was asked for.
func (d *decomposition) truncated() (u, s, vh *Array, err error) {
	if !d.ranked || int64(d.rank) >= d.s.shape()[d.s.rank-1] {
		return d.u, d.s, d.vh, nil
	}
	return first(d.u, d.u.rank-1, d.rank), first(d.s, d.s.rank-1, d.rank), first(d.vh, d.vh.rank-2, d.rank), nil
}

// first is the view of the first k places of an axis.
func first(a *Array, axis, k int) *Array {
	l := a.layout.clone()
	l.shape()[axis] = int64(k)
	return a.with(l, a.offset)
}
