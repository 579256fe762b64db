package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
)

// rowDevices start a device on which rows are reduced and selected from: the host, and
// a GPU where there is one with RAFT.
var rowDevices = map[string]func(t *testing.T) context.Context{
	"host": func(t *testing.T) context.Context { return start(t) },
}

func onRowDevices(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	for name, open := range rowDevices {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// rowsOf are the real elements of a, of rows of n.
func rowsOf(t *testing.T, ctx context.Context, a *Array, n int) [][]float64 {
	t.Helper()
	var rows [][]float64
	all := must(values(ctx, a))
	for ; len(all) > 0; all = all[n:] {
		row := make([]float64, n)
		for i, z := range all[:n] {
			row[i] = real(z)
		}
		rows = append(rows, row)
	}
	return rows
}

// coarse has few different values, so that many elements are equal, and infinities.
func coarse(ctx context.Context, rng *rand.Rand, dt DType, shape ...int) (*Array, error) {
	n := 1
	for _, x := range shape {
		n *= x
	}
	data := make([]float64, n)
	for i := range data {
		data[i] = []float64{math.Inf(-1), -2, -1, 1, 2, 3, math.Inf(1)}[rng.IntN(7)]
	}
	wide, err := From(ctx, data, shape...)
	if err != nil {
		return nil, err
	}
	return AsType(ctx, wide, dt)
}

func TestSelectKAgreesWithASort(t *testing.T) {
	onRowDevices(t, func(t *testing.T, ctx context.Context) {
		rng := rand.New(rand.NewPCG(5, 6))
		for _, dt := range []DType{Float32, Float64} {
			for _, shape := range [][]int{{1}, {7}, {3, 1}, {5, 40}, {1, 300}, {2, 3, 9}, {2, 1, 3, 2, 5}, {3, 20000}, {0, 4}, {2, 0, 4}} {
				for round, make := range []func(context.Context, *rand.Rand, DType, ...int) (*Array, error){random, view, view, coarse} {
					a := must(make(ctx, rng, dt, shape...))
					n := shape[len(shape)-1]
					k, which := 1+rng.IntN(min(n, 300)), Selection(rng.IntN(2))
					before := must(values(ctx, a))
					chosen, at, err := SelectK(ctx, a, k, which)
					if err != nil {
						t.Fatal(err)
					}
					want := append(slices.Clone(shape[:len(shape)-1]), k)
					if chosen.DType() != dt || at.DType() != Int64 || !slices.Equal(chosen.Shape(), want) || !slices.Equal(at.Shape(), want) || !chosen.IsContiguous() || !at.IsContiguous() {
						t.Fatalf("%v of %v: values %v, indices %v", k, a, chosen, at)
					}
					if !slices.EqualFunc(must(values(ctx, a)), before, func(x, y complex128) bool { return x == y }) {
						t.Fatalf("%v has changed", a)
					}
					got, where := rowsOf(t, ctx, chosen, k), rowsOf(t, ctx, at, k)
					for i, row := range rowsOf(t, ctx, a, n) {
						sorted := slices.Sorted(slices.Values(row))
						if which == Largest {
							slices.Reverse(sorted)
						}
						taken := map[float64]bool{}
						for j, x := range where[i] {
							if x < 0 || x >= float64(n) || taken[x] || row[int(x)] != got[i][j] || got[i][j] != sorted[j] {
								t.Fatalf("%v %v, strides %v, round %d, %d of selection %d: row %d, place %d is %v at %v; expected %v",
									dt, shape, a.Strides(), round, k, which, i, j, got[i][j], x, sorted[j])
							}
							taken[x] = true
						}
					}
				}
			}
		}
	})
}

func TestSelectKOrdersNaNBeyondInfinityOfItsSign(t *testing.T) {
	onRowDevices(t, func(t *testing.T, ctx context.Context) {
		positive := math.Float64frombits(0x7ff8000000000001)
		a := must(From(ctx, []float64{1, positive, math.Inf(1), math.Copysign(positive, -1), math.Inf(-1), 0}))
		for which, want := range map[Selection][]int64{Smallest: {3, 4, 5, 0, 2, 1}, Largest: {1, 2, 0, 5, 4, 3}} {
			for k := 1; k <= 6; k++ {
				_, at, err := SelectK(ctx, a, k, which)
				if err != nil {
					t.Fatal(err)
				}
				if got := must(Data[int64](ctx, at)); !slices.Equal(got, want[:k]) {
					t.Errorf("%d of selection %d are at %v; expected %v", k, which, got, want[:k])
				}
			}
		}
	})
}

// exactly is a zero to which numbers of these tests can be added without rounding.
func exactly() *big.Float { return new(big.Float).SetPrec(400) }

// reduced answers what a row reduces to, of exact arithmetic rounded to float64, and
// how far a result may be from it.
func reduced(row []float64, to Reduction, store float64) (want, within float64) {
	sum, squares := exactly(), exactly()
	magnitudes, n := 0.0, float64(len(row))
	for _, x := range row {
		b := exactly().SetFloat64(x)
		sum.Add(sum, b)
		squares.Add(squares, b.Mul(b, b))
		magnitudes += math.Abs(x)
	}
	exact, _ := sum.Float64()
	norm, _ := squares.Sqrt(squares).Float64()
	switch to {
	case ReduceSum:
		return exact, store/2*math.Abs(exact) + 0x1p-53*n*magnitudes
	case ReduceMean:
		return exact / n, store*math.Abs(exact)/n + 0x1p-52*magnitudes
	case ReduceNorm:
		return norm, store*norm + 0x1p-52*n*norm
	case ReduceMin:
		return slices.Min(row), 0
	}
	return slices.Max(row), 0
}

func TestReduceAgreesWithExactSums(t *testing.T) {
	onRowDevices(t, func(t *testing.T, ctx context.Context) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, dt := range []DType{Float32, Float64} {
			_, store := epsilon(dt)
			for _, shape := range [][]int{{1}, {9}, {4, 1}, {1, 5}, {6, 50}, {300, 3}, {2, 3, 4}, {2, 1, 3, 2, 5}, {2, 5000}, {0, 4}, {3, 0, 4}} {
				for _, make := range []func(context.Context, *rand.Rand, DType, ...int) (*Array, error){random, view, view} {
					a := must(make(ctx, rng, dt, shape...))
					for to := ReduceSum; to <= ReduceMax; to++ {
						axis := rng.IntN(len(shape))
						if shape[axis] == 0 {
							continue
						}
						given := axis - rng.IntN(2)*len(shape)
						got, err := Reduce(ctx, a, given, to)
						if err != nil {
							t.Fatal(err)
						}
						want := slices.Delete(slices.Clone(shape), axis, axis+1)
						if got.DType() != dt || !slices.Equal(got.Shape(), want) || !got.IsContiguous() {
							t.Fatalf("reduction %d of axis %d of %v is %v", to, given, a, got)
						}
						order := append([]int(nil), allBut(len(shape), axis)...)
						rows := rowsOf(t, ctx, must(a.Permute(append(order, axis)...)), shape[axis])
						for i, z := range must(values(ctx, got)) {
							if want, within := reduced(rows[i], to, store); !(math.Abs(real(z)-want) <= within) {
								t.Fatalf("%v %v, strides %v: reduction %d of axis %d, place %d, is %v; expected %v within %.3g",
									dt, shape, a.Strides(), to, given, i, real(z), want, within)
							}
						}
					}
				}
			}
		}
	})
}

func allBut(rank, axis int) (axes []int) {
	for i := range rank {
		if i != axis {
			axes = append(axes, i)
		}
	}
	return axes
}

func TestReduceOfWhatIsNotFiniteAndOfNoElements(t *testing.T) {
	onRowDevices(t, func(t *testing.T, ctx context.Context) {
		inf, nan := math.Inf(1), math.NaN()
		for _, dt := range []DType{Float32, Float64} {
			for _, c := range []struct {
				row  []float64
				want []float64
			}{
				{[]float64{1, inf, 2}, []float64{inf, inf, inf, 1, inf}},
				{[]float64{-inf, 1}, []float64{-inf, -inf, inf, -inf, 1}},
				{[]float64{inf, -inf}, []float64{nan, nan, inf, -inf, inf}},
				{[]float64{1, nan, 2}, []float64{nan, nan, nan, nan, nan}},
				{[]float64{nan, 1, 2, 3}, []float64{nan, nan, nan, nan, nan}},
				{[]float64{}, []float64{0, nan, 0}},
			} {
				a := must(AsType(ctx, must(From(ctx, slices.Concat(c.row, c.row), 2, len(c.row))), dt))
				for to, want := range c.want {
					got := must(values(ctx, must(Reduce(ctx, a, -1, Reduction(to)))))
					for _, z := range got {
						if real(z) != want && !(math.IsNaN(real(z)) && math.IsNaN(want)) {
							t.Errorf("%v: reduction %d of %v is %v; expected %v", dt, to, c.row, got, want)
						}
					}
				}
			}
		}
	})
}

// halko is the expected error, in the spectral norm, over singular value k+1 (Halko,
// Martinsson and Tropp, 2011, corollary 10.10).
func halko(k, p, q, smaller float64) float64 {
	return math.Pow(1+math.Sqrt(k/(p-1))+math.E*math.Sqrt(k+p)/p*math.Sqrt(smaller-k), 1/(2*q+1))
}

// lowRank is a matrix of rank r, with noise.
func lowRank(ctx context.Context, rng *rand.Rand, dt DType, m, n, r int, noise complex128) (*Array, error) {
	left, err1 := random(ctx, rng, dt, m, r)
	right, err2 := random(ctx, rng, dt, r, n)
	e, err3 := random(ctx, rng, dt, m, n)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return e, GemmInto(ctx, 1, left, right, noise, e)
}

// checkFactors checks shapes, order and orthonormality of k factors of a, and answers
// the spectral norm of what they miss of it.
func checkFactors(ctx context.Context, a, u, s, vh *Array, k int) (missing float64, err error) {
	shape := a.Shape()
	m, n := shape[0], shape[1]
	if !slices.Equal(u.Shape(), []int{m, k}) || !slices.Equal(s.Shape(), []int{k}) || !slices.Equal(vh.Shape(), []int{k, n}) {
		return 0, fmt.Errorf("u is %v, s %v and vh %v; expected %d×%d, %d and %d×%d", u.Shape(), s.Shape(), vh.Shape(), m, k, k, k, n)
	}
	if u.dtype != a.dtype || vh.dtype != a.dtype || s.dtype != a.dtype.Real() {
		return 0, fmt.Errorf("u, s and vh of %v are %v, %v and %v", a.dtype, u.dtype, s.dtype, vh.dtype)
	}
	vs := must(values(ctx, s))
	for i, x := range vs {
		if real(x) < 0 || i > 0 && real(x) > real(vs[i-1]) {
			return 0, fmt.Errorf("singular values are %v", vs)
		}
	}
	for name, g := range map[string]*Array{"uᴴ·u": must(MatMul(ctx, u.H(), u)), "vh·vhᴴ": must(MatMul(ctx, vh, vh.H()))} {
		for i, z := range must(values(ctx, g)) {
			want := complex(map[bool]float64{true: 1}[i/k == i%k], 0)
			if d := z - want; !(math.Hypot(real(d), imag(d)) <= svdTolerance(a.dtype, m, n)) {
				return 0, fmt.Errorf("%s has %v at %d, %d", name, z, i/k, i%k)
			}
		}
	}
	scaled, err := Einsum(ctx, "ij,j->ij", u, must(AsType(ctx, s, a.dtype)))
	if err != nil {
		return 0, err
	}
	rest := must(Copy(ctx, a))
	if err := GemmInto(ctx, -1, scaled, vh, 1, rest); err != nil {
		return 0, err
	}
	return real(must(values(ctx, must(SingularValues(ctx, rest))))[0]), nil
}

// everyProvider runs a test of float types with and without RAFT, which a host device
// takes no notice of.
func everyProvider(t *testing.T, types []DType, test func(t *testing.T, ctx context.Context, dt DType, p Provider)) {
	onRowDevices(t, func(t *testing.T, ctx context.Context) {
		for _, dt := range types {
			for _, p := range []Provider{"", RAFT} {
				if dt.IsComplex() && p == RAFT {
					continue
				}
				t.Run(fmt.Sprintf("%v, provider %q", dt, p), func(t *testing.T) { test(t, ctx, dt, p) })
			}
		}
	})
}

func TestRandomizedSVDIsAsNearAsExpected(t *testing.T) {
	everyProvider(t, svdTypes, func(t *testing.T, ctx context.Context, dt DType, p Provider) {
		rng := rand.New(rand.NewPCG(9, 10))
		for _, c := range []struct{ m, n, rank, k int }{{60, 40, 5, 5}, {40, 60, 5, 5}, {80, 80, 6, 4}, {50, 30, 3, 10}, {35, 33, 4, 1}, {200, 25, 7, 7}} {
			for _, noise := range []complex128{0, 1e-3} {
				whole := must(lowRank(ctx, rng, dt, c.m, c.n, c.rank, noise))
				part := must(must(Zeros(ctx, dt, c.m+3, c.n)).Slice(Span(3, c.m+3)))
				if err := CopyInto(ctx, part, whole); err != nil {
					t.Fatal(err)
				}
				for name, a := range map[string]*Array{"row-major": whole, "rows of a larger one": part, "transposed": must(Copy(ctx, whole.H())).H()} {
					before := must(values(ctx, a))
					u, s, vh, err := RandomizedSVD(ctx, a, c.k, p)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(must(values(ctx, a)), before) {
						t.Fatalf("%v has changed", a)
					}
					missing, err := checkFactors(ctx, a, u, s, vh, c.k)
					if err != nil {
						t.Fatalf("%d×%d of rank %d, k %d, noise %v, %s: %v", c.m, c.n, c.rank, c.k, noise, name, err)
					}
					exact := must(values(ctx, must(SingularValues(ctx, a))))
					rounding := svdTolerance(dt, c.m, c.n) * real(exact[0])
					bound := halko(float64(c.k), 10, 2, float64(min(c.m, c.n)))*real(exact[c.k]) + rounding
					if !(missing <= bound) {
						t.Errorf("%d×%d of rank %d, k %d, noise %v, %s: misses %.3g; expected at most %.3g", c.m, c.n, c.rank, c.k, noise, name, missing, bound)
					}
					for i, x := range must(values(ctx, s)) { // of a projection they are no larger
						if d := real(exact[i]) - real(x); !(-rounding <= d && d <= bound) {
							t.Errorf("singular value %d is %v; expected %v", i, x, exact[i])
						}
					}
				}
			}
		}
	})
}

func TestRandomizedSVDWithoutRoomForProjectionsIsExact(t *testing.T) {
	everyProvider(t, []DType{Float32, Float64}, func(t *testing.T, ctx context.Context, dt DType, p Provider) {
		a := must(random(ctx, rand.New(rand.NewPCG(11, 12)), dt, 8, 6))
		exact := must(values(ctx, must(SingularValues(ctx, a))))
		for _, k := range []int{0, 6, 9} {
			u, s, vh, err := RandomizedSVD(ctx, a, k, p, Oversampling(0), PowerIterations(0))
			if err != nil {
				t.Fatal(err)
			}
			kept := min(k, 6)
			if got := must(values(ctx, s)); !near(dt, []int{8, 6}, got, exact[:kept]) {
				t.Errorf("k %d: singular values %v; expected %v", k, got, exact[:kept])
			}
			if !slices.Equal(u.Shape(), []int{8, kept}) || !slices.Equal(vh.Shape(), []int{kept, 6}) {
				t.Errorf("k %d: u is %v and vh %v", k, u, vh)
			}
		}
		// Five of six dimensions, and what many iterations make of them.
		u, s, vh, err := RandomizedSVD(ctx, a, 2, p, Oversampling(3), PowerIterations(30))
		if err != nil {
			t.Fatal(err)
		}
		missing, err := checkFactors(ctx, a, u, s, vh, 2)
		if bound := 1.1 * real(exact[2]); err != nil || !(missing <= bound) {
			t.Errorf("misses %.3g, %v; expected at most %.3g", missing, err, bound)
		}
	})
}

func TestRandomizedSVDOfNaNAndInfinityIsNaN(t *testing.T) {
	everyProvider(t, []DType{Float32, Float64}, func(t *testing.T, ctx context.Context, dt DType, p Provider) {
		for _, special := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			numbers := make([]float64, 30*20)
			numbers[77] = special
			a := must(AsType(ctx, must(From(ctx, numbers, 30, 20)), dt))
			u, s, vh, err := RandomizedSVD(ctx, a, 3, p)
			if err != nil {
				t.Fatal(err)
			}
			for name, x := range map[string]*Array{"u": u, "s": s, "vh": vh} {
				for i, z := range must(values(ctx, x)) {
					if !math.IsNaN(real(z)) {
						t.Errorf("of %v: %s has %v at %d", special, name, z, i)
						break
					}
				}
			}
		}
	})
}

