package tensor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
)

// reference is one case of testdata/einsum.json.
type reference struct {
	Spec                     string
	Shapes                   [][]int
	Real, Imag               [][]float64
	Shape                    []int
	Result                   []float64
	ComplexReal, ComplexImag []float64
}

func TestEinsumAgreesWithNumPy(t *testing.T) {
	text, err := os.ReadFile("testdata/einsum.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []reference
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 40 {
		t.Fatalf("%d cases; expected all of make.py", len(cases))
	}
	ctx := start(t)
	for _, c := range cases {
		for _, dt := range []DType{Float32, Float64, Int32, Int64, Complex64, Complex128} {
			var operands []*Array
			for k, shape := range c.Shapes {
				data := make([]complex128, len(c.Real[k]))
				for i := range data {
					data[i] = complex(c.Real[k][i], 0)
					if dt.IsComplex() {
						data[i] = complex(c.Real[k][i], c.Imag[k][i])
					}
				}
				a, err := fromValues(ctx, dt, shape, data)
				if err != nil {
					t.Fatal(err)
				}
				operands = append(operands, a)
			}
			got, err := Einsum(ctx, c.Spec, operands...)
			if err != nil {
				t.Errorf("%s %v %v: %v", c.Spec, c.Shapes, dt, err)
				continue
			}
			want := make([]complex128, len(c.Result))
			for i := range want {
				want[i] = complex(c.Result[i], 0)
				if dt.IsComplex() {
					want[i] = complex(c.ComplexReal[i], c.ComplexImag[i])
				}
			}
			if !slices.Equal(got.Shape(), c.Shape) || !slices.Equal(must(values(ctx, got)), want) {
				t.Errorf("%s %v %v: shape %v, %v; want %v, %v", c.Spec, c.Shapes, dt, got.Shape(), must(values(ctx, got)), c.Shape, want)
			}
		}
	}
}

func fromValues(ctx context.Context, dt DType, shape []int, data []complex128) (*Array, error) {
	wide, err := From(ctx, data, shape...)
	if len(shape) == 0 {
		wide, err = Scalar(ctx, data[0])
	}
	if err != nil {
		return nil, err
	}
	return AsType(ctx, wide, dt)
}

// naiveNetwork sums over all indices at once.
func naiveNetwork(labels [][]int, shapes [][]int, operands [][]complex128, output []int) (out []complex128, absolute []float64, terms int) {
	extent := map[int]int{}
	for k, l := range labels {
		for i, label := range l {
			extent[label] = max(extent[label], shapes[k][i])
			if shapes[k][i] == 0 {
				extent[label] = 0
			}
		}
	}
	for k, l := range labels {
		for i, label := range l {
			if shapes[k][i] == 0 {
				extent[label] = 0
			}
		}
	}
	var summed []int
	for label := range extent {
		if !slices.Contains(output, label) {
			summed = append(summed, label)
		}
	}
	value := map[int]int{}
	var each func(over []int, do func())
	each = func(over []int, do func()) {
		if len(over) == 0 {
			do()
			return
		}
		for i := range extent[over[0]] {
			value[over[0]] = i
			each(over[1:], do)
		}
	}
	each(output, func() {
		var sum complex128
		size := 0.0
		terms = 0
		each(summed, func() {
			z := complex(1, 0)
			for k, l := range labels {
				at := 0
				for i, label := range l {
					at = at*shapes[k][i] + value[label]%shapes[k][i]
				}
				z *= operands[k][at]
			}
			sum += z
			size += cmplx.Abs(z)
			terms++
		})
		out, absolute = append(out, sum), append(absolute, size)
	})
	return out, absolute, terms
}

// randomNetwork draws a network of up to four operands over up to five indices,
// with diagonals, sums, hyperedges, stretched axes and empty ones.
func randomNetwork(r *rapid.T) (labels [][]int, shapes [][]int, output []int) {
	extents := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 2, 3, 3, 4, 0}), 5, 5).Draw(r, "extents")
	seen := map[int]bool{}
	for range rapid.IntRange(1, 4).Draw(r, "operands") {
		l := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(r, "labels")
		shape := make([]int, len(l))
		stretch := map[int]bool{}
		for i, label := range l {
			if _, ok := stretch[label]; !ok {
				stretch[label] = rapid.IntRange(0, 7).Draw(r, "stretch") == 0
			}
			shape[i] = extents[label]
			if stretch[label] {
				shape[i] = 1
			}
			seen[label] = true
		}
		labels, shapes = append(labels, l), append(shapes, shape)
	}
	for _, label := range rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(r, "output") {
		if seen[label] && rapid.Bool().Draw(r, "keep") {
			output = append(output, label)
		}
	}
	return labels, shapes, output
}

