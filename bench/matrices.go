package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/tensor"
)

// element is the element types that are measured.
type element interface{ float32 | float64 }

// letter is BLAS's letter of T.
func letter[T element]() string {
	if dtype.Of[T]() == dtype.Float32 {
		return "s"
	}
	return "d"
}

// matrices are random n×n operands twice, with results: as arrays of the
// device, and in plain memory for direct calls of the BLAS. All are row-major.
type matrices[T element] struct {
	n       int
	a, b, c *tensor.Array
	mem     [3]uintptr // a, b, c
	scratch hostblas.Scratch
}

// newMatrices makes matrices with elements in [-1, 1) on ctx's device.
func newMatrices[T element](ctx context.Context, n int) (*matrices[T], error) {
	x := &matrices[T]{n: n}
	random := rand.New(rand.NewPCG(1, uint64(n)))
	operands := [2]**tensor.Array{&x.a, &x.b}
	for i := range x.mem {
		var err error
		if x.mem[i], err = hostmem.Alloc(x.bytes()); err != nil {
			return nil, errors.Join(err, x.close())
		}
		if i == 2 {
			break
		}
		data := x.slice(i)
		for j := range data {
			data[j] = T(2*random.Float64() - 1)
		}
		if *operands[i], err = tensor.From(ctx, data, n, n); err != nil {
			return nil, errors.Join(err, x.close())
		}
	}
	var err error
	if x.c, err = tensor.Zeros(ctx, dtype.Of[T](), n, n); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *matrices[T]) count() int64 { return int64(x.n) * int64(x.n) }
func (x *matrices[T]) bytes() int64 { return x.count() * dtype.Of[T]().Size() }

// slice is operand 0, 1 or the result 2 in plain memory.
func (x *matrices[T]) slice(i int) []T { return hostmem.Slice[T](x.mem[i], x.count()) }

func (x *matrices[T]) close() error {
	var errs []error
	for _, a := range []*tensor.Array{x.a, x.b, x.c} {
		if a != nil {
			errs = append(errs, a.Free())
		}
	}
	for _, p := range x.mem {
		if p != 0 {
			errs = append(errs, hostmem.Free(p, x.bytes()))
		}
	}
	x.scratch.Free()
	return errors.Join(errs...)
}

// matMul is the product into a new array, waited for and freed.
func (x *matrices[T]) matMul() error {
	c, err := tensor.MatMul(context.Background(), x.a, x.b)
	if err != nil {
		return err
	}
	if err := settle(c); err != nil {
		return err
	}
	return c.Free()
}

// gemmInto is the product into c, waited for.
func (x *matrices[T]) gemmInto() error {
	if err := tensor.GemmInto(context.Background(), 1, x.a, x.b, 0, x.c); err != nil {
		return err
	}
	return settle(x.c)
}

// settle waits until the array's elements can be read.
func settle(a *tensor.Array) error { return a.Buffer().Wait(context.Background()) }

// direct is one call of the BLAS that Weir itself calls, on plain memory. BLAS
// is column-major, where row-major C = A·B reads Cᵀ = Bᵀ·Aᵀ.
func (x *matrices[T]) direct(l *hostblas.Library) func() error {
	n := int64(x.n)
	g := &driver.Gemm{DType: dtype.Of[T](), M: n, N: n, K: n, Alpha: 1, Batch: 1,
		A: driver.Ptr(x.mem[1]), B: driver.Ptr(x.mem[0]), C: driver.Ptr(x.mem[2]), LDA: n, LDB: n, LDC: n}
	return func() error {
		l.Gemm(g, &x.scratch)
		return nil
	}
}

// agree runs both and compares the device's c and a fresh product with what
// the floor computed.
func (x *matrices[T]) agree(floor Loop) error {
	if _, err := floor(1); err != nil {
		return err
	}
	if err := x.gemmInto(); err != nil {
		return err
	}
	fresh, err := tensor.MatMul(context.Background(), x.a, x.b)
	if err != nil {
		return err
	}
	err = errors.Join(compare(x.c, x.slice(2), x.n), compare(fresh, x.slice(2), x.n))
	return errors.Join(err, fresh.Free())
}

// peers is one product for other libraries, compared with a fresh one of Weir's.
func (x *matrices[T]) peers() *PeerWork {
	return &PeerWork{
		DType: dtype.Of[T](), Inputs: []PeerInput{peerInput(x.slice(0), x.n, x.n), peerInput(x.slice(1), x.n, x.n)}, Products: [][2]int{{0, 1}},
		Check: peerCheck(func(int) (want []T, terms int, err error) {
			c, err := tensor.MatMul(context.Background(), x.a, x.b)
			if err != nil {
				return nil, 0, err
			}
			defer func() { err = errors.Join(err, c.Free()) }()
			want, err = tensor.Data[T](context.Background(), c)
			return want, x.n, err
		}),
	}
}

// compare checks a product of terms summed terms against want.
func compare[T element](got *tensor.Array, want []T, terms int) error {
	have, err := tensor.Data[T](context.Background(), got)
	if err != nil {
		return err
	}
	return near(have, want, terms)
}

// near compares products. Sums of terms terms in another order differ by rounding
// alone, which stays below terms·ε of the largest element: a bound for random
// signs, and far below any wrong element.
func near[T element](have, want []T, terms int) error {
	eps := 0x1p-52
	if dtype.Of[T]() == dtype.Float32 {
		eps = 0x1p-23
	}
	largest := 0.0
	for _, w := range want {
		largest = max(largest, math.Abs(float64(w)))
	}
	for i, w := range want {
		if difference := math.Abs(float64(have[i]) - float64(w)); !(difference <= float64(terms)*eps*largest) {
			return wrong("element %d of the product is %v; expected %v", i, have[i], w)
		}
	}
	return nil
}