// TestProductsOfEveryProviderAgree of views that are packed, batches, factors and
// operands that overlap.
func TestProductsOfEveryProviderAgree(t *testing.T) {
	everyProvider(t, []DType{Float32, Float64}, func(t *testing.T, ctx context.Context, dt DType, p Provider) {
		rng := rand.New(rand.NewPCG(13, 14))
		eps, _ := epsilon(dt)
		for _, c := range []struct{ a, b []int }{
			{[]int{1, 1}, []int{1, 1}}, {[]int{3, 5}, []int{5, 4}}, {[]int{33, 17}, []int{17, 65}}, {[]int{5}, []int{5, 3}}, {[]int{4, 5}, []int{5}},
			{[]int{2, 3, 4}, []int{4, 5}}, {[]int{2, 3, 4}, []int{2, 4, 5}}, {[]int{2, 1, 3, 4}, []int{3, 4, 2}}, {[]int{3, 0}, []int{0, 4}}, {[]int{0, 2}, []int{2, 4}},
		} {
			for range 3 {
				a, b := must(view(ctx, rng, dt, c.a...)), must(view(ctx, rng, dt, c.b...))
				got, err := MatMul(ctx, a, b, p)
				if err != nil {
					t.Fatal(err)
				}
				want := must(MatMul(ctx, must(AsType(ctx, a, Float64)), must(AsType(ctx, b, Float64))))
				if !slices.Equal(got.Shape(), want.Shape()) || got.DType() != dt {
					t.Fatalf("%v·%v is %v", a, b, got)
				}
				terms := float64(c.a[len(c.a)-1])
				bound := terms * eps * terms // K·eps·|A|·|B|, with elements of at most 1
				expected := must(values(ctx, want))
				for i, z := range must(values(ctx, got)) {
					if d := math.Abs(real(z - expected[i])); !(d <= bound) {
						t.Fatalf("%v, strides %v, times %v, strides %v: element %d is %v; expected %v within %.3g", c.a, a.Strides(), c.b, b.Strides(), i, z, expected[i], bound)
					}
				}
			}
		}
		x := must(From(ctx, []float64{1, 2, 3, 4}, 2, 2))
		for _, c := range []struct {
			c    *Array
			beta complex128
			want []float64
		}{
			{must(From(ctx, []float64{1, 1, 1, 1}, 2, 2)), -1, []float64{13, 19, 29, 43}},
			{must(From(ctx, []float64{math.NaN(), 1, 1, 1}, 2, 2)).T(), 0, []float64{14, 20, 30, 44}},
			{must(must(Zeros(ctx, Float64, 2, 4)).Slice(All(), Steps(0, 4, 2))), 1, []float64{14, 20, 30, 44}},
			{x, 0, []float64{14, 20, 30, 44}},
		} {
			if err := GemmInto(ctx, 2, x, x, c.beta, c.c, p); err != nil {
				t.Fatal(err)
			}
			if got := must(Data[float64](ctx, c.c)); !slices.Equal(got, c.want) {
				t.Errorf("2·x·x + %v·c is %v; expected %v", c.beta, got, c.want)
			}
		}
	})
}

