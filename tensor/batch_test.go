package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

func TestGemmBatchIntoAgreesWithNaiveProductsForAllViewsAndTypes(t *testing.T) {
	ctx := start(t)
	for _, dt := range dtype.All() {
		t.Run(dt.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(21, uint64(dt)))
			for round := range 40 {
				if err := batchOnce(ctx, rng, dt); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		})
	}
}

// batchOnce multiplies random views, some of them operands of several members.
func batchOnce(ctx context.Context, rng *rand.Rand, dt DType) error {
	ctx, free := Scope(ctx)
	defer free()
	var a, b, c []*Array
	var want [][]complex128
	var absolute [][]float64
	alpha, beta := complex(float64(rng.IntN(3)), 0), complex(float64(rng.IntN(3)-1), 0)
	if dt.IsComplex() {
		alpha += 1i
	}
	m, n, k := rng.IntN(6), rng.IntN(6), rng.IntN(6)
	for i := range rng.IntN(9) {
		if rng.IntN(2) == 0 { // else the shape of the last
			m, n, k = rng.IntN(6), rng.IntN(6), rng.IntN(6)
		}
		x, err := view(ctx, rng, dt, m, k)
		if err != nil {
			return err
		}
		y, err := view(ctx, rng, dt, k, n)
		if err != nil {
			return err
		}
		if i > 0 && rng.IntN(3) == 0 && a[i-1].Shape()[0] == m && a[i-1].Shape()[1] == k {
			x = a[i-1]
		}
		z, err := view(ctx, rng, dt, m, n)
		if err != nil {
			return err
		}
		if !z.distinct() {
			if z, err = random(ctx, rng, dt, m, n); err != nil {
				return err
			}
		}
		if m == k && k == n && x.distinct() && !slices.Contains(a, x) && rng.IntN(3) == 0 { // in place
			z = x
		}
		vx, err1 := values(ctx, x)
		vy, err2 := values(ctx, y)
		vz, err3 := values(ctx, z)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		w, s := naive(m, n, k, alpha, vx, vy, beta, vz)
		a, b, c = append(a, x), append(b, y), append(c, z)
		want, absolute = append(want, w), append(absolute, s)
	}
	for i := range c { // a result in place must not be the next one's operand
		if a[i] == c[i] && i+1 < len(a) && a[i+1] == a[i] {
			return nil
		}
	}
	if err := GemmBatchInto(ctx, alpha, a, b, beta, c); err != nil {
		return err
	}
	for i := range c {
		got, err := values(ctx, c[i])
		if err != nil {
			return err
		}
		if err := compare(dt, a[i].Shape()[1], got, want[i], absolute[i]); err != nil {
			return fmt.Errorf("member %d of %d, %v·%v with strides %v, %v, %v: %w", i, len(c), a[i].Shape(), b[i].Shape(), a[i].Strides(), b[i].Strides(), c[i].Strides(), err)
		}
	}
	return nil
}

// blocks cuts matrices of rows×cols out of one array: along axis 0 of a stack, or
// side by side in one matrix.
func blocks(ctx context.Context, count, rows, cols int, sideBySide bool) (all []*Array) {
	whole := must(Full(ctx, 1, Float64, rows, count*cols))
	stack := must(Full(ctx, 1, Float64, count, rows, cols))
	for i := range count {
		if sideBySide {
			all = append(all, must(whole.Slice(All(), Span(i*cols, (i+1)*cols))))
		} else {
			all = append(all, must(stack.Slice(At(i))))
		}
	}
	return all
}

func separate(ctx context.Context, count, rows, cols int) (all []*Array) {
	for range count {
		all = append(all, must(Full(ctx, 1, Float64, rows, cols)))
	}
	return all
}