func TestNetworksAgreeWithOneSumOverAllIndices(t *testing.T) {
	ctx := start(t)
	rapid.Check(t, func(r *rapid.T) {
		ctx, free := Scope(ctx)
		defer free()
		labels, shapes, output := randomNetwork(r)
		dt := rapid.SampledFrom([]DType{Float32, Float64, Complex64, Complex128, Int32, Float16, BFloat16}).Draw(r, "dtype")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		var operands []*Array
		var data [][]complex128
		for _, shape := range shapes {
			a := must(view(ctx, rng, dt, shape...))
			operands, data = append(operands, a), append(data, must(values(ctx, a)))
		}
		got, err := Network(ctx, EinsumOptions{}, operands, labels, output)
		if err != nil {
			r.Fatal(err)
		}
		want, absolute, terms := naiveNetwork(labels, shapes, data, output)
		if dt == Float16 || dt == BFloat16 { // every step rounds its result
			for i := range absolute {
				absolute[i] *= float64(len(operands)) * 2
			}
		}
		if err := compare(dt, terms, must(values(ctx, got)), want, absolute); err != nil {
			r.Fatalf("labels %v, shapes %v, output %v: %v", labels, shapes, output, err)
		}
	})
}

func TestEinsumKeepsItsMemoryLimit(t *testing.T) {
	ctx := start(t)
	memory := must(Zeros(ctx, Float64, 1)).memory()
	rapid.Check(t, func(r *rapid.T) {
		ctx, free := Scope(ctx)
		defer free()
		labels, shapes, output := randomNetwork(r)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 2))
		var operands []*Array
		for _, shape := range shapes {
			operands = append(operands, must(view(ctx, rng, Complex128, shape...)))
		}
		cheapest := must(PlanNetwork(EinsumOptions{}, operands, labels, output))
		for limit := cheapest.PeakBytes() + 64; limit > 0; limit = limit * 3 / 4 {
			memory.ResetPeak()
			before := memory.Stats().Used
			got, err := Network(ctx, EinsumOptions{MemoryLimit: limit}, operands, labels, output)
			if errors.Is(err, weir.ErrOutOfMemory) {
				return
			}
			if err != nil {
				r.Fatal(err)
			}
			// An array without elements still takes room for one. There are at most
			// eight steps, each with a result and two packed operands.
			allowed := limit
			if slices.ContainsFunc(operands, func(a *Array) bool { return a.Size() == 0 }) {
				allowed += 8 * 3 * 16
			}
			if used := memory.Stats().HighUsed - before; used > allowed {
				r.Fatalf("used %d bytes under a limit of %d", used, limit)
			}
			if err := got.Free(); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// TestEinsumPacksNothingThatItsPlanDoesNotCount: the operands fit as a batch, and
// would not as one product.
func TestEinsumPacksNothingThatItsPlanDoesNotCount(t *testing.T) {
	ctx := start(t)
	repeated := must(must(From(ctx, []float64{1, 2})).Broadcast(300, 2))
	stepped := must(must(Full(ctx, 1, Float64, 600, 4)).Slice(Steps(0, End, 2), Steps(0, End, 2)))
	for _, operands := range [][]*Array{{repeated, stepped}, {stepped, repeated}} {
		plan := must(PlanEinsum(EinsumOptions{}, "ab,ab->a", operands...))
		memory := repeated.memory()
		memory.ResetPeak()
		before := memory.Stats().Used
		got := must(plan.Run(ctx, operands...))
		if used := memory.Stats().HighUsed - before; used > plan.PeakBytes() {
			t.Errorf("used %d bytes; planned were %d", used, plan.PeakBytes())
		}
		for i, v := range must(Data[float64](ctx, got)) {
			if v != 3 {
				t.Fatalf("element %d is %v; expected 3", i, v)
			}
		}
	}
}

func TestEinsumSaysHowMuchMemoryItNeedsAndForWhichStepBeforeWork(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float64, 32, 32))
	memory := a.memory()
	memory.ResetPeak()
	before := memory.Stats().Used
	_, err := EinsumWith(ctx, EinsumOptions{MemoryLimit: 1000}, "ij,jk,kl->il", a, a, a)
	if !errors.Is(err, weir.ErrOutOfMemory) {
		t.Fatalf("got %v; want ErrOutOfMemory", err)
	}
	for _, part := range []string{"1000", "16384", "step"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if s := memory.Stats(); s.HighUsed != before {
		t.Errorf("%d bytes were taken before the refusal", s.HighUsed-before)
	}
	_, err = EinsumWith(ctx, EinsumOptions{MemoryLimit: 1000}, "ij,jk->ik", must(Zeros(ctx, Complex64, 32, 32)).Conj(), must(Zeros(ctx, Complex64, 32, 32)))
	want := "einsum: memory limit 1000 bytes; copies of conjugated operands alone need 8192"
	if err == nil || err.Error() != want {
		t.Error(cmp.Diff(want, fmt.Sprint(err)))
	}
}

func TestEqualContractionsShareAPlanAndDifferentOnesDoNot(t *testing.T) {
	ctx := start(t)
	a, b := must(Zeros(ctx, Float64, 3, 4)), must(Zeros(ctx, Float64, 4, 3))
	p := must(PlanEinsum(EinsumOptions{}, "ij,jk", a, b))
	if q := must(PlanEinsum(EinsumOptions{}, "ij,jk", must(Zeros(ctx, Float64, 3, 4)), b)); p.path != q.path {
		t.Error("equal operands were planned twice")
	}
	for name, q := range map[string]*Plan{
		"strides": must(PlanEinsum(EinsumOptions{}, "ij,jk", b.T(), b)),
		"spec":    must(PlanEinsum(EinsumOptions{}, "ij,jk->ki", a, b)),
		"limit":   must(PlanEinsum(EinsumOptions{MemoryLimit: 1 << 20}, "ij,jk", a, b)),
		"order":   must(PlanEinsum(EinsumOptions{Order: [][2]int{{1, 0}}}, "ij,jk", a, b)),
		"network": must(PlanNetwork(EinsumOptions{}, []*Array{a, b}, [][]int{{0, 1}, {1, 2}}, []int{0, 2})),
	} {
		if p.path == q.path {
			t.Errorf("another %s has the same plan", name)
		}
	}
	if text := p.String(); !strings.Contains(text, "ij,jk->ik") {
		t.Errorf("the explanation lacks the expression:\n%s", text)
	}
	if p.Steps() != 1 || p.FLOPs() != 2*3*4*3 || p.PeakBytes() != 9*8 || !slices.Equal(p.Shape(), []int{3, 3}) {
		t.Errorf("steps %d, flops %v, peak %d, shape %v", p.Steps(), p.FLOPs(), p.PeakBytes(), p.Shape())
	}
}

func TestEinsumFollowsAGivenOrderAndReportsProgress(t *testing.T) {
	ctx := start(t)
	a := must(From(ctx, []int64{1, 2, 3, 4}, 2, 2))
	var progress [][2]int
	o := EinsumOptions{Order: [][2]int{{1, 2}, {0, 3}}, Progress: func(done, total int) { progress = append(progress, [2]int{done, total}) }}
	got := must(EinsumWith(ctx, o, "ij,jk,kl->il", a, a, a))
	if want := []int64{37, 54, 81, 118}; !slices.Equal(must(Data[int64](ctx, got)), want) {
		t.Errorf("got %v; want %v", must(Data[int64](ctx, got)), want)
	}
	if want := [][2]int{{1, 2}, {2, 2}}; !slices.Equal(progress, want) {
		t.Errorf("progress %v; want %v", progress, want)
	}
}

func TestAPlanRunsAgainAndRefusesOtherOperands(t *testing.T) {
	ctx := start(t)
	a, b := must(From(ctx, []float64{1, 2, 3, 4}, 2, 2)), must(From(ctx, []float64{5, 6, 7, 8}, 2, 2))
	p := must(PlanEinsum(EinsumOptions{}, "ij,jk->ik", a, b))
	for _, c := range []struct {
		x, y *Array
		want []float64
	}{{a, b, []float64{19, 22, 43, 50}}, {b, a, []float64{23, 34, 31, 46}}} {
		if got := must(Data[float64](ctx, must(p.Run(ctx, c.x, c.y)))); !slices.Equal(got, c.want) {
			t.Errorf("got %v; want %v", got, c.want)
		}
	}
	for name, err := range map[string]error{
		"a transposed operand": second(p.Run(ctx, a.T(), b)),
		"another type":         second(p.Run(ctx, must(AsType(ctx, a, Float32)), must(AsType(ctx, b, Float32)))),
		"too few":              second(p.Run(ctx, a)),
	} {
		if !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%s: %v; want ErrArgument", name, err)
		}
	}
}

