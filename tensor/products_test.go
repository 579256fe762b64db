package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

// whole is a view of small whole numbers: a block of a larger matrix, perhaps
// transposed or conjugated. Products of such are exact in every element type.
func whole(ctx context.Context, rng *rand.Rand, dt DType, rows, cols int) *Array {
	turned := rng.IntN(2) == 0
	if turned {
		rows, cols = cols, rows
	}
	top, left := rng.IntN(2), rng.IntN(3)
	data := make([]complex128, (rows+2)*(cols+3))
	for i := range data {
		data[i] = complex(float64(rng.IntN(5)-2), 0)
		if dt.IsComplex() {
			data[i] += complex(0, float64(rng.IntN(5)-2))
		}
	}
	a := must(AsType(ctx, must(From(ctx, data, rows+2, cols+3)), dt))
	a = must(a.Slice(Span(top, top+rows), Span(left, left+cols)))
	switch {
	case turned && rng.IntN(2) == 0:
		a = a.H()
	case turned:
		a = a.T()
	case rng.IntN(4) == 0:
		a = a.Conj()
	}
	return a
}

func TestProductsAreExactlyThoseComputedOneByOne(t *testing.T) {
	ctx := start(t)
	gathered, all := 0, 0
	for round := range 200 {
		rng := rand.New(rand.NewPCG(41, uint64(round)))
		ctx, free := Scope(ctx)
		x := NewProducts(1 << 20)
		type product struct {
			what   string
			c, one *Array // what was gathered, and the same by itself
			want   []complex128
		}
		var products []product
		var a, b *Array
		for range 1 + rng.IntN(12) {
			all++
			dt := dtype.All()[rng.IntN(len(dtype.All()))]
			m, n, k := 1+rng.IntN(4), 1+rng.IntN(4), 1+rng.IntN(4)
			precision := Precision(rng.IntN(4)) // exact, all of them, of such small numbers
			if a == nil || rng.IntN(3) > 0 {    // else those of the last one again
				a, b = whole(ctx, rng, dt, m, k), whole(ctx, rng, dt, k, n)
			}
			dt, m, k, n = a.dtype, a.Shape()[0], a.Shape()[1], b.Shape()[1]
			before := x.Len()
			if rng.IntN(2) == 0 {
				w, _ := naive(m, n, k, 1, must(values(ctx, a)), must(values(ctx, b)), 0, make([]complex128, m*n))
				c, ok := x.MatMul(ctx, a, b, precision)
				if ok {
					products = append(products, product{fmt.Sprint("MatMul of ", dt), c, must(MatMul(ctx, a, b, precision)), w})
					if shape := c.Shape(); shape[0] != m || shape[1] != n || c.dtype != dt || !x.Again(before) {
						t.Errorf("the result is to be %v of %v", c.dtype, shape)
					}
				} else if c != nil || x.Len() != before {
					t.Errorf("a product that was not gathered left %v and %d products of %d", c, x.Len(), before)
				}
				continue
			}
			alpha, beta := complex(float64(rng.IntN(4)-1), 0), complex(float64(rng.IntN(4)-1), 0)
			if dt.IsComplex() {
				alpha, beta = alpha+1i, beta*(1-1i)
			}
			c := whole(ctx, rng, dt, m, n)
			w, _ := naive(m, n, k, alpha, must(values(ctx, a)), must(values(ctx, b)), beta, must(values(ctx, c)))
			one := must(Copy(ctx, c))
			if err := GemmInto(ctx, alpha, a, b, beta, one, precision); err != nil {
				t.Fatal(err)
			}
			if x.GemmInto(alpha, a, b, beta, c, precision) {
				products = append(products, product{fmt.Sprint("GemmInto of ", dt), c, one, w})
				if x.Again(before) != (beta == 0) {
					t.Errorf("with beta %v, twice is the same: %t", beta, x.Again(before))
				}
			} else if x.Len() != before {
				t.Errorf("a product that was not gathered left %d products of %d", x.Len(), before)
			}
		}
		if x.Len() != len(products) {
			t.Fatalf("there are %d products; expected %d", x.Len(), len(products))
		}
		gathered += len(products)
		if submitted, err := x.Submit(ctx); err != nil || submitted != (len(products) > 0) {
			t.Fatalf("Submit answers %t, %v", submitted, err)
		}
		x.Close()
		for i, p := range products {
			got, one := must(values(ctx, p.c)), must(values(ctx, p.one))
			if !slices.Equal(got, p.want) || !slices.Equal(one, p.want) {
				t.Errorf("round %d, product %d, %s: %v together and %v by itself; expected %v", round, i, p.what, got, one, p.want)
			}
		}
		if err := free(); err != nil {
			t.Fatal(err)
		}
	}
	if gathered < all/3 {
		t.Errorf("only %d of %d products were gathered", gathered, all)
	}
}

