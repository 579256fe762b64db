package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/provider/solver"
)

var svdTypes = []DType{Float32, Float64, Complex64, Complex128}

// svdResult has the elements of a decomposition's results.
type svdResult struct {
	m, n, columns, rows int
	u, s, vh            []complex128
}

// checkSVD compares the results with those of gonum, of every matrix of a. The
// factors must be isometries whose product is a.
func checkSVD(ctx context.Context, a, u, s, vh *Array) error {
	shape := a.Shape()
	lead, m, n := shape[:len(shape)-2], shape[len(shape)-2], shape[len(shape)-1]
	k := min(m, n)
	columns, rows := u.Shape()[u.rank-1], vh.Shape()[vh.rank-2]
	for name, x := range map[string]struct {
		array *Array
		last  []int
	}{"u": {u, []int{m, columns}}, "s": {s, []int{k}}, "vh": {vh, []int{rows, n}}} {
		if want := append(slices.Clone(lead), x.last...); !slices.Equal(x.array.Shape(), want) {
			return fmt.Errorf("%s is %v; want %v", name, x.array.Shape(), want)
		}
		if !x.array.IsContiguous() || x.array.IsConj() {
			return fmt.Errorf("%s has strides %v; want row-major ones", name, x.array.Strides())
		}
	}
	if u.dtype != a.dtype || vh.dtype != a.dtype || s.dtype != a.dtype.Real() {
		return fmt.Errorf("u, s and vh of %v are %v, %v and %v", a.dtype, u.dtype, s.dtype, vh.dtype)
	}
	va, err1 := values(ctx, a)
	vu, err2 := values(ctx, u)
	vs, err3 := values(ctx, s)
	vv, err4 := values(ctx, vh)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	for count := len(va) / max(m*n, 1); count > 0; count-- {
		f := svdResult{m, n, columns, rows, vu[:m*columns], vs[:k], vv[:rows*n]}
		if err := f.check(a.dtype, va[:m*n]); err != nil {
			return err
		}
		va, vu, vs, vv = va[m*n:], vu[m*columns:], vs[k:], vv[rows*n:]
	}
	return nil
}

// svdTolerance is relative to the largest singular value.
func svdTolerance(dt DType, m, n int) float64 {
	eps, _ := epsilon(dt)
	return 8 * eps * float64(max(m, n, 1))
}

func (f *svdResult) check(dt DType, a []complex128) error {
	want := singularValues(f.m, f.n, a)
	bound := svdTolerance(dt, f.m, f.n)
	largest := 0.0
	for i, x := range f.s {
		largest = max(largest, want[0])
		if !(math.Abs(real(x)-want[i]) <= bound*largest) {
			return fmt.Errorf("singular value %d is %v; want %v within %.3g", i, x, want[i], bound*largest)
		}
	}
	for i := range f.m {
		for j := range f.n {
			sum := -a[i*f.n+j]
			for l, x := range f.s {
				sum += f.u[i*f.columns+l] * x * f.vh[l*f.n+j]
			}
			if !(cmplx.Abs(sum) <= bound*largest) {
				return fmt.Errorf("u·diag(s)·vh misses element (%d, %d) by %v; want at most %.3g", i, j, sum, bound*largest)
			}
		}
	}
	for p := range f.columns {
		for q := range f.columns {
			sum := complex(map[bool]float64{true: -1}[p == q], 0)
			for i := range f.m {
				sum += cmplx.Conj(f.u[i*f.columns+p]) * f.u[i*f.columns+q]
			}
			if !(cmplx.Abs(sum) <= bound) {
				return fmt.Errorf("columns %d and %d of u miss their product by %v; want at most %.3g", p, q, sum, bound)
			}
		}
	}
	for p := range f.rows {
		for q := range f.rows {
			sum := complex(map[bool]float64{true: -1}[p == q], 0)
			for j := range f.n {
				sum += f.vh[p*f.n+j] * cmplx.Conj(f.vh[q*f.n+j])
			}
			if !(cmplx.Abs(sum) <= bound) {
				return fmt.Errorf("rows %d and %d of vh miss their product by %v; want at most %.3g", p, q, sum, bound)
			}
		}
	}
	return nil
}