func TestLongSumsOfNarrowElementsDoNotStandStill(t *testing.T) {
	ctx := start(t)
	const n = 1 << 25 // more than a float32 can count by ones
	for _, dt := range []DType{Float32, Complex64} {
		one := must(must(Full(ctx, 1, dt, 1)).Broadcast(n))
		if got := must(values(ctx, must(Einsum(ctx, "i->", one)))); got[0] != n {
			t.Errorf("%v: %v; want %d", dt, got[0], n)
		}
	}
	if got := must(Data[BF16](ctx, must(AsType(ctx, must(From(ctx, []int64{1<<62 + 1<<54 + 1})), BFloat16)))); got[0].Float32() != 0x1.02p62 {
		t.Errorf("to bfloat16: %v; want %v", got[0], float32(0x1.02p62))
	}
}

func TestContractSumsOverPairsOfAxes(t *testing.T) {
	ctx := start(t)
	rng := rand.New(rand.NewPCG(7, 8))
	a, b := must(view(ctx, rng, Float64, 2, 3, 4)), must(view(ctx, rng, Float64, 4, 5, 3))
	got := must(Contract(ctx, a, b, []int{1, -1}, []int{2, 0}))
	want, absolute, terms := naiveNetwork([][]int{{0, 1, 2}, {2, 3, 1}}, [][]int{{2, 3, 4}, {4, 5, 3}},
		[][]complex128{must(values(ctx, a)), must(values(ctx, b))}, []int{0, 3})
	if err := compare(Float64, terms, must(values(ctx, got)), want, absolute); err != nil {
		t.Error(err)
	}
	if !slices.Equal(got.Shape(), []int{2, 5}) {
		t.Errorf("shape %v", got.Shape())
	}
}

