package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/x448/float16"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

// drawn is an array of a test, with its elements in row-major order.
type drawn struct {
	array  *Array
	shape  []int
	values []complex128
}

// draw makes a random view, of small integers if whole.
func draw(ctx context.Context, rng *rand.Rand, dt DType, whole bool, shape ...int) drawn {
	a := must(view(ctx, rng, dt, shape...))
	if whole {
		base := a
		if a.root != nil {
			base = a.root
		}
		data := make([]complex128, base.Size())
		for i := range data {
			data[i] = complex(float64(rng.IntN(19)-9), float64(rng.IntN(19)-9))
		}
		succeed(CopyInto(ctx, base, must(must(From(ctx, data)).Reshape(base.Shape()...))))
	}
	return drawn{a, shape, must(values(ctx, a))}
}

// drawDistinct draws until no two elements lie at one address.
func drawDistinct(ctx context.Context, rng *rand.Rand, dt DType, whole bool, shape ...int) drawn {
	for {
		if a := draw(ctx, rng, dt, whole, shape...); a.array.distinct() {
			return a
		}
	}
}

func succeed(err error) { must(0, err) }

// drawShape draws extents, of which few are 0, and one that stretches to them.
func drawShape(rng *rand.Rand) (shape, part []int) {
	for range rng.IntN(5) {
		n := 1 + rng.IntN(4)
		if rng.IntN(12) == 0 {
			n = 0
		}
		shape = append(shape, n)
	}
	return shape, shrink(rng, shape)
}

// shrink leaves out leading axes and makes some extents 1.
func shrink(rng *rand.Rand, shape []int) []int {
	part := slices.Clone(shape[rng.IntN(len(shape)+1):])
	if rng.IntN(2) == 0 {
		part = slices.Clone(shape)
	}
	for i := range part {
		if rng.IntN(3) == 0 {
			part[i] = 1
		}
	}
	return part
}

// at is the element of d that belongs to element i of shape, which d stretches to.
func (d drawn) at(shape []int, i int) complex128 {
	place, step := 0, 1
	for axis := len(shape) - 1; axis >= 0; axis-- {
		index := i % shape[axis]
		i /= shape[axis]
		if own := axis - (len(shape) - len(d.shape)); own >= 0 {
			if d.shape[own] > 1 {
				place += index * step
			}
			step *= d.shape[own]
		}
	}
	return d.values[place]
}

func product64(shape []int) int {
	n := 1
	for _, x := range shape {
		n *= x
	}
	return n
}

// once is z, of float64s, rounded once to dt.
func once(dt DType, z complex128) complex128 {
	switch dt {
	case Float32, Complex64:
		return complex128(complex64(z))
	case Float16:
		return complex(float64(float16.Fromfloat32(float32(real(z))).Float32()), 0)
	case BFloat16:
		return complex(float64(dtype.ToBF16(float32(real(z))).Float32()), 0)
	}
	return z
}

// missing is how far got is from the exact sum of products, two by two.
func missing(got float64, factors ...float64) float64 {
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(2200).SetFloat64(x) }
	sum := exact(0)
	for i := 0; i < len(factors); i += 2 {
		sum.Add(sum, new(big.Float).SetPrec(2200).Mul(exact(factors[i]), exact(factors[i+1])))
	}
	d, _ := sum.Sub(sum, exact(got)).Float64()
	return math.Abs(d)
}

// within checks that got is alpha·x + beta·y as AddInto's documentation says, and
// exact if whole.
func within(dt DType, whole bool, got, alpha, x, beta, y complex128) error {
	if beta == 0 {
		y = 0
	}
	compute, store := epsilon(dt) // twice the unit roundoff
	size := cmplx.Abs(alpha)*cmplx.Abs(x) + cmplx.Abs(beta)*cmplx.Abs(y)
	bound := 4 * compute / 2 * size
	if store != compute {
		bound += store / 2 * (size + bound)
	}
	bound *= 1 + 1e-6 // of second order
	if whole || dt.IsInteger() {
		bound = 0
	}
	re := missing(real(got), real(alpha), real(x), -imag(alpha), imag(x), real(beta), real(y), -imag(beta), imag(y))
	im := missing(imag(got), real(alpha), imag(x), imag(alpha), real(x), real(beta), imag(y), imag(beta), real(y))
	if max(re, im) > bound {
		return fmt.Errorf("%v·%v + %v·%v is %v, off by %.3g and %.3g; want at most %.3g", alpha, x, beta, y, got, re, im, bound)
	}
	return nil
}