// singularValues are gonum's, of the real matrix (Re −Im; Im Re), which has each
// one twice.
func singularValues(m, n int, a []complex128) []float64 {
	if m*n == 0 {
		return nil
	}
	twice := mat.NewDense(2*m, 2*n, nil)
	for i := range m {
		for j := range n {
			z := a[i*n+j]
			twice.Set(i, j, real(z))
			twice.Set(m+i, n+j, real(z))
			twice.Set(i, n+j, -imag(z))
			twice.Set(m+i, j, imag(z))
		}
	}
	var svd mat.SVD
	if !svd.Factorize(twice, mat.SVDNone) {
		panic("gonum has no decomposition")
	}
	all := svd.Values(nil)
	var every []float64
	for i := 0; i < len(all); i += 2 {
		every = append(every, all[i])
	}
	return every
}

// decomposers are families with different ways to decompose: the library that is
// there, the way without one, and a GPU where there is one.
var decomposers = map[string]func() driver.Family{
	"auto":  func() driver.Family { return host.New(host.Options{HandOver: true, BLAS: hostblas.Open("auto")}) },
	"gonum": func() driver.Family { return host.New(host.Options{HandOver: true, BLAS: hostblas.Open("gonum")}) },
}

func everyDecomposer(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	for name, family := range decomposers {
		t.Run(name, func(t *testing.T) { test(t, startOn(t, []driver.Family{family()})) })
	}
}

func TestSVDOfRandomViewsAndBatchesMultipliesBack(t *testing.T) {
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, dt := range svdTypes {
			for _, shape := range [][]int{
				{1, 1}, {1, 5}, {5, 1}, {4, 4}, {7, 3}, {3, 7}, {20, 30},
				{3, 4, 2}, {2, 3, 2, 4}, {1, 3, 3}, {2, 1, 1, 1, 2, 2, 3}, {5, 6, 1},
				{0, 0}, {0, 3}, {3, 0}, {2, 0, 3}, {2, 3, 0}, {0, 3, 2}, {2, 0, 3, 3},
			} {
				for round, make := range []func(context.Context, *rand.Rand, DType, ...int) (*Array, error){random, view, view, view} {
					a := must(make(ctx, rng, dt, shape...))
					before := must(values(ctx, a))
					var opts []SVDOption
					if round%2 == 1 {
						opts = append(opts, FullFactors())
					}
					u, s, vh, err := SVD(ctx, a, opts...)
					if err == nil {
						err = checkSVD(ctx, a, u, s, vh)
					}
					if err != nil {
						t.Fatalf("%v %v with strides %v, conj %t, round %d: %v", dt, shape, a.Strides(), a.conj, round, err)
					}
					if m, n := a.Shape()[a.rank-2], a.Shape()[a.rank-1]; round%2 == 1 && (u.Shape()[u.rank-1] != m || vh.Shape()[vh.rank-2] != n) {
						t.Fatalf("full factors of %v are %v and %v", shape, u.Shape(), vh.Shape())
					}
					alone, err := SingularValues(ctx, a)
					if err != nil {
						t.Fatal(err)
					}
					if got, want := must(values(ctx, alone)), must(values(ctx, s)); !near(dt, shape, got, want) {
						t.Fatalf("%v %v: SingularValues answers %v; SVD %v", dt, shape, got, want)
					}
					if !slices.Equal(must(values(ctx, a)), before) {
						t.Fatalf("%v %v: a has changed", dt, shape)
					}
				}
			}
		}
	})
}

// near compares singular values, of all matrices, with the largest one's
// tolerance.
func near(dt DType, shape []int, got, want []complex128) bool {
	largest := 0.0
	for _, x := range want {
		largest = max(largest, real(x))
	}
	bound := svdTolerance(dt, shape[len(shape)-2], shape[len(shape)-1]) * largest
	return slices.EqualFunc(got, want, func(x, y complex128) bool { return cmplx.Abs(x-y) <= bound })
}

