package tensor

import (
	"context"
	"math/rand/v2"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/raft"
	"github.com/weirgo/weir/runtime"
)

// RandomizedOption changes how RandomizedSVD approximates: Oversampling,
// PowerIterations, or a Provider.
type RandomizedOption interface {
	applyRandomized(*randomized)
}

// Oversampling is by how many dimensions the random projections exceed the rank; 10
// without it.
type Oversampling int

// PowerIterations is how often the projections are sharpened, at two products with a
// each; 2 without it.
type PowerIterations int

func (n Oversampling) applyRandomized(r *randomized)    { r.oversampling = int(n) }
func (n PowerIterations) applyRandomized(r *randomized) { r.iterations = int(n) }
func (p Provider) applyRandomized(r *randomized)        { r.provider = p }

// RandomizedSVD approximates the k largest singular values of a matrix and their
// vectors, or all where there are no more: a ≈ u·diag(s)·vh, of m×n with u m×k, s of k
// and vh k×n, as SVD with Rank(k) answers them. It projects a onto k and some more
// random dimensions, which are the same in every call, and decomposes what is left
// (Halko, Martinsson and Tropp, "Finding structure with randomness", 2011): for small k
// that costs a few products with a. Where the projections would not be smaller than a,
// it is SVD's; RAFT takes fewer then.
//
// With k + p dimensions and q power iterations the expected error, in the spectral norm,
// is at most (1 + sqrt(k/(p-1)) + e·sqrt(k+p)/p·sqrt(min(m,n)-k))^(1/(2q+1)) times the
// singular value k+1, which is the error of the best approximation; so it is good where
// singular values fall off, and exact, to rounding, where a's rank is at most k.
// Columns of u and rows of vh are orthonormal. A matrix with NaN or infinity has NaN in
// all results.
//
// a is of float32, float64, complex64 or complex128; RAFT takes the first two, and
// matrices whose larger extent times k + p is less than 2³¹. It returns when submitted;
// on CUDA it waits, as SVD does.
func RandomizedSVD(ctx context.Context, a *Array, k int, opts ...RandomizedOption) (u, s, vh *Array, err error) {
	r := randomized{a: a, k: k, oversampling: 10, iterations: 2}
	for i, o := range opts {
		if o == nil {
			return nil, nil, nil, weir.Argf(r.op(), "option %d is nil; expected Oversampling, PowerIterations or a Provider", i)
		}
		o.applyRandomized(&r)
	}
	if err := r.check(); err != nil {
		return nil, nil, nil, err
	}
	if err := recordable(ctx, r.op(), waitsForDevice); err != nil {
		return nil, nil, nil, err
	}
	smaller := int(min(a.shape()[0], a.shape()[1]))
	switch {
	case k == 0 || k >= smaller || smaller-k <= r.oversampling && !r.provider.computes(a):
		return SVD(ctx, a, Rank(k))
	case r.provider.computes(a):
		r.oversampling = min(r.oversampling, smaller-k-1)
		return r.byRAFT(ctx)
	}
	return r.byProducts(ctx)
}

// randomized is one call.
type randomized struct {
	a                           *Array
	k, oversampling, iterations int
	provider                    Provider
}

func (r *randomized) op() string { return "tensor.RandomizedSVD" }

func (r *randomized) check() error {
	op, a := r.op(), r.a
	if err := sameDevice(op, namesA, a); err != nil {
		return err
	}
	if err := r.provider.check(op); err != nil {
		return err
	}
	switch {
	case a.dtype.IsInteger() || a.dtype.Size() < 4:
		return weir.Argf(op, "a is %v; expected float32, float64, complex64 or complex128; convert it with tensor.AsType", a.dtype)
	case r.provider.computes(a) && a.dtype.IsComplex():
		return weir.Argf(op, "a is %v; RAFT takes float32 and float64", a.dtype)
	case a.rank != 2:
		return weir.Argf(op, "a is %s; expected a matrix", shapeString(a.shape()))
	case r.k < 0:
		return weir.Argf(op, "k is %d; expected 0 or more", r.k)
	case r.oversampling < 0:
		return weir.Argf(op, "oversampling %d; expected 0 or more", r.oversampling)
	case r.iterations < 0:
		return weir.Argf(op, "%d power iterations; expected 0 or more", r.iterations)
	}
	return nil
}