// drawFactor draws a factor that fits dt, an integer if whole.
func drawFactor(rng *rand.Rand, dt DType, whole bool) complex128 {
	if k := rng.IntN(6); k < 2 {
		return complex(float64(k), 0)
	}
	part := func() float64 {
		if whole || dt.IsInteger() {
			return float64(rng.IntN(7) - 3)
		}
		return 4*rng.Float64() - 2
	}
	z := complex(part(), 0)
	if dt.IsComplex() && rng.IntN(2) == 0 {
		z = complex(real(z), part())
	}
	return z
}

// isNew checks that c is row-major, reads as it lies, and shares no memory.
func isNew(c *Array, shape []int, others ...drawn) error {
	if !slices.Equal(c.Shape(), shape) || !c.IsContiguous() || c.IsConj() {
		return fmt.Errorf("the result is %v with strides %v, conjugated %t; want a row-major %v", c.Shape(), c.Strides(), c.IsConj(), shape)
	}
	for _, x := range others {
		if x.array.Buffer() == c.Buffer() || x.array.DType() != c.DType() {
			return fmt.Errorf("the result has memory or another type than an operand, %v and %v", c.DType(), x.array.DType())
		}
	}
	return nil
}

// everyType runs rounds of a test on every family and element type, with arrays of
// small integers, for which every type is exact, and of others.
func everyType(t *testing.T, rounds int, test func(ctx context.Context, rng *rand.Rand, dt DType, whole bool) error) {
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		for _, dt := range dtype.All() {
			rng := rand.New(rand.NewPCG(7, uint64(dt)))
			for round := range rounds {
				ctx, free := Scope(ctx)
				err := test(ctx, rng, dt, round%2 == 0)
				if err := errors.Join(err, free()); err != nil {
					t.Fatalf("%v, round %d: %v", dt, round, err)
				}
			}
		}
	})
}

func TestScaleAgreesWithANaiveOneForAllViewsAndTypes(t *testing.T) {
	everyType(t, 80, func(ctx context.Context, rng *rand.Rand, dt DType, whole bool) error {
		shape, _ := drawShape(rng)
		a, alpha := draw(ctx, rng, dt, whole, shape...), drawFactor(rng, dt, whole)
		b, err := Scale(ctx, alpha, a.array)
		if err != nil {
			return err
		}
		if err := isNew(b, shape, a); err != nil {
			return err
		}
		for i, got := range must(values(ctx, b)) {
			if err := within(dt, whole, got, alpha, a.values[i], 0, 0); err != nil {
				return fmt.Errorf("element %d, strides %v, conjugated %t: %w", i, a.array.Strides(), a.array.IsConj(), err)
			}
		}
		return nil
	})
}

// TestAddIsTheSumRoundedOnceForAllViewsAndTypes: float64 holds the sum of two
// elements of a narrower type, or enough of it for a second rounding to be the only one.
func TestAddIsTheSumRoundedOnceForAllViewsAndTypes(t *testing.T) {
	everyType(t, 120, func(ctx context.Context, rng *rand.Rand, dt DType, whole bool) error {
		shape, part := drawShape(rng)
		a, b := draw(ctx, rng, dt, whole, part...), draw(ctx, rng, dt, whole, shrink(rng, shape)...)
		want := slices.Clone(shape[len(shape)-max(len(a.shape), len(b.shape)):])
		for i := range want {
			one := true // as the axis of each operand is
			for _, x := range []drawn{a, b} {
				if own := i - (len(want) - len(x.shape)); own >= 0 && x.shape[own] != 1 {
					one = false
				}
			}
			if one {
				want[i] = 1
			}
		}
		c, err := Add(ctx, a.array, b.array)
		if err != nil {
			return err
		}
		if err := isNew(c, want, a, b); err != nil {
			return err
		}
		got := must(values(ctx, c))
		if len(got) != product64(want) {
			return fmt.Errorf("%d elements of shape %v", len(got), want)
		}
		for i := range got {
			if w := once(dt, a.at(want, i)+b.at(want, i)); got[i] != w {
				return fmt.Errorf("element %d of %v, %v and %v with strides %v and %v is %v; want %v", i, want, a.shape, b.shape, a.array.Strides(), b.array.Strides(), got[i], w)
			}
		}
		return nil
	})
}