func TestSVDOfKnownMatrices(t *testing.T) {
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		for _, c := range []struct {
			name string
			a    *Array
			want []float64
		}{
			{"a diagonal", must(From(ctx, []float64{0, -3, 0, 5, 0, 0}, 2, 3)), []float64{5, 3}},
			{"a rotation", must(From(ctx, []float64{0.6, -0.8, 0.8, 0.6}, 2, 2)), []float64{1, 1}},
			{"ones", must(Full(ctx, 1, Float64, 4, 9)), []float64{6, 0, 0, 0}},
			{"zeros", must(Zeros(ctx, Float64, 3, 2)), []float64{0, 0}},
			{"a row", must(From(ctx, []float64{3, 4}, 1, 2)), []float64{5}},
			// The eigenvalues of (2 1; 1 2) are 3 and 1.
			{"roots", must(From(ctx, []float64{1, 1, 1, 0, 0, 1}, 3, 2)), []float64{math.Sqrt(3), 1}},
			{"a hermitian matrix", must(From(ctx, []complex128{0, 2i, -2i, 3}, 2, 2)), []float64{4, 1}},
		} {
			u, s, vh, err := SVD(ctx, c.a)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkSVD(ctx, c.a, u, s, vh); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			got := must(Data[float64](ctx, s))
			if !slices.EqualFunc(got, c.want, func(x, y float64) bool { return math.Abs(x-y) <= 1e-13 }) {
				t.Errorf("%s: %v; want %v", c.name, got, c.want)
			}
		}
	})
}

func TestRankKeepsTheLargestSingularValues(t *testing.T) {
	ctx := start(t)
	a := must(random(ctx, rand.New(rand.NewPCG(3, 4)), Complex128, 2, 5, 4))
	u, s, vh, err := SVD(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 6 {
		kept := min(k, 4)
		ku, ks, kvh, err := SVD(ctx, a, Rank(k))
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range map[string][2]*Array{
			"u":  {ku, must(u.Slice(All(), All(), Span(0, kept)))},
			"s":  {ks, must(s.Slice(All(), Span(0, kept)))},
			"vh": {kvh, must(vh.Slice(All(), Span(0, kept)))},
		} {
			if !slices.Equal(x[0].Shape(), x[1].Shape()) || !slices.Equal(must(values(ctx, x[0])), must(values(ctx, x[1]))) {
				t.Errorf("rank %d: %s is %v; want the first %d of %v", k, name, x[0], kept, x[1])
			}
		}
	}
}

func TestSVDOfNaNAndInfinityIsNaNInThatMatrixAlone(t *testing.T) {
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		for _, special := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, dt := range svdTypes {
				wide := must(From(ctx, []float64{1, 2, 3, 4, 5, special, 7, 8, 9, 10, 11, 12}, 3, 2, 2))
				a := must(AsType(ctx, wide, dt))
				u, s, vh, err := SVD(ctx, a)
				if err != nil {
					t.Fatal(err)
				}
				for name, x := range map[string]*Array{"u": u, "s": s, "vh": vh, "alone": must(SingularValues(ctx, a))} {
					all := must(values(ctx, x))
					for i, z := range all {
						if matrix := i / (len(all) / 3); cmplx.IsNaN(z) != (matrix == 1) {
							t.Errorf("%v with %v: element %d of %s, of matrix %d, is %v", dt, special, i, name, matrix, z)
						}
					}
				}
			}
		}
	})
}