func TestWhatRowsCannotBeReducedOrSelectedIsRefused(t *testing.T) {
	ctx := start(t)
	f := func(dt DType, shape ...int) *Array { return must(Zeros(ctx, dt, shape...)) }
	selectK := func(a *Array, k int, which Selection) error {
		x, y, err := SelectK(ctx, a, k, which)
		if x != nil || y != nil {
			t.Errorf("%v and %v came with an error", x, y)
		}
		return err
	}
	svd := func(a *Array, k int, opts ...RandomizedOption) error {
		u, s, vh, err := RandomizedSVD(ctx, a, k, opts...)
		if u != nil || s != nil || vh != nil {
			t.Errorf("%v came with an error", []*Array{u, s, vh})
		}
		return err
	}
	m := f(Float64, 2, 3)
	for want, err := range map[string]error{
		"tensor.SelectK: a is nil; expected an array that a constructor or an operation made":                                 selectK(nil, 1, Largest),
		"tensor.SelectK: a is the zero Array; expected an array that a constructor or an operation made":                      selectK(&Array{}, 1, Largest),
		"tensor.SelectK: a is int32; expected float32 or float64; convert it with tensor.AsType":                              selectK(f(Int32, 3), 1, Largest),
		"tensor.SelectK: a is complex128; expected float32 or float64; convert it with tensor.AsType":                         selectK(f(Complex128, 3), 1, Largest),
		"tensor.SelectK: a is (); expected at least one axis":                                                                 selectK(f(Float64), 1, Largest),
		"tensor.SelectK: k is 0 and a 2×3; expected at least 1 and at most a's last extent, 3":                                selectK(m, 0, Largest),
		"tensor.SelectK: k is -1 and a 2×3; expected at least 1 and at most a's last extent, 3":                               selectK(m, -1, Smallest),
		"tensor.SelectK: k is 4 and a 2×3; expected at least 1 and at most a's last extent, 3":                                selectK(m, 4, Largest),
		"tensor.SelectK: k is 1 and a 2×0; expected at least 1 and at most a's last extent, 0":                                selectK(f(Float32, 2, 0), 1, Largest),
		"tensor.SelectK: selection 2; expected Largest or Smallest":                                                           selectK(m, 1, 2),
		"tensor.Reduce: a is nil; expected an array that a constructor or an operation made":                                  second(Reduce(ctx, nil, 0, ReduceSum)),
		"tensor.Reduce: a is int64; expected float32 or float64; convert it with tensor.AsType":                               second(Reduce(ctx, f(Int64, 3), 0, ReduceSum)),
		"tensor.Reduce: a is float16; expected float32 or float64; convert it with tensor.AsType":                             second(Reduce(ctx, f(Float16, 3), 0, ReduceSum)),
		"tensor.Reduce: axis 0 of (); expected one of its 0 axes":                                                             second(Reduce(ctx, f(Float64), 0, ReduceSum)),
		"tensor.Reduce: axis 2 of 2×3; expected one of its 2 axes":                                                            second(Reduce(ctx, m, 2, ReduceSum)),
		"tensor.Reduce: axis -3 of 2×3; expected one of its 2 axes":                                                           second(Reduce(ctx, m, -3, ReduceSum)),
		"tensor.Reduce: reduction 5; expected one of ReduceSum, ReduceMean, ReduceNorm, ReduceMin and ReduceMax":              second(Reduce(ctx, m, 0, 5)),
		"tensor.Reduce: axis 1 of 2×0 has no elements; expected some for a minimum or maximum":                                second(Reduce(ctx, f(Float64, 2, 0), 1, ReduceMin)),
		"tensor.Reduce: axis -2 of 0×2 has no elements; expected some for a minimum or maximum":                               second(Reduce(ctx, f(Float64, 0, 2), -2, ReduceMax)),
		"tensor.RandomizedSVD: a is nil; expected an array that a constructor or an operation made":                           svd(nil, 1),
		"tensor.RandomizedSVD: a is int32; expected float32, float64, complex64 or complex128; convert it with tensor.AsType": svd(f(Int32, 2, 2), 1),
		"tensor.RandomizedSVD: a is 3; expected a matrix":                                                                     svd(f(Float64, 3), 1),
		"tensor.RandomizedSVD: a is 2×2×2; expected a matrix":                                                                 svd(f(Float64, 2, 2, 2), 1),
		"tensor.RandomizedSVD: k is -1; expected 0 or more":                                                                   svd(m, -1),
		"tensor.RandomizedSVD: oversampling -1; expected 0 or more":                                                           svd(m, 1, Oversampling(-1)),
		"tensor.RandomizedSVD: -2 power iterations; expected 0 or more":                                                       svd(m, 1, PowerIterations(-2)),
		"tensor.RandomizedSVD: option 1 is nil; expected Oversampling, PowerIterations or a Provider":                         svd(m, 1, RAFT, nil),
		`tensor.RandomizedSVD: provider "cutlass"; expected "raft"`:                                                           svd(m, 1, Provider("cutlass")),
		`tensor.MatMul: provider "Raft"; expected "raft"`:                                                                     second(MatMul(ctx, m, m.T(), Provider("Raft"))),
		`tensor.GemmInto: provider "x"; expected "raft"`:                                                                      GemmInto(ctx, 1, m, m.T(), 0, f(Float64, 2, 2), Provider("x")),
		`tensor.GemmBatchInto: provider "raft"; expected none for a batch, which RAFT has no product of`:                      GemmBatchInto(ctx, 1, []*Array{m}, []*Array{m.T()}, 0, []*Array{f(Float64, 2, 2)}, RAFT),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
	freed := f(Float64, 2, 2)
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"SelectK": selectK(freed, 1, Largest), "Reduce": second(Reduce(ctx, freed, 0, ReduceSum)), "RandomizedSVD": svd(freed, 1)} {
		if !errors.Is(err, weir.ErrClosed) {
			t.Errorf("%s of a freed array answers %v; expected ErrClosed", name, err)
		}
	}
}