func TestProductsAreOneLaunchAndOneCompletion(t *testing.T) {
	plan := &fault.Plan{}
	ctx := startOn(t, []driver.Family{fault.New(host.New(host.Options{HandOver: true}), plan)})
	for _, count := range []int{1, 2, 64} {
		x := NewProducts(1 << 20)
		for i := range count {
			a, b := must(Full(ctx, 1, Float64, 1+i%5, 3)), must(Full(ctx, 2, Float64, 3, 1+i%3))
			if _, ok := x.MatMul(ctx, a, b); !ok {
				t.Fatalf("product %d was not gathered", i)
			}
		}
		before := plan.Counts()
		if _, err := x.Submit(ctx); err != nil {
			t.Fatal(err)
		}
		after := plan.Counts()
		x.Close()
		launches := after[fault.BLASGemm] - before[fault.BLASGemm] + after[fault.BLASGemmGroups] - before[fault.BLASGemmGroups]
		if records := after[fault.StreamRecord] - before[fault.StreamRecord]; launches != 1 || records > 1 {
			t.Errorf("%d products were %d launches and %d completions; expected one each", count, launches, records)
		}
	}
	x := NewProducts(1)
	if submitted, err := x.Submit(ctx); submitted || err != nil {
		t.Errorf("without products Submit answers %t, %v", submitted, err)
	}
	x.Close()
}

func TestWhatIsNoMemberOfProductsIsNotGathered(t *testing.T) {
	ctx := start(t)
	f := func(shape ...int) *Array { return must(Full(ctx, 1, Float64, shape...)) }
	far := func() *Array {
		return must(Full(runtime.On(ctx, must(runtime.Get("host:1"))), 1, Float64, 2, 2))
	}
	s, c := f(2, 2), f(2, 2)
	stepped := must(f(4, 4).Slice(Steps(0, End, 2), Steps(0, End, 2)))
	for what, gather := range map[string]func(x Products) bool{
		"nothing":       func(x Products) bool { return ok2(x.MatMul(ctx, nil, s)) },
		"no array":      func(x Products) bool { return ok2(x.MatMul(ctx, s, &Array{})) },
		"a vector":      func(x Products) bool { return ok2(x.MatMul(ctx, s, f(2))) },
		"a batch":       func(x Products) bool { return ok2(x.MatMul(ctx, f(3, 2, 2), s)) },
		"other extents": func(x Products) bool { return ok2(x.MatMul(ctx, s, f(3, 2))) },
		"other types":   func(x Products) bool { return ok2(x.MatMul(ctx, s, must(Full(ctx, 1, Float32, 2, 2)))) },
		"integers":      func(x Products) bool { i := must(Full(ctx, 1, Int64, 2, 2)); return ok2(x.MatMul(ctx, i, i)) },
		"no rows":       func(x Products) bool { return ok2(x.MatMul(ctx, f(0, 2), s)) },
		"no terms":      func(x Products) bool { return ok2(x.MatMul(ctx, f(2, 0), f(0, 2))) },
		"two devices":   func(x Products) bool { return ok2(x.MatMul(ctx, s, far())) },
		"steps":         func(x Products) bool { return ok2(x.MatMul(ctx, s, stepped)) },
		"conjugated rows": func(x Products) bool {
			z := must(Full(ctx, 1, Complex128, 2, 2))
			return ok2(x.MatMul(ctx, z, z.Conj()))
		},
		"one address":      func(x Products) bool { return ok2(x.MatMul(ctx, s, must(f(1, 1).Broadcast(2, 2)))) },
		"too large":        func(x Products) bool { return ok2(x.MatMul(ctx, f(10, 10), f(10, 11))) },
		"a huge view":      func(x Products) bool { v := must(f(1, 1).Broadcast(1<<30, 1<<29)); return ok2(x.MatMul(ctx, v, v.T())) },
		"a precision":      func(x Products) bool { return ok2(x.MatMul(ctx, s, s, Precision(9))) },
		"no option":        func(x Products) bool { return ok2(x.MatMul(ctx, s, s, nil)) },
		"to nothing":       func(x Products) bool { return x.GemmInto(1, s, s, 0, nil) },
		"to the far":       func(x Products) bool { return x.GemmInto(1, s, s, 0, far()) },
		"far, all of them": func(x Products) bool { return x.GemmInto(1, far(), far(), 0, far()) },
		"to a vector":      func(x Products) bool { return x.GemmInto(1, s, s, 0, f(2)) },
		"to another shape": func(x Products) bool { return x.GemmInto(1, s, s, 0, f(2, 3)) },
		"to steps":         func(x Products) bool { return x.GemmInto(1, s, s, 0, stepped) },
		"to one address":   func(x Products) bool { return x.GemmInto(1, s, s, 0, must(f(1, 1).Broadcast(2, 2))) },
		"in place":         func(x Products) bool { return x.GemmInto(1, c, s, 0, c) },
		"in place, turned": func(x Products) bool { return x.GemmInto(1, s, c.T(), 1, c) },
		"imaginary":        func(x Products) bool { return x.GemmInto(1i, s, s, 0, c) },
	} {
		for _, others := range []int{0, 1} {
			x := NewProducts(1000)
			if others > 0 {
				if _, ok := x.MatMul(ctx, s, s); !ok {
					t.Fatal("a plain product was not gathered")
				}
			} else if what == "far, all of them" { // which is alike then
				continue
			}
			func() {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%s: %v", what, r)
					}
				}()
				if gather(x) || x.Len() != others {
					t.Errorf("%s was gathered, or left %d products", what, x.Len()-others)
				}
			}()
			if _, err := x.Submit(ctx); err != nil {
				t.Errorf("after %s: %v", what, err)
			}
			x.Close()
		}
	}
}