// byProducts is made of products and small decompositions, whose factors stand for the
// orthonormal bases.
func (r *randomized) byProducts(ctx context.Context) (u, s, vh *Array, err error) {
	inner, free := Scope(unscoped(ctx)) // of what is in between
	defer func() {
		if err = join(err, free()); err != nil {
			u, s, vh = nil, nil, nil
		}
	}()
	l := r.k + r.oversampling
	random, err := r.random(inner, int(r.a.shape()[1]), l)
	if err != nil {
		return nil, nil, nil, err
	}
	q, err := basis(inner, r.a, random)
	for range r.iterations {
		if err != nil {
			return nil, nil, nil, err
		}
		if q, err = basis(inner, r.a.H(), q); err == nil {
			q, err = basis(inner, r.a, q)
		}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	small, err := MatMul(inner, q.H(), r.a)
	if err != nil {
		return nil, nil, nil, err
	}
	turn, s, vh, err := SVD(ctx, small, Rank(r.k))
	if err != nil {
		return nil, nil, nil, err
	}
	u, err = MatMul(ctx, q, turn)
	if err = join(err, turn.Free()); err != nil {
		return nil, nil, nil, join(err, s.Free(), vh.Free())
	}
	return u, s, vh, nil
}

// random is a matrix of normally distributed numbers, of a's type and on its device.
func (r *randomized) random(ctx context.Context, rows, columns int) (*Array, error) {
	source := rand.New(rand.NewPCG(uint64(rows), uint64(columns)))
	numbers := make([]float64, rows*columns)
	for i := range numbers {
		numbers[i] = source.NormFloat64()
	}
	x, err := From(runtime.On(ctx, r.a.Device()), numbers, rows, columns)
	if err != nil {
		return nil, err
	}
	return AsType(ctx, x, r.a.dtype)
}

// basis is one of the space of a·x.
func basis(ctx context.Context, a, x *Array) (*Array, error) {
	y, err := MatMul(ctx, a, x)
	if err != nil {
		return nil, err
	}
	u, _, _, err := SVD(ctx, y)
	return u, err
}

// byRAFT has RAFT decompose aᵀ, which is a as it lies to a column-major library: its U
// is our vhᵀ, as it lies vh, and its V our u.
func (r *randomized) byRAFT(ctx context.Context) (u, s, vh *Array, err error) {
	a, op := r.a, r.op()
	m, n, k := a.shape()[0], a.shape()[1], int64(r.k)
	rows, free, err := packedRows(ctx, a)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err = join(err, free()); err != nil {
			err = join(err, u.Free(), s.Free(), vh.Free())
			u, s, vh = nil, nil, nil
		}
	}()
	turned, err := emptyOn(unscoped(ctx), op, a.memory(), a.dtype, []int64{k, m})
	if err != nil {
		return nil, nil, nil, err
	}
	defer turned.Free()
	for _, x := range []struct {
		to    **Array
		shape []int64
	}{{&u, []int64{m, k}}, {&s, []int64{k}}, {&vh, []int64{k, n}}} {
		if *x.to, err = emptyOn(ctx, op, a.memory(), a.dtype, x.shape); err != nil {
			return u, s, vh, err
		}
	}
	return u, s, vh, withRAFT(ctx, rows, func(l *raft.Lease, acc *buffer.Access) error {
		d := raft.Decomposition{DType: a.dtype, M: n, N: m, K: k, Oversampling: int64(r.oversampling), Iterations: int64(r.iterations),
			A: acc.Read(rows.Buffer()) + driver.Ptr(rows.offset*a.dtype.Size()), U: acc.Write(vh.Buffer()), S: acc.Write(s.Buffer()), V: acc.Write(turned.Buffer())}
		to := acc.Write(u.Buffer())
		if acc.Err() != nil {
			return nil // End answers it
		}
		if err := raft.RandomizedSVD(l, &d); err != nil {
			return err
		}
		stream, err := l.Stream().Submit()
		if err != nil {
			return err
		}
		return stream.Launch(copyOf(u, to, turned.T(), d.V))
	})
}