// rowsProgram reduces, selects and approximates, and answers what it read.
func rowsProgram(ctx context.Context) (read []float64, err error) {
	ctx, free := Scope(ctx)
	defer func() { err = errors.Join(err, free()) }()
	numbers := make([]float64, 24)
	for i := range numbers {
		numbers[i] = float64(i*5%7 - 3)
	}
	a, err := From(ctx, numbers, 6, 4)
	if err != nil {
		return nil, err
	}
	sums, err := Reduce(ctx, a, 0, ReduceSum)
	if err != nil {
		return nil, err
	}
	largest, at, err := SelectK(ctx, a.T(), 2, Largest)
	if err != nil {
		return nil, err
	}
	_, s, _, err := RandomizedSVD(ctx, a, 1, Oversampling(1), PowerIterations(1))
	if err != nil {
		return nil, err
	}
	at, err = AsType(ctx, at, Float64)
	if err != nil {
		return nil, err
	}
	for _, x := range []*Array{sums, largest, at, s} {
		data, err := Data[float64](ctx, x)
		if err != nil {
			return nil, err
		}
		read = append(read, data...)
	}
	return read, nil
}

func TestEveryFaultOfOperationsOnRowsEndsInAnErrorOrTheRightValue(t *testing.T) {
	for _, death := range []bool{false, true} {
		everyFault(t, death, rowsProgram, func() driver.Family { return host.New(host.Options{HandOver: true}) }, func(int) {})
	}
}