func TestContractionsRefuseWhatDoesNotFit(t *testing.T) {
	ctx := start(t)
	f := func(shape ...int) *Array { return must(Zeros(ctx, Float32, shape...)) }
	other := must(Zeros(runtime.On(ctx, must(runtime.Get("host:1"))), Float32, 2, 2))
	for want, err := range map[string]error{
		"einsum: no operands; expected at least one":                                                                    second(Einsum(ctx, "")),
		"einsum: operand 1 is float32 and operand 2 is float64; convert one with tensor.AsType":                         second(Einsum(ctx, "ij,jk", f(2, 2), must(Zeros(ctx, Float64, 2, 2)))),
		"einsum: operand 1 (x) is on host:0 and operand 2 (y) on host:1; copy one to the other's device with tensor.To": second(EinsumWith(ctx, EinsumOptions{Names: []string{"x", "y"}}, "ij,jk", f(2, 2), other)),
		"einsum: operand 2 is nil; expected an array that a constructor or an operation made":                           second(Einsum(ctx, "ij,jk", f(2, 2), nil)),
		"einsum: memory limit -1 bytes; expected 0 or more":                                                             second(EinsumWith(ctx, EinsumOptions{MemoryLimit: -1}, "ij", f(2, 2))),
		"tensor.Network: operand 1 has 1 labels and rank 2; expected one for each axis":                                 second(Network(ctx, EinsumOptions{}, []*Array{f(2, 2)}, [][]int{{0}}, nil)),
		"tensor.Network: labels for 1 operands, and 2 operands; expected as many":                                       second(Network(ctx, EinsumOptions{}, []*Array{f(2, 2), f(2)}, [][]int{{0, 1}}, nil)),
		"tensor.Contract: axes [0] of a and [0 1] of b; expected pairs":                                                 second(Contract(ctx, f(2, 2), f(2, 2), []int{0}, []int{0, 1})),
		"tensor.Contract: axes [0 0] of a, rank 2, and [0 1] of b, rank 2; expected each axis at most once":             second(Contract(ctx, f(2, 2), f(2, 2), []int{0, 0}, []int{0, 1})),
		"tensor.Contract: axis 1 of a has extent 3 and axis 0 of b 2; expected equal ones":                              second(Contract(ctx, f(2, 3), f(2, 2), []int{1}, []int{0})),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
	for _, spec := range []string{"ij,jk->ix", "i,jk", "ij,j1", "ij->ij", "ij,jk->ii", "ij,jk->ik->ik"} {
		if _, err := Einsum(ctx, spec, f(2, 3), f(3, 2)); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%q: %v; want ErrArgument", spec, err)
		}
	}
}

