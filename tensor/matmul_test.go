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

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/runtime"
)

// naive is alpha·a·b + beta·c of m×k and k×n elements, and the sums of absolute
// values.
func naive(m, n, k int, alpha complex128, a, b []complex128, beta complex128, c []complex128) (out []complex128, absolute []float64) {
	for i := range m {
		for j := range n {
			var sum complex128
			size := 0.0
			for l := range k {
				sum += a[i*k+l] * b[l*n+j]
				size += cmplx.Abs(a[i*k+l]) * cmplx.Abs(b[l*n+j])
			}
			v, s := alpha*sum, cmplx.Abs(alpha)*size
			if beta != 0 {
				v += beta * c[i*n+j]
				s += cmplx.Abs(beta) * cmplx.Abs(c[i*n+j])
			}
			out, absolute = append(out, v), append(absolute, s)
		}
	}
	return out, absolute
}

func TestGemmIntoAgreesWithANaiveProductForAllViewsAndTypes(t *testing.T) {
	ctx := start(t)
	for _, dt := range dtype.All() {
		t.Run(dt.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(dt)))
			for round := range 150 {
				if err := gemmOnce(ctx, rng, dt); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		})
	}
}

func gemmOnce(ctx context.Context, rng *rand.Rand, dt DType) error {
	ctx, free := Scope(ctx)
	defer free()
	m, n, k := rng.IntN(9), rng.IntN(9), rng.IntN(9)
	scalar := func() complex128 {
		switch rng.IntN(4) {
		case 0:
			return 0
		case 1:
			return 1
		}
		z := complex(math.Trunc(4*rng.Float64()-2), 0)
		if dt.IsComplex() {
			z += complex(0, rng.Float64())
		}
		return z
	}
	alpha, beta := scalar(), scalar()
	a, err := view(ctx, rng, dt, m, k)
	if err != nil {
		return err
	}
	b, err := view(ctx, rng, dt, k, n)
	if err != nil {
		return err
	}
	c, err := view(ctx, rng, dt, m, n)
	if err != nil {
		return err
	}
	if rng.IntN(4) == 0 && m == k && k == n { // in place
		c = a
	}
	if !c.distinct() {
		if err := GemmInto(ctx, alpha, a, b, beta, c); !errors.Is(err, weir.ErrArgument) {
			return fmt.Errorf("a result that repeats elements: %v; want a refusal", err)
		}
		return nil
	}
	va, err := values(ctx, a)
	if err != nil {
		return err
	}
	vb, err := values(ctx, b)
	if err != nil {
		return err
	}
	vc, err := values(ctx, c)
	if err != nil {
		return err
	}
	want, absolute := naive(m, n, k, alpha, va, vb, beta, vc)
	if err := GemmInto(ctx, alpha, a, b, beta, c); err != nil {
		return err
	}
	got, err := values(ctx, c)
	if err != nil {
		return err
	}
	if err := compare(dt, k, got, want, absolute); err != nil {
		return fmt.Errorf("m, n, k = %d, %d, %d, alpha %v, beta %v, strides %v conj %t, %v %t, %v %t: %w", m, n, k, alpha, beta,
			a.Strides(), a.conj, b.Strides(), b.conj, c.Strides(), c.conj, err)
	}
	return nil
}

func TestGemmIntoKeepsWhatLiesBetweenTheElementsOfItsResult(t *testing.T) {
	ctx := start(t)
	base := must(Full(ctx, 7, Float64, 6, 9))
	c := must(base.Slice(Steps(1, End, 2), Steps(0, End, 3)))
	a, b := must(Full(ctx, 1, Float64, 3, 2)), must(Full(ctx, 1, Float64, 2, 3))
	if err := GemmInto(ctx, 1, a, b, 0, c); err != nil {
		t.Fatal(err)
	}
	for i, x := range must(Data[float64](ctx, base)) {
		want := 7.0
		if i/9%2 == 1 && i%9%3 == 0 {
			want = 2
		}
		if x != want {
			t.Fatalf("element %d is %v; want %v", i, x, want)
		}
	}
}