func TestABatchIsAsFewLaunchesAndAccessesAsItsMembersAllow(t *testing.T) {
	plan := &fault.Plan{}
	ctx := startOn(t, []driver.Family{fault.New(host.New(host.Options{HandOver: true}), plan)})
	one := must(Full(ctx, 1, Float64, 3, 3))
	for _, c := range []struct {
		name            string
		a, b, c         []*Array
		strided, groups int
	}{
		{"evenly apart", blocks(ctx, 4, 2, 3, false), blocks(ctx, 4, 3, 3, false), blocks(ctx, 4, 2, 3, false), 1, 0},
		{"side by side", blocks(ctx, 4, 3, 3, true), blocks(ctx, 4, 3, 3, true), blocks(ctx, 4, 3, 3, true), 1, 0},
		{"one operand for all", slices.Repeat([]*Array{one}, 4), blocks(ctx, 4, 3, 3, false), blocks(ctx, 4, 3, 3, false), 1, 0},
		{"each in memory of its own", separate(ctx, 4, 2, 3), separate(ctx, 4, 3, 3), separate(ctx, 4, 2, 3), 0, 1},
		{"at uneven steps", slices.Repeat([]*Array{one}, 3), slices.Repeat([]*Array{one}, 3), slicesOf(blocks(ctx, 5, 3, 3, false), 0, 1, 4), 0, 1},
		{"of several shapes", append(separate(ctx, 2, 1, 2), separate(ctx, 2, 4, 2)...), separate(ctx, 4, 2, 3), append(separate(ctx, 2, 1, 3), separate(ctx, 2, 4, 3)...), 0, 1},
		{"some evenly apart, some not", append(blocks(ctx, 3, 3, 3, false), separate(ctx, 2, 2, 3)...), append(blocks(ctx, 3, 3, 3, false), separate(ctx, 2, 3, 3)...),
			append(blocks(ctx, 3, 3, 3, false), separate(ctx, 2, 2, 3)...), 1, 1},
		{"a single one", separate(ctx, 1, 2, 3), separate(ctx, 1, 3, 3), separate(ctx, 1, 2, 3), 1, 0},
		{"nothing", separate(ctx, 2, 0, 3), separate(ctx, 2, 3, 3), separate(ctx, 2, 0, 3), 0, 0},
	} {
		before := plan.Counts()
		if err := GemmBatchInto(ctx, 1, c.a, c.b, 0, c.c); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		after := plan.Counts()
		count := func(call fault.Call) int { return after[call] - before[call] }
		records := min(1, c.strided+c.groups) // one completion
		if s, g, r := count(fault.BLASGemm), count(fault.BLASGemmGroups), count(fault.StreamRecord); s != c.strided || g != c.groups || r != records {
			t.Errorf("%s: %d plain products, %d calls with groups and %d events; expected %d, %d and %d", c.name, s, g, r, c.strided, c.groups, records)
		}
		for i, x := range c.c {
			for _, got := range must(Data[float64](ctx, x)) {
				if got != float64(c.a[i].Shape()[1]) {
					t.Errorf("%s: a product of ones is %v", c.name, got)
				}
			}
		}
	}
}

func slicesOf(all []*Array, numbers ...int) (some []*Array) {
	for _, i := range numbers {
		some = append(some, all[i])
	}
	return some
}