// ok2 is whether there was a result.
func ok2[T any](_ T, ok bool) bool { return ok }

// TestProductsThatCannotAllBeSubmittedAreNot: nothing is done then.
func TestProductsThatCannotAllBeSubmittedAreNot(t *testing.T) {
	plan := &fault.Plan{}
	ctx := startOn(t, []driver.Family{fault.New(host.New(host.Options{HandOver: true}), plan)})
	f := func(n float64) *Array { return must(Full(ctx, complex(n, 0), Float64, 2, 2)) }
	base := must(Full(ctx, 5, Float64, 3, 3))
	window := func(i int) *Array { return must(base.Slice(Span(i, i+2), Span(i, i+2))) }
	for what, c := range map[string]struct {
		gather func(x Products) (before func())
		is     error
		says   string
	}{
		"a freed operand": {func(x Products) func() {
			a := f(1)
			x.GemmInto(1, f(1), a, 1, f(5))
			return func() { _ = a.Free() }
		}, weir.ErrClosed, "tensor.Products: member 1: buffer."},
		"a freed target": {func(x Products) func() {
			c := f(1)
			x.GemmInto(1, f(1), f(1), 1, c)
			return func() { _ = c.Free() }
		}, weir.ErrClosed, "tensor.Products: member 1: buffer."},
		"a freed result": {func(x Products) func() {
			c, _ := x.MatMul(ctx, f(1), f(1))
			return func() { _ = c.Free() }
		}, weir.ErrClosed, "tensor.Products: member 1: buffer."},
		"targets that overlap": {func(x Products) func() {
			x.GemmInto(1, f(1), f(1), 1, window(0))
			x.GemmInto(1, f(1), f(1), 1, window(1))
			return func() {}
		}, weir.ErrArgument, "tensor.Products: c of member 1 overlaps c of member 2 in memory"},
		"a target that another reads": {func(x Products) func() {
			x.MatMul(ctx, window(1), window(0))
			x.GemmInto(1, f(1), f(1), 1, window(0))
			return func() {}
		}, weir.ErrBusy, ""},
		"a target twice": {func(x Products) func() {
			c := f(5)
			x.GemmInto(1, f(1), f(1), 1, c)
			x.GemmInto(1, f(1), f(1), 1, c)
			return func() {}
		}, weir.ErrArgument, "tensor.Products: c of member 1 overlaps c of member 2 in memory"},
	} {
		x := NewProducts(1000)
		target := f(5)
		x.GemmInto(1, f(1), f(1), 1, target)
		before := c.gather(x)
		before()
		n := plan.Counts()
		submitted, err := x.Submit(ctx)
		if submitted || !errors.Is(err, c.is) || !strings.HasPrefix(fmt.Sprint(err), c.says) {
			t.Errorf("%s: Submit answers %t, %v; expected %v, %s…", what, submitted, err, c.is, c.says)
		}
		m := plan.Counts()
		if m[fault.BLASGemm]+m[fault.BLASGemmGroups] != n[fault.BLASGemm]+n[fault.BLASGemmGroups] {
			t.Errorf("%s: something was submitted", what)
		}
		x.Close()
		if got := must(Data[float64](ctx, target)); !slices.Equal(got, []float64{5, 5, 5, 5}) {
			t.Errorf("%s: the other target is %v", what, got)
		}
		if err := GemmInto(ctx, 1, f(1), f(1), 1, target); err != nil {
			t.Errorf("%s: the other target by itself: %v", what, err)
		}
	}
	// An access that is open.
	a, target := f(1), f(5)
	s := must(a.resources().Streams().Acquire(ctx))
	acc := buffer.Begin(s)
	acc.Write(a.Buffer())
	x := NewProducts(1000)
	x.GemmInto(1, f(1), f(1), 1, target)
	x.MatMul(ctx, a, f(1))
	if submitted, err := x.Submit(ctx); submitted || !errors.Is(err, weir.ErrBusy) {
		t.Errorf("with an open access Submit answers %t, %v", submitted, err)
	}
	if err := errors.Join(acc.End(), s.Release()); err != nil {
		t.Error(err)
	}
	if submitted, err := x.Submit(ctx); !submitted || err != nil {
		t.Errorf("once it is over Submit answers %t, %v", submitted, err)
	}
	x.Close()
	if got := must(Data[float64](ctx, target)); !slices.Equal(got, []float64{7, 7, 7, 7}) {
		t.Errorf("the target is %v", got)
	}
}