func TestGemmIntoWithOverlappingOperandsIsAsWithCopies(t *testing.T) {
	ctx := start(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for shift := range 5 {
		base := must(random(ctx, rng, Float64, 12, 8))
		window := func(row int) *Array { return must(base.Slice(Span(row, row+4), Span(0, 4))) }
		a, b, c := window(4), window(4+shift-2), window(3)
		want, absolute := naive(4, 4, 4, 1, must(values(ctx, a)), must(values(ctx, b)), 1, must(values(ctx, c)))
		if err := GemmInto(ctx, 1, a, b, 1, c); err != nil {
			t.Fatal(err)
		}
		if err := compare(Float64, 4, must(values(ctx, c)), want, absolute); err != nil {
			t.Errorf("shift %d: %v", shift, err)
		}
	}
}

func TestGemmIntoWithBetaZeroDoesNotReadItsResult(t *testing.T) {
	ctx := start(t)
	nan := complex(math.NaN(), 0)
	for _, dt := range []DType{Float32, Float64, Complex64, Complex128, Float16, BFloat16} {
		for _, k := range []int{0, 3} {
			c := must(Full(ctx, nan, dt, 4, 4))
			if err := GemmInto(ctx, 1, must(Full(ctx, 1, dt, 4, k)), must(Full(ctx, 1, dt, k, 4)), 0, c); err != nil {
				t.Fatal(err)
			}
			for _, x := range must(values(ctx, c)) {
				if x != complex(float64(k), 0) {
					t.Fatalf("%v, k = %d: %v; want %d", dt, k, x, k)
				}
			}
		}
	}
}

func TestMatMulPropagatesNaNAndInf(t *testing.T) {
	ctx := start(t)
	a := must(From(ctx, []float64{0, math.NaN(), 1, math.Inf(1)}, 2, 2))
	b := must(From(ctx, []float64{1, 0, 0, 0}, 2, 2))
	got := must(Data[float64](ctx, must(MatMul(ctx, a, b))))
	for i, x := range got {
		if !math.IsNaN(x) { // NaN·0 and Inf·0 are NaN
			t.Errorf("element %d is %v; want NaN", i, x)
		}
	}
}

func TestMatMulStretchesLeadingAxesAndPromotesVectors(t *testing.T) {
	ctx := start(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ a, b, want []int }{
		{[]int{3}, []int{3}, nil},
		{[]int{2, 3}, []int{3}, []int{2}},
		{[]int{3}, []int{3, 4}, []int{4}},
		{[]int{5, 2, 3}, []int{3, 4}, []int{5, 2, 4}},
		{[]int{2, 3}, []int{5, 3, 4}, []int{5, 2, 4}},
		{[]int{5, 1, 2, 3}, []int{6, 3, 4}, []int{5, 6, 2, 4}},
		{[]int{1, 6, 2, 3}, []int{5, 6, 3, 4}, []int{5, 6, 2, 4}},
		{[]int{5, 6, 2, 3}, []int{3}, []int{5, 6, 2}},
		{[]int{5, 6, 2, 3}, []int{5, 6, 3, 4}, []int{5, 6, 2, 4}},
		{[]int{2, 5, 6, 2, 3}, []int{6, 3, 4}, []int{2, 5, 6, 2, 4}},
		{[]int{3}, []int{5, 6, 3, 4}, []int{5, 6, 4}},
		{[]int{0, 2, 3}, []int{3, 4}, []int{0, 2, 4}},
		{[]int{7, 2, 0}, []int{7, 0, 4}, []int{7, 2, 4}},
	} {
		for round := range 5 {
			make := view
			if round == 0 { // contiguous ones, whose batch axes fold and merge
				make = random
			}
			a, b := must(make(ctx, rng, Complex64, c.a...)), must(make(ctx, rng, Complex64, c.b...))
			got, err := MatMul(ctx, a, b)
			if err != nil {
				t.Errorf("%v·%v: %v", c.a, c.b, err)
				continue
			}
			if !slices.Equal(got.Shape(), c.want) {
				t.Errorf("%v·%v has shape %v; want %v", c.a, c.b, got.Shape(), c.want)
			}
			want, absolute, k := naiveMatMul(c.a, must(values(ctx, a)), c.b, must(values(ctx, b)))
			if err := compare(Complex64, k, must(values(ctx, got)), want, absolute); err != nil {
				t.Errorf("%v·%v with strides %v %v: %v", c.a, c.b, a.Strides(), b.Strides(), err)
			}
		}
	}
}

// naiveMatMul multiplies by the rules of numpy.matmul.
func naiveMatMul(sa []int, a []complex128, sb []int, b []complex128) ([]complex128, []float64, int) {
	if len(sa) == 1 {
		sa = []int{1, sa[0]}
	}
	if len(sb) == 1 {
		sb = []int{sb[0], 1}
	}
	m, k, n := sa[len(sa)-2], sa[len(sa)-1], sb[len(sb)-1]
	rank := max(len(sa), len(sb)) - 2
	lead := func(s []int) []int { return append(slices.Repeat([]int{1}, rank+2-len(s)), s[:len(s)-2]...) }
	la, lb := lead(sa), lead(sb)
	var out []complex128
	var absolute []float64
	var walk func(axis, ia, ib int)
	walk = func(axis, ia, ib int) {
		if axis == rank {
			o, s := naive(m, n, k, 1, a[ia*m*k:(ia+1)*m*k], b[ib*k*n:(ib+1)*k*n], 0, nil)
			out, absolute = append(out, o...), append(absolute, s...)
			return
		}
		count := max(la[axis], lb[axis])
		if la[axis] == 0 || lb[axis] == 0 {
			count = 0
		}
		for i := range count {
			walk(axis+1, ia*la[axis]+i%la[axis], ib*lb[axis]+i%lb[axis])
		}
	}
	walk(0, 0, 0)
	return out, absolute, k
}

func TestProductsRefuseWhatTheyCannotMultiply(t *testing.T) {
	ctx := start(t)
	f := func(shape ...int) *Array { return must(Zeros(ctx, Float32, shape...)) }
	other := must(Zeros(runtime.On(ctx, must(runtime.Get("host:1"))), Float32, 2, 2))
	for want, err := range map[string]error{
		"tensor.MatMul: a is 2×3 and b 4×5; expected a's last extent, 3, to equal b's last but one, 4":                                second(MatMul(ctx, f(2, 3), f(4, 5))),
		"tensor.MatMul: a is 2×3 and b 2; expected a's last extent, 3, to equal b's only one, 2":                                      second(MatMul(ctx, f(2, 3), f(2))),
		"tensor.MatMul: a is () and b 2×3; expected at least one axis each":                                                           second(MatMul(ctx, f(), f(2, 3))),
		"tensor.MatMul: a is 2×3×4 and b 3×4×5; their leading axes do not stretch to one shape":                                       second(MatMul(ctx, f(2, 3, 4), f(3, 4, 5))),
		"tensor.MatMul: a is float32 and b is float64; convert one with tensor.AsType":                                                second(MatMul(ctx, f(2, 2), must(Zeros(ctx, Float64, 2, 2)))),
		"tensor.MatMul: a is on host:0 and b on host:1; copy one to the other's device with tensor.To":                                second(MatMul(ctx, f(2, 2), other)),
		"tensor.MatMul: b is nil; expected an array that a constructor or an operation made":                                          second(MatMul(ctx, f(2, 2), nil)),
		"tensor.GemmInto: a is 2×3, b 3×4 and c 2×5; expected m×k, k×n and m×n":                                                       GemmInto(ctx, 1, f(2, 3), f(3, 4), 0, f(2, 5)),
		"tensor.GemmInto: a is 2, b 3×4 and c 2×4; expected matrices":                                                                 GemmInto(ctx, 1, f(2), f(3, 4), 0, f(2, 4)),
		"tensor.GemmInto: alpha is (0+1i) for float32 arrays; expected a real number":                                                 GemmInto(ctx, 1i, f(2, 2), f(2, 2), 0, f(2, 2)),
		"tensor.GemmInto: beta is 0.5 for int32 arrays; expected an integer":                                                          GemmInto(ctx, 1, must(Zeros(ctx, Int32, 1, 1)), must(Zeros(ctx, Int32, 1, 1)), 0.5, must(Zeros(ctx, Int32, 1, 1))),
		"tensor.GemmInto: the result, 2×2 with strides [0 1], has several elements at one address; expected a view that repeats none": GemmInto(ctx, 1, f(2, 2), f(2, 2), 0, must(f(2).Broadcast(2, 2))),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
}

func TestGemmIntoAllocatesNothingAndMatMulOneObject(t *testing.T) {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	a, b, c := must(Full(ctx, 1, Float32, 64, 64)), must(Full(ctx, 1, Float32, 64, 64)), must(Zeros(ctx, Float32, 64, 64))
	defer func() { _ = errors.Join(a.Free(), b.Free(), c.Free()) }()
	for range 2000 { // then there are events for all that may be under way
		if err := GemmInto(ctx, 1, a, b, 0, c); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(500, func() {
		if err := GemmInto(ctx, 1, a, b.T(), 0, c); err != nil {
			t.Error(err)
		}
	}); n > 1 { // the view
		t.Errorf("GemmInto with a transposed view: %v allocations; want 1", n)
	}
	if n := testing.AllocsPerRun(500, func() {
		if err := GemmInto(ctx, 1, a, b, 0, c); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("GemmInto: %v allocations; want 0", n)
	}
	if n := testing.AllocsPerRun(500, func() {
		if err := GemmInto(ctx, 1, a, b, 0, c, FastTF32); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("GemmInto with a precision: %v allocations; want 0", n)
	}
	if n := testing.AllocsPerRun(500, func() {
		c, err := MatMul(ctx, a, b)
		if err != nil {
			t.Error(err)
		}
		if err := c.Free(); err != nil {
			t.Error(err)
		}
	}); n > 1 {
		t.Errorf("MatMul: %v allocations; want 1", n)
	}
}

// TestIntegerScalarsAreReducedToTheTypeWithAndWithoutTerms.
func TestIntegerScalarsAreReducedToTheTypeWithAndWithoutTerms(t *testing.T) {
	ctx := start(t)
	const beta = 1<<32 + 5
	for _, k := range []int{0, 1} {
		a, b := must(Zeros(ctx, Int32, 1, k)), must(Zeros(ctx, Int32, k, 2))
		for name, multiply := range map[string]func(c *Array) error{
			"GemmInto":      func(c *Array) error { return GemmInto(ctx, 1, a, b, beta, c) },
			"GemmBatchInto": func(c *Array) error { return GemmBatchInto(ctx, 1, []*Array{a}, []*Array{b}, beta, []*Array{c}) },
		} {
			c := must(From(ctx, []int32{1, 2}, 1, 2))
			if err := multiply(c); err != nil {
				t.Fatal(err)
			}
			if got := must(Data[int32](ctx, c)); got[0] != 5 || got[1] != 10 {
				t.Errorf("%s, k = %d: %v; expected [5 10]", name, k, got)
			}
		}
	}
	if got := must(Item[int32](ctx, must(Full(ctx, beta, Int32)))); got != 5 {
		t.Errorf("Full: %d; expected 5", got)
	}
}

// TestAPlainProductIntoAnOperandReadsItBeforeItIsWritten: either operand, or both.
func TestAPlainProductIntoAnOperandReadsItBeforeItIsWritten(t *testing.T) {
	ctx := start(t)
	const n = 48 // large enough that what is written early is read late
	x, y := make([]float64, n*n), make([]float64, n*n)
	for i := range x {
		x[i], y[i] = float64(i%7-3), float64(i%5-2)
	}
	for name, c := range map[string]struct{ a, b []float64 }{"a": {y, x}, "b": {x, y}, "both": {y, y}} {
		want := make([]float64, n*n)
		for i := range n {
			for j := range n {
				for k := range n {
					want[i*n+j] += c.a[i*n+k] * c.b[k*n+j]
				}
			}
		}
		into, other := must(From(ctx, y, n, n)), must(From(ctx, x, n, n))
		a, b := into, into
		switch name {
		case "a":
			b = other
		case "b":
			a = other
		}
		if err := GemmInto(ctx, 1, a, b, 0, into); err != nil {
			t.Fatal(err)
		}
		if got := must(Data[float64](ctx, into)); !slices.Equal(got, want) {
			t.Errorf("into %s: the product differs from the naive one", name)
		}
	}
}