func TestABatchRefusesWhatItCannotMultiplyAndNamesTheMember(t *testing.T) {
	ctx := start(t)
	f := func(shape ...int) *Array { return must(Zeros(ctx, Float32, shape...)) }
	far := must(Zeros(runtime.On(ctx, must(runtime.Get("host:1"))), Float32, 2, 2))
	wide := must(Zeros(ctx, Float64, 2, 2))
	square := f(2, 2)
	base := f(6, 6)
	window := func(row, column int) *Array { return must(base.Slice(Span(row, row+2), Span(column, column+2))) }
	of := func(second *Array) []*Array { return []*Array{f(2, 2), second} }
	batch := func(a, b, c []*Array) error { return GemmBatchInto(ctx, 1, a, b, 0, c) }
	freed := f(2, 2)
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"tensor.GemmBatchInto: 2, 1 and 2 arrays in a, b and c; expected as many of each":                                                            batch(of(square), of(square)[:1], of(square)),
		"tensor.GemmBatchInto: member 1: b is nil; expected an array that a constructor or an operation made":                                        batch(of(square), of(nil), of(square)),
		"tensor.GemmBatchInto: member 1: a is 2×3, b 2×2 and c 2×2; expected m×k, k×n and m×n":                                                       batch(of(f(2, 3)), of(square), of(f(2, 2))),
		"tensor.GemmBatchInto: member 1: a is on host:0 and b on host:1; copy one to the other's device with tensor.To":                              batch(of(square), of(far), of(f(2, 2))),
		"tensor.GemmBatchInto: member 1: c of member 0 is on host:0 and c of member 1 on host:1; copy one to the other's device with tensor.To":      batch(of(far), of(far), of(far)),
		"tensor.GemmBatchInto: member 1: a is float32 and c is float64; convert one with tensor.AsType":                                              batch(of(square), of(square), of(wide)),
		"tensor.GemmBatchInto: member 1: the arrays are float64 and those of member 0 float32; expected one element type":                            batch(of(wide), of(wide), of(wide)),
		"tensor.GemmBatchInto: member 0: alpha is (0+1i) for float32 arrays; expected a real number":                                                 GemmBatchInto(ctx, 1i, of(square), of(square), 0, of(f(2, 2))),
		"tensor.GemmBatchInto: member 1: the result, 2×2 with strides [0 1], has several elements at one address; expected a view that repeats none": batch(of(square), of(square), of(must(f(2).Broadcast(2, 2)))),
		"tensor.GemmBatchInto: c of member 0 overlaps c of member 1 in memory; expected results that no other member reads or writes":                batch(of(square), of(square), []*Array{window(0, 0), window(1, 1)}),
		"tensor.GemmBatchInto: c of member 1 overlaps b of member 0 in memory; expected results that no other member reads or writes":                batch(of(f(2, 2)), []*Array{square, f(2, 2)}, of(square)),
		"tensor.GemmBatchInto: c of member 0 overlaps a of member 1 in memory; expected results that no other member reads or writes":                batch(of(window(3, 2)), of(square), []*Array{window(2, 3), f(2, 2)}),
		"tensor.GemmBatchInto: precision Precision(9); expected one of Exact, FastTF32, FastBF16 and FastFP16":                                       GemmBatchInto(ctx, 1, nil, nil, 0, nil, Precision(9)),
		"tensor.GemmInto: option 1 is nil; expected one of package tensor's":                                                                         GemmInto(ctx, 1, square, square, 0, f(2, 2), Exact, nil),
		"tensor.MatMul: precision Precision(4); expected one of Exact, FastTF32, FastBF16 and FastFP16":                                              second(MatMul(ctx, square, square, Precision(4))),
		"einsum: precision Precision(200); expected one of Exact, FastTF32, FastBF16 and FastFP16":                                                   second(EinsumWith(ctx, EinsumOptions{Precision: 200}, "ij,jk", square, square)),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
	err := batch(of(square), of(freed), of(f(2, 2)))
	if !errors.Is(err, weir.ErrClosed) || !strings.HasPrefix(err.Error(), "tensor.GemmBatchInto on host:0: member 1: b was freed") {
		t.Errorf("a freed operand: %v", err)
	}
	if err := batch(nil, nil, nil); err != nil {
		t.Errorf("no members: %v", err)
	}
}