func TestDiscardFreesWhatMatMulMadeAndNothingElse(t *testing.T) {
	ctx := start(t)
	a, target := must(Full(ctx, 1, Float64, 2, 2)), must(Full(ctx, 5, Float64, 2, 2))
	x := NewProducts(1000)
	defer x.Close()
	c, _ := x.MatMul(ctx, a, a)
	x.GemmInto(1, a, a, 0, target)
	for i := range x.Len() {
		if err := x.Discard(i); err != nil {
			t.Error(err)
		}
	}
	if _, err := Data[float64](ctx, c); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("a result that was discarded is %v", err)
	}
	if got, err := Data[float64](ctx, target); err != nil || got[0] != 5 {
		t.Errorf("a target that was discarded is %v, %v", got, err)
	}
}

// productsProgram submits products, two of which change what is there, and answers
// all values. What failed is as it was, or was computed once.
func productsProgram(t *testing.T) func(ctx context.Context) ([]float64, error) {
	return func(ctx context.Context) (all []float64, err error) {
		ctx, free := Scope(ctx)
		defer func() { err = errors.Join(err, free()) }()
		var a []*Array
		for i := range 5 {
			x, err := From(ctx, []float64{1, float64(i), -1, 2}, 2, 2)
			if err != nil {
				return nil, err
			}
			a = append(a, x)
		}
		one, err := From(ctx, []float64{3}, 1, 1)
		if err != nil {
			return nil, err
		}
		x := NewProducts(1000)
		defer x.Close()
		c := a[3:]
		twice := x.GemmInto(1, a[0], a[1], 1, a[3]) && x.GemmInto(2, a[1], a[2], 0, a[4])
		for _, b := range []*Array{a[0], one} {
			p, ok := x.MatMul(ctx, b, b)
			if ok {
				c = append(c, p)
			} else if twice = false; err == nil {
				err = &weir.Error{Op: "test", Kind: weir.KindOutOfMemory, Message: "a product was not gathered"}
			}
		}
		submitted, failed := x.Submit(ctx)
		if failed != nil && !submitted {
			if got, err := Data[float64](ctx, a[3]); err == nil && !slices.Equal(got, []float64{1, 3, -1, 2}) {
				t.Errorf("what was not submitted made its target %v", got)
			}
		}
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		for _, p := range c {
			got, err := Data[float64](ctx, p)
			if err != nil {
				return nil, err
			}
			all = append(all, got...)
		}
		if want := []float64{2, 4, -4, 5, 0, 8, -6, 4, 1, 0, -3, 4, 9}; twice && !slices.Equal(all, want) {
			t.Errorf("the products are %v; expected %v", all, want)
		}
		return all, nil
	}
}

func TestEveryFaultOfProductsEndsInAnErrorOrTheRightValue(t *testing.T) {
	for _, death := range []bool{false, true} {
		everyFault(t, death, productsProgram(t), func() driver.Family { return host.New(host.Options{HandOver: true}) }, func(int) {})
	}
}

func TestProductsWithNaNFactorsAndBetaZero(t *testing.T) {
	ctx := start(t)
	nan := complex(math.NaN(), 0)
	a := must(Full(ctx, 1, Float64, 2, 2))
	x := NewProducts(1000)
	var c []*Array
	for _, f := range []complex128{nan, nan, 1, 1} {
		c = append(c, must(Full(ctx, nan, Float64, 2, 2)))
		if !x.GemmInto(f, a, a, 0, c[len(c)-1]) {
			t.Fatal("a product was not gathered")
		}
	}
	if _, err := x.Submit(ctx); err != nil {
		t.Fatal(err)
	}
	x.Close()
	for i, want := range []float64{math.NaN(), math.NaN(), 2, 2} {
		if got := must(Data[float64](ctx, c[i]))[0]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("product %d is %v; expected %v", i, got, want)
		}
	}
	if again := NewProducts(1); again.Len() != 0 || len(again.places) != 0 || len(again.groups) != 0 {
		t.Errorf("what was closed left %d products, %d forms and %d groups", again.Len(), len(again.places), len(again.groups))
	}
}