func TestASpecificationCanBeCheckedWithoutOperands(t *testing.T) {
	for _, spec := range []string{"ij,jk->ik", "...i, ...i", "ii", "αβ,βγ"} {
		if err := CheckEinsum(spec, 1+strings.Count(spec, ",")); err != nil {
			t.Errorf("%q: %v", spec, err)
		}
	}
	for _, spec := range []string{"i!", "ij->ik->il", "ij->z", "ij->ii", "i..", "ij,jk"} {
		if err := CheckEinsum(spec, 1); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%q for one operand: %v; want ErrArgument", spec, err)
		}
	}
}

func TestEinsumLeavesNothingBehindWhenItIsCancelled(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float64, 8, 8))
	before := a.memory().Stats().Buffers
	inner, cancel := context.WithCancelCause(ctx)
	reason := errors.New("no longer wanted")
	o := EinsumOptions{Order: [][2]int{{0, 1}, {3, 2}}, Progress: func(int, int) { cancel(reason) }}
	_, err := EinsumWith(inner, o, "ij,jk,kl->il", a, a, a)
	if !errors.Is(err, reason) {
		t.Errorf("got %v; want the cause", err)
	}
	if after := a.memory().Stats().Buffers; after != before {
		t.Errorf("%d buffers were left", after-before)
	}
}

// TestSumsOfNothingAreZeroAndTouchNothingElse: among arrays of ones, whose memory
// they would find if they left their own.
func TestSumsOfNothingAreZeroAndTouchNothingElse(t *testing.T) {
	ctx := start(t)
	for _, c := range []struct {
		spec   string
		shapes [][]int
	}{
		{"abk,kd->bda", [][]int{{200, 2, 0}, {0, 2}}},
		{"abk,kd->bda", [][]int{{2000, 2, 0}, {0, 100}}},
		{"fba,ef,dda->de", [][]int{{2, 3, 0}, {4, 2}, {3, 3, 0}}},
		{"a,ce,f,ae->ce", [][]int{{0}, {3, 2}, {4}, {0, 2}}},
		{"ab->b", [][]int{{0, 5}}},
	} {
		ctx, free := Scope(ctx)
		var operands []*Array
		for _, shape := range c.shapes {
			operands = append(operands, must(Full(ctx, 7, Float64, shape...)))
		}
		for range 20 {
			before, after := must(Full(ctx, 1, Float64, 300)), (*Array)(nil)
			got := must(Einsum(ctx, c.spec, operands...))
			after = must(Full(ctx, 1, Float64, 300))
			for what, a := range map[string]*Array{"the result": got, "an array made before": before, "an array made after": after} {
				want := 1.0
				if a == got {
					want = 0
				}
				for i, v := range must(Data[float64](ctx, a)) {
					if v != want {
						t.Fatalf("%s of %v: element %d of %s is %v; expected %v", c.spec, c.shapes, i, what, v, want)
					}
				}
			}
		}
		free()
	}
}