// TestAddIntoAgreesWithANaiveOneForAllViewsAndTypes, and leaves alone what lies
// between the elements of its result.
func TestAddIntoAgreesWithANaiveOneForAllViewsAndTypes(t *testing.T) {
	everyType(t, 120, func(ctx context.Context, rng *rand.Rand, dt DType, whole bool) error {
		shape, part := drawShape(rng)
		x, y := draw(ctx, rng, dt, whole, part...), drawDistinct(ctx, rng, dt, whole, shape...)
		alpha, beta := drawFactor(rng, dt, whole), drawFactor(rng, dt, whole)
		base := y.array
		if base.root != nil {
			base = base.root
		}
		untouched := must(values(ctx, base))
		at, mine := must(Empty(ctx, Int64, base.Shape()...)), map[int64]bool{}
		numbers := make([]int64, at.Size())
		for i := range numbers {
			numbers[i] = int64(i)
		}
		succeed(SetData(ctx, at, numbers))
		for _, i := range must(Data[int64](ctx, at.with(y.array.layout, y.array.offset))) {
			mine[i] = true
		}
		if err := AddInto(ctx, alpha, x.array, beta, y.array); err != nil {
			return err
		}
		for i, got := range must(values(ctx, y.array)) {
			if err := within(dt, whole, got, alpha, x.at(shape, i), beta, y.values[i]); err != nil {
				return fmt.Errorf("element %d of %v with strides %v, %t, and x %v with %v, %t: %w", i, shape, y.array.Strides(), y.array.IsConj(),
					x.shape, x.array.Strides(), x.array.IsConj(), err)
			}
		}
		for i, z := range must(values(ctx, base)) {
			if !mine[int64(i)] && z != untouched[i] {
				return fmt.Errorf("element %d of the memory, none of y with strides %v, became %v; it was %v", i, y.array.Strides(), z, untouched[i])
			}
		}
		return nil
	})
}

// TestIntegerArithmeticWrapsAndIsExact beyond what a float64 holds.
func TestIntegerArithmeticWrapsAndIsExact(t *testing.T) {
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		large, small := []int64{math.MaxInt64, 1<<53 + 1, math.MinInt64}, []int64{1, 1<<53 + 3, -1}
		a, b := must(From(ctx, large)), must(From(ctx, small))
		sum, tripled := must(Data[int64](ctx, must(Add(ctx, a, b)))), must(Data[int64](ctx, must(Scale(ctx, 3, a))))
		succeed(AddInto(ctx, -2, a, 5, b))
		into := must(Data[int64](ctx, b))
		for i := range large {
			if sum[i] != large[i]+small[i] || tripled[i] != 3*large[i] || into[i] != 5*small[i]-2*large[i] {
				t.Errorf("with %d and %d: %d, %d and %d", large[i], small[i], sum[i], tripled[i], into[i])
			}
		}
		c := must(From(ctx, []int32{math.MaxInt32, 7}))
		if got := must(Data[int32](ctx, must(Add(ctx, c, c)))); !slices.Equal(got, []int32{-2, 14}) {
			t.Errorf("twice %v is %v", []int32{math.MaxInt32, 7}, got)
		}
		if got := must(Data[int32](ctx, must(Scale(ctx, 1<<32+5, c)))); got[1] != 35 {
			t.Errorf("(2³²+5)·7 is %d; want 35, the factor being reduced to the type", got[1])
		}
	})
}

// TestAddIntoWithBetaZeroDoesNotReadItsResult, for each way to compute.
func TestAddIntoWithBetaZeroDoesNotReadItsResult(t *testing.T) {
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		for _, dt := range dtype.All() {
			if dt.IsInteger() {
				continue
			}
			factors := []complex128{2}
			if dt.IsComplex() {
				factors = append(factors, 2i)
			}
			for _, alpha := range factors {
				for _, conjugated := range []bool{false, true} {
					y := must(Full(ctx, cmplx.NaN(), dt, 3, 2))
					if conjugated {
						y = y.Conj()
					}
					succeed(AddInto(ctx, alpha, must(Full(ctx, 3, dt, 2)), 0, y))
					for _, z := range must(values(ctx, y)) {
						if z != 3*alpha {
							t.Fatalf("%v, conjugated %t: %v·3 over NaN is %v", dt, conjugated, alpha, z)
						}
					}
				}
			}
		}
	})
}

// parts writes a complex number so that infinities, NaNs and signs of zeros show.
func parts(z []complex128) (all []string) {
	for _, x := range z {
		all = append(all, fmt.Sprintf("%v %v", real(x), imag(x)))
	}
	return all
}