func TestSVDRefusesWhatItCannotDecompose(t *testing.T) {
	ctx := start(t)
	f := func(dt DType, shape ...int) *Array { return must(Zeros(ctx, dt, shape...)) }
	try := func(a *Array, opts ...SVDOption) error {
		u, s, vh, err := SVD(ctx, a, opts...)
		if u != nil || s != nil || vh != nil {
			t.Errorf("%v came with an error", []*Array{u, s, vh})
		}
		return err
	}
	for want, err := range map[string]error{
		"tensor.SVD: a is int32; expected float32, float64, complex64 or complex128; convert it with tensor.AsType":    try(f(Int32, 2, 2)),
		"tensor.SVD: a is int64; expected float32, float64, complex64 or complex128; convert it with tensor.AsType":    try(f(Int64, 2, 2)),
		"tensor.SVD: a is float16; expected float32, float64, complex64 or complex128; convert it with tensor.AsType":  try(f(Float16, 2, 2)),
		"tensor.SVD: a is bfloat16; expected float32, float64, complex64 or complex128; convert it with tensor.AsType": try(f(BFloat16, 2, 2)),
		"tensor.SVD: a is 3; expected at least two axes":                                                               try(f(Float64, 3)),
		"tensor.SVD: a is (); expected at least two axes":                                                              try(f(Float64)),
		"tensor.SVD: a is nil; expected an array that a constructor or an operation made":                              try(nil),
		"tensor.SVD: rank -1; expected 0 or more":                                                                      try(f(Float64, 2, 2), Rank(-1)),
		"tensor.SVD: rank 1 of full factors; expected one of the two options":                                          try(f(Float64, 2, 2), Rank(1), FullFactors()),
		"tensor.SingularValues: a is 3; expected at least two axes":                                                    second(SingularValues(ctx, f(Float64, 3))),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
	freed := f(Float64, 2, 2)
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	if err := try(freed); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("of a freed array: %v; want ErrClosed", err)
	}
}

// TestSVDIsSubmittedInTheOrderOfItsOperands has a writer of a that is held back:
// SVD returns, holds a workspace meanwhile, and sees what was written.
func TestSVDIsSubmittedInTheOrderOfItsOperands(t *testing.T) {
	ctx := start(t)
	a := must(From(ctx, []float64{1, 0, 0, 1}, 2, 2))
	e := must(solver.Of(a.resources()))
	gate := make(chan struct{})
	writer := must(a.resources().Streams().Acquire(ctx))
	acc := buffer.Begin(writer)
	p := acc.Write(a.Buffer())
	d := must(writer.Submit())
	diagonal := driver.View{Ptr: p, DType: Float64, Shape: []int64{2}, Strides: []int64{3}}
	if err := errors.Join(acc.Err(), writer.Call(func() { <-gate }),
		d.Launch(&driver.Kernel{Op: driver.KernelFill, Out: diagonal, Alpha: 5}), acc.End(), writer.Release()); err != nil {
		t.Fatal(err)
	}
	_, s, _, err := SVD(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if n := e.WorkspaceBytes(); n <= 0 {
		t.Errorf("the solvers hold %d bytes while one works", n)
	}
	close(gate)
	if got := must(Data[float64](ctx, s)); !slices.EqualFunc(got, []float64{5, 5}, func(x, y float64) bool { return math.Abs(x-y) <= 1e-14 }) {
		t.Errorf("singular values %v; want those of what was written before, 5 and 5", got)
	}
	if n := e.WorkspaceBytes(); n != 0 {
		t.Errorf("the solvers hold %d bytes when none works", n)
	}
}

// svdProgram decomposes a batch, with every kind of factors, and answers what it
// read.
func svdProgram(ctx context.Context) (read []float64, err error) {
	ctx, free := Scope(ctx)
	defer func() { err = errors.Join(err, free()) }()
	numbers := make([]float64, 24)
	for i := range numbers {
		numbers[i] = float64(i%7 - 3)
	}
	a, err := From(ctx, numbers, 2, 4, 3)
	if err != nil {
		return nil, err
	}
	all := []*Array{}
	for _, opts := range [][]SVDOption{nil, {FullFactors()}, {Rank(1)}} {
		u, s, vh, err := SVD(ctx, must(a.Permute(0, 2, 1)), opts...)
		if err != nil {
			return nil, err
		}
		all = append(all, u, s, vh)
	}
	s, err := SingularValues(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, x := range append(all, s) {
		data, err := Data[float64](ctx, x)
		if err != nil {
			return nil, err
		}
		read = append(read, data...)
	}
	return read, nil
}

// TestEveryFaultOfSVDEndsInAnErrorOrTheRightValue makes each driver call of the
// path fail in turn, and each kill the device: nothing hangs, nothing is left, no
// value is wrong.
func TestEveryFaultOfSVDEndsInAnErrorOrTheRightValue(t *testing.T) {
	for _, death := range []bool{false, true} {
		everyFault(t, death, svdProgram, func() driver.Family { return host.New(host.Options{HandOver: true}) }, func(int) {})
	}
}