func TestResultsOfABatchMayShareABufferAndTheirOwnOperands(t *testing.T) {
	ctx := start(t)
	rng := rand.New(rand.NewPCG(31, 32))
	base := must(random(ctx, rng, Float64, 8, 12))
	window := func(row, column int) *Array { return must(base.Slice(Span(row, row+4), Span(column, column+4))) }
	// The results are four of six windows; two of them are also operands of their
	// own members, and the others' operands lie in the windows that are left.
	a := []*Array{window(0, 0), window(4, 8), window(4, 8), window(0, 8)}
	b := []*Array{window(4, 8), window(0, 4), window(4, 4), window(4, 8).T()}
	c := []*Array{window(0, 0), window(0, 4), window(4, 0), window(0, 8)}
	var want [][]complex128
	var absolute [][]float64
	for i := range c {
		w, s := naive(4, 4, 4, 2, must(values(ctx, a[i])), must(values(ctx, b[i])), -1, must(values(ctx, c[i])))
		want, absolute = append(want, w), append(absolute, s)
	}
	if err := GemmBatchInto(ctx, 2, a, b, -1, c); err != nil {
		t.Fatal(err)
	}
	for i := range c {
		if err := compare(Float64, 4, must(values(ctx, c[i])), want[i], absolute[i]); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
}

// TestWorkAfterABatchWaitsForIt, where a result shares its buffer with an operand.
func TestWorkAfterABatchWaitsForIt(t *testing.T) {
	ctx := start(t)
	late, base := must(Full(ctx, 1, Float64, 2, 2)), must(Full(ctx, 3, Float64, 4, 2))
	upper, lower := must(base.Slice(Span(0, 2))), must(base.Slice(Span(2, 4)))
	ones, after := must(Full(ctx, 1, Float64, 2, 2)), must(Zeros(ctx, Float64, 2, 2))
	for _, a := range []*Array{late, base, ones, after} { // nothing of them is unfinished
		must(Data[float64](ctx, a))
	}
	release := holdBack(ctx, t, late)
	if err := GemmBatchInto(ctx, 1, []*Array{late}, []*Array{upper}, 0, []*Array{lower}); err != nil {
		t.Fatal(err)
	}
	if err := GemmInto(ctx, 1, lower, ones, 0, after); err != nil {
		t.Fatal(err)
	}
	read := make(chan []float64, 1)
	go func() { read <- must(Data[float64](ctx, after)) }()
	for range 10_000 { // time enough for a product that does not wait
		goruntime.Gosched()
	}
	select {
	case got := <-read:
		t.Fatalf("the next product is %v before the batch that it reads from ran", got)
	default:
	}
	release()
	if got := <-read; !slices.Equal(got, []float64{12, 12, 12, 12}) {
		t.Errorf("the next product is %v; want twelves", got)
	}
}

// holdBack makes a's latest writer one that ends with release.
func holdBack(ctx context.Context, t *testing.T, a *Array) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	s := must(a.resources().Streams().Acquire(ctx))
	acc := buffer.Begin(s)
	acc.Write(a.Buffer())
	if err := errors.Join(must(s.Submit()).Call(func() { <-gate }), acc.End(), s.Release()); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return release
}

func TestABatchWithBetaZeroDoesNotReadItsResults(t *testing.T) {
	ctx := start(t)
	for _, k := range []int{0, 2} {
		var a, b, c []*Array
		for i := range 3 {
			a, b = append(a, must(Full(ctx, 1, Float32, 3, k)).T().T()), append(b, must(Full(ctx, 1, Float32, k, 2+i)))
			c = append(c, must(Full(ctx, complex(math.NaN(), 0), Float32, 3, 2+i)))
		}
		if err := GemmBatchInto(ctx, 1, a, b, 0, c); err != nil {
			t.Fatal(err)
		}
		for i := range c {
			if got := must(Data[float32](ctx, c[i])); !slices.Equal(got, slices.Repeat([]float32{float32(k)}, len(got))) {
				t.Errorf("K = %d, member %d: %v", k, i, got)
			}
		}
	}
}

func TestMatricesAreDisjointIfTheyShareNoElement(t *testing.T) {
	ctx := start(t)
	base := must(Zeros(ctx, Int32, 400))
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string, steps [2]int64) *Array {
			signs := [2]int64{1, 1}
			for i := range signs {
				if rapid.Bool().Draw(r, name+" turned") {
					signs[i] = -1
				}
			}
			shape := []int64{rapid.Int64Range(1, 4).Draw(r, name+" rows"), rapid.Int64Range(1, 4).Draw(r, name+" columns")}
			return base.with(layoutOf(shape, []int64{steps[0] * signs[0], steps[1] * signs[1]}), rapid.Int64Range(100, 160).Draw(r, name+" offset"))
		}
		steps := [2]int64{rapid.Int64Range(0, 12).Draw(r, "row step"), rapid.Int64Range(0, 12).Draw(r, "column step")}
		other := steps
		switch rapid.IntRange(0, 3).Draw(r, "other steps") {
		case 0:
			other = [2]int64{steps[1], steps[0]}
		case 1:
			other[0]++
		}
		a, b := draw("a", steps), draw("b", other)
		touched := map[int64]bool{}
		shared := false
		for i := range a.shape()[0] {
			for j := range a.shape()[1] {
				touched[a.offset+i*a.strides()[0]+j*a.strides()[1]] = true
			}
		}
		for i := range b.shape()[0] {
			for j := range b.shape()[1] {
				shared = shared || touched[b.offset+i*b.strides()[0]+j*b.strides()[1]]
			}
		}
		got := disjoint(a, b)
		if got && shared {
			r.Fatalf("%v %v at %d and %v %v at %d share an element", a.Shape(), a.Strides(), a.offset, b.Shape(), b.Strides(), b.offset)
		}
		x, y := latticeOf(a, b), latticeOf(b, a)
		if x.regular() && y.regular() && x.large == y.large && x.small == y.small && got == shared {
			r.Fatalf("%v %v at %d and %v %v at %d: disjoint is %v", a.Shape(), a.Strides(), a.offset, b.Shape(), b.Strides(), b.offset, got)
		}
	})
}