func TestInfinityAndNaNAreAsIEEEHasThemAndStayInTheirParts(t *testing.T) {
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		for _, dt := range dtype.All() {
			if dt.IsInteger() {
				continue
			}
			array := func(z ...complex128) *Array {
				return must(AsType(ctx, must(From(ctx, z)), dt))
			}
			a, b := array(complex(inf, 1), complex(2, nan), complex(inf, -inf), complex(zero, zero), complex(inf, 0)),
				array(complex(1, 2), complex(1, 2), complex(-inf, -inf), complex(zero, zero), complex(0, inf))
			sum := []string{"+Inf 3", "3 NaN", "NaN -Inf", "-0 -0", "+Inf +Inf"}
			into := []string{"+Inf 5", "4 NaN", "NaN -Inf", "-0 -0", "+Inf +Inf"} // a + 2·b
			minus := []string{"+Inf 3", "4 NaN", "NaN NaN", "-0 0", "+Inf +Inf"}  // conj(a) + 2·b
			scaled := []string{"-Inf -2", "-4 NaN", "-Inf +Inf", "0 0", "-Inf -0"}
			none := []string{"NaN 0", "0 NaN", "NaN NaN", "-0 -0", "NaN 0"} // 0·a
			if !dt.IsComplex() {
				for _, want := range [][]string{sum, into, minus, scaled, none} {
					for i, s := range want {
						var re string
						fmt.Sscan(s, &re)
						want[i] = re + " 0"
					}
				}
			}
			y, z := must(Copy(ctx, b)), must(Copy(ctx, b))
			succeed(AddInto(ctx, 1, a, 2, y))
			succeed(AddInto(ctx, 1, a.Conj(), 2, z))
			for _, c := range []struct {
				what string
				got  *Array
				want []string
			}{
				{"a + b", must(Add(ctx, a, b)), sum}, {"b + a", must(Add(ctx, b, a)), sum},
				{"a + 2·b", y, into}, {"conj(a) + 2·b", z, minus},
				{"-2·a", must(Scale(ctx, -2, a)), scaled}, {"0·a", must(Scale(ctx, 0, a)), none},
			} {
				if d := cmp.Diff(c.want, parts(must(values(ctx, c.got)))); d != "" {
					t.Errorf("%v, %s: %s", dt, c.what, d)
				}
			}
		}
	})
}

// TestAddIntoWhereItsArraysOverlapIsAsWithCopies.
func TestAddIntoWhereItsArraysOverlapIsAsWithCopies(t *testing.T) {
	everyDecomposer(t, func(t *testing.T, ctx context.Context) {
		rng := rand.New(rand.NewPCG(8, 9))
		window := func(a *Array, row, col int) *Array { return must(a.Slice(Span(row, row+4), Span(col, col+4))) }
		pairs := map[string]func(base *Array) (x, y *Array){
			"itself":            func(a *Array) (x, y *Array) { return a, a },
			"an equal view":     func(a *Array) (x, y *Array) { return window(a, 1, 1), window(a, 1, 1) },
			"its conjugate":     func(a *Array) (x, y *Array) { return a.Conj(), a },
			"of its conjugate":  func(a *Array) (x, y *Array) { return a, a.Conj() },
			"both conjugates":   func(a *Array) (x, y *Array) { return a.Conj(), a.Conj() },
			"its transpose":     func(a *Array) (x, y *Array) { return a.T(), a },
			"its H":             func(a *Array) (x, y *Array) { return a.H(), a },
			"reversed":          func(a *Array) (x, y *Array) { return must(a.Slice(Reverse(), Reverse())), a },
			"shifted down":      func(a *Array) (x, y *Array) { return window(a, 0, 0), window(a, 1, 0) },
			"shifted up":        func(a *Array) (x, y *Array) { return window(a, 1, 0), window(a, 0, 0) },
			"shifted right":     func(a *Array) (x, y *Array) { return window(a, 2, 0), window(a, 2, 1) },
			"its first row":     func(a *Array) (x, y *Array) { return must(a.Slice(At(0))), a },
			"its last column":   func(a *Array) (x, y *Array) { return must(a.Slice(All(), Span(5, 6))), a },
			"one of its values": func(a *Array) (x, y *Array) { return must(a.Slice(At(3), At(3))), a },
			"other rows": func(a *Array) (x, y *Array) {
				return must(a.Slice(Steps(0, End, 2))), must(a.Slice(Steps(1, End, 2)))
			},
			"a block apart": func(a *Array) (x, y *Array) {
				return must(a.Slice(Span(0, 3))), must(a.Slice(Span(3, 6)))
			},
			"a vector by steps": func(a *Array) (x, y *Array) {
				flat := must(a.Reshape(-1))
				return must(flat.Slice(Span(0, 12))), must(flat.Slice(Steps(0, 24, 2)))
			},
		}
		for name, pair := range pairs {
			for _, dt := range []DType{Float32, Complex128, Int64, Float16} {
				alpha, beta := drawFactor(rng, dt, true), drawFactor(rng, dt, true)
				data := make([]complex128, 36)
				for i := range data {
					data[i] = complex(float64(rng.IntN(19)-9), float64(rng.IntN(19)-9))
				}
				base := must(AsType(ctx, must(From(ctx, data, 6, 6)), dt))
				x, y := pair(base)
				cx, cy := drawn{shape: x.Shape(), values: must(values(ctx, x))}, must(values(ctx, y))
				if err := AddInto(ctx, alpha, x, beta, y); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				for i, got := range must(values(ctx, y)) {
					if err := within(dt, true, got, alpha, cx.at(y.Shape(), i), beta, cy[i]); err != nil {
						t.Errorf("%s, %v, element %d: %v", name, dt, i, err)
						break
					}
				}
			}
		}
	})
}

// TestAddIntoOfAnArrayToItselfTakesNoMemory where a copy finds none.
func TestAddIntoOfAnArrayToItselfTakesNoMemory(t *testing.T) {
	const n = 1 << 20
	ctx := startOn(t, []driver.Family{host.New(host.Options{HandOver: true})}, func(o *runtime.Options) { o.MemoryLimit = 8*n + 8*n/2 })
	y := must(Full(ctx, 3, Complex64, n))
	for _, x := range []*Array{y, y.Conj(), must(y.Reshape(1, n))} {
		if err := AddInto(ctx, 1, x, 1, must(y.Reshape(1, n))); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(Item[complex64](ctx, must(y.Slice(At(n-1))))); got != 24 {
		t.Errorf("3 doubled three times is %v", got)
	}
	if err := AddInto(ctx, 1, must(y.Slice(Reverse())), 1, y); !errors.Is(err, weir.ErrOutOfMemory) {
		t.Errorf("of a view that must be copied: %v; expected no memory for the copy", err)
	}
	few := must(y.Slice(Span(0, 9)))
	before := must(buffer.Of(y.resources())).Stats()
	succeed(AddInto(ctx, 1, must(few.Slice(Reverse())), 1, few))
	if after := must(buffer.Of(y.resources())).Stats(); after.Buffers != before.Buffers {
		t.Errorf("there are %d buffers and were %d before the copy", after.Buffers, before.Buffers)
	}
}

func TestArithmeticReturnsWhenSubmitted(t *testing.T) {
	ctx := start(t)
	a, b := must(Full(ctx, 1, Float64, 3)), must(Full(ctx, 2, Float64, 3))
	done := make(chan struct{})
	succeed(onStream(ctx, a, func(x *operation) error {
		p := x.acc.Write(a.Buffer())
		return x.submit(func(s driver.Stream) error {
			return s.Call(func() {
				<-done // until all is submitted
				for i, e := 0, buffer.Elements[float64](p, 3); i < len(e); i++ {
					e[i] = float64(10 * (i + 1))
				}
			})
		})
	}))
	scaled, sum := must(Scale(ctx, 2, a)), must(Add(ctx, a, b))
	succeed(AddInto(ctx, 1, must(a.Slice(Reverse())), 1, a))
	close(done)
	for want, got := range map[[3]float64]*Array{{20, 40, 60}: scaled, {12, 22, 32}: sum, {40, 40, 40}: a} {
		if data := must(Data[float64](ctx, got)); !slices.Equal(data, want[:]) {
			t.Errorf("%v; want %v", data, want)
		}
	}
}

func TestArithmeticRefusesWhatDoesNotFit(t *testing.T) {
	ctx := start(t)
	f := func(shape ...int) *Array { return must(Zeros(ctx, Float32, shape...)) }
	whole, double := must(Zeros(ctx, Int32, 2)), must(Zeros(ctx, Float64, 2))
	other := must(Zeros(runtime.On(ctx, must(runtime.Get("host:1"))), Float32, 2))
	for want, err := range map[string]error{
		"tensor.Scale: alpha is (0+1i) for float32 arrays; expected a real number":                                                   second(Scale(ctx, 1i, f(2))),
		"tensor.Scale: alpha is 0.5 for int32 arrays; expected an integer":                                                           second(Scale(ctx, 0.5, whole)),
		"tensor.Scale: a is nil; expected an array that a constructor or an operation made":                                          second(Scale(ctx, 1, nil)),
		"tensor.Add: a is 2×3 and b 2; expected shapes that stretch to one":                                                          second(Add(ctx, f(2, 3), f(2))),
		"tensor.Add: a is 0 and b 2×3; expected shapes that stretch to one":                                                          second(Add(ctx, f(0), f(2, 3))),
		"tensor.Add: a is float32 and b is float64; convert one with tensor.AsType":                                                  second(Add(ctx, f(2), double)),
		"tensor.Add: a is on host:0 and b on host:1; copy one to the other's device with tensor.To":                                  second(Add(ctx, f(2), other)),
		"tensor.AddInto: x is 2×1 and y 2; expected x to stretch to y":                                                               AddInto(ctx, 1, f(2, 1), 1, f(2)),
		"tensor.AddInto: x is 3 and y 1; expected x to stretch to y":                                                                 AddInto(ctx, 1, f(3), 1, f(1)),
		"tensor.AddInto: x is float64 and y is float32; convert one with tensor.AsType":                                              AddInto(ctx, 1, double, 1, f(2)),
		"tensor.AddInto: x is on host:1 and y on host:0; copy one to the other's device with tensor.To":                              AddInto(ctx, 1, other, 1, f(2)),
		"tensor.AddInto: alpha is (1+1i) for float32 arrays; expected a real number":                                                 AddInto(ctx, 1+1i, f(2), 1, f(2)),
		"tensor.AddInto: beta is (0-1i) for float32 arrays; expected a real number":                                                  AddInto(ctx, 1, f(2), -1i, f(2)),
		"tensor.AddInto: beta is 1.5 for int32 arrays; expected an integer":                                                          AddInto(ctx, 1, whole, 1.5, whole),
		"tensor.AddInto: the result, 3×2 with strides [0 1], has several elements at one address; expected a view that repeats none": AddInto(ctx, 1, f(2), 1, must(f(2).Broadcast(3, 2))),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
	huge := must(f(1, 1).Broadcast(1<<31, 1))
	if _, err := Add(ctx, huge, must(f(1).Broadcast(1<<31))); !errors.Is(err, weir.ErrArgument) {
		t.Errorf("a sum of 2^62 elements: %v", err)
	}
	freed := f(2)
	succeed(freed.Free())
	for _, err := range []error{second(Scale(ctx, 1, freed)), second(Add(ctx, f(2), freed)), AddInto(ctx, 1, freed, 1, f(2)), AddInto(ctx, 1, f(2), 1, freed)} {
		if !errors.Is(err, weir.ErrClosed) {
			t.Errorf("of an array that was freed: %v; want %v", err, weir.ErrClosed)
		}
	}
}

// arithmeticProgram goes every way through Scale, Add and AddInto, and answers
// what it read.
func arithmeticProgram(ctx context.Context) (read []float64, err error) {
	ctx, free := Scope(ctx)
	defer func() { err = errors.Join(err, free()) }()
	a, err := From(ctx, []complex128{1, 2i, 3 + 1i, -1}, 2, 2)
	if err != nil {
		return nil, err
	}
	b, err := Scale(ctx, 2i, a.T())
	if err != nil {
		return nil, err
	}
	c, err := Add(ctx, a.Conj(), must(b.Slice(At(0))))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(AddInto(ctx, 2, c.Conj(), 1, b), AddInto(ctx, 1, c.T(), -1, c), AddInto(ctx, 1i, b, 1, b)); err != nil {
		return nil, err
	}
	for _, x := range []*Array{b, c} {
		data, err := Data[complex128](ctx, x)
		if err != nil {
			return nil, err
		}
		for _, z := range data {
			read = append(read, real(z), imag(z))
		}
	}
	return read, nil
}

// TestEveryFaultOfArithmeticEndsInAnErrorOrTheRightValue makes each driver call
// fail in turn, and each kill the device: nothing hangs, nothing is left, no value is
// wrong.
func TestEveryFaultOfArithmeticEndsInAnErrorOrTheRightValue(t *testing.T) {
	for _, death := range []bool{false, true} {
		everyFault(t, death, arithmeticProgram, func() driver.Family { return host.New(host.Options{HandOver: true}) }, func(int) {})
	}
}