// TestEveryFaultOfABatchEndsInAnErrorOrTheRightValue makes each driver call fail
// in turn, and each kill the device: nothing hangs, nothing is left.
func TestEveryFaultOfABatchEndsInAnErrorOrTheRightValue(t *testing.T) {
	program := func(ctx context.Context) (got []float64, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = r.(error)
			}
		}()
		ctx, free := Scope(ctx)
		defer func() { err = errors.Join(err, free()) }()
		packed := must(must(Full(ctx, 1, Float64, 3, 6)).Slice(All(), Steps(0, End, 2))) // steps over elements both ways
		a := append(separate(ctx, 2, 2, 3), append(blocks(ctx, 2, 3, 3, false), packed)...)
		b := separate(ctx, 5, 3, 3)
		c := append(separate(ctx, 2, 2, 3), append(blocks(ctx, 2, 3, 3, false), must(Full(ctx, 1, Float64, 3, 3)))...)
		if err := GemmBatchInto(ctx, 1, a, b, 1, c); err != nil {
			return nil, err
		}
		for _, x := range c {
			got = append(got, must(Data[float64](ctx, x))...)
		}
		return got, nil
	}
	want := slices.Repeat([]float64{4}, 2*6+3*9)
	for _, death := range []bool{false, true} {
		for n, calls := 0, 0; n <= calls; n++ {
			plan := &fault.Plan{}
			families := []driver.Family{fault.New(host.New(host.Options{HandOver: true}), plan)}
			rt, err := runtime.StartFamilies(families, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 2}})
			if err != nil {
				t.Fatal(err)
			}
			before := plan.Counts()[fault.Any]
			switch {
			case n == 0:
			case death:
				plan.KillNth(fault.Any, n, nil)
			default:
				plan.FailNth(fault.Any, n, nil)
			}
			got, err := program(context.Background())
			if n == 0 {
				calls = plan.Counts()[fault.Any] - before
			}
			plan.Clear()
			closed := rt.Close()
			if err == nil && !slices.Equal(got, want) || n == 0 && err != nil {
				t.Errorf("call %d, death %t: %v, %v", n, death, got, err)
			}
			if e := (*weir.Error)(nil); err != nil && !errors.As(err, &e) {
				t.Errorf("call %d, death %t: %v is no *weir.Error", n, death, err)
			}
			if errors.Is(closed, weir.ErrLeak) {
				t.Errorf("call %d, death %t: %v", n, death, closed)
			}
		}
	}
}

// TestColumnsThatStepByNothingAreApart: an axis of one element has no step.
func TestColumnsThatStepByNothingAreApart(t *testing.T) {
	ctx := start(t)
	x := must(Zeros(ctx, Float64, 3, 2))
	one := must(From(ctx, []float64{1, 2, 3}, 3, 1))
	two := must(From(ctx, []float64{2}, 1, 1))
	columns := []*Array{must(x.Slice(All(), At(0), NewAxis())), must(x.Slice(All(), At(1), NewAxis()))}
	if err := GemmBatchInto(ctx, 1, []*Array{one, one}, []*Array{two, two}, 0, columns); err != nil {
		t.Fatal(err)
	}
	if got := must(Data[float64](ctx, x)); !slices.Equal(got, []float64{2, 2, 4, 4, 6, 6}) {
		t.Errorf("%v; expected both columns doubled", got)
	}
}
