package grad_test

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/grad"
)

// program is a function of nodes.
type program func(ctx context.Context, x []*grad.Node) *grad.Node

var kinds = []tensor.DType{tensor.Float64, tensor.Complex128}

// random is an input of numbers within ±1.
func random(rng *rand.Rand, dt tensor.DType, shape ...int) input {
	n := 1
	for _, x := range shape {
		n *= x
	}
	x := input{dt, shape, make([]complex128, n)}
	for i := range x.data {
		if x.data[i] = complex(2*rng.Float64()-1, 2*rng.Float64()-1); !dt.IsComplex() {
			x.data[i] = complex(real(x.data[i]), 0)
		}
	}
	return x
}

func leaves(ctx context.Context, t failer, in []input) []*grad.Node {
	t.Helper()
	x := make([]*grad.Node, len(in))
	for i := range in {
		x[i] = grad.Leaf(async.Of(in[i].array(ctx, t)))
	}
	return x
}

// evaluate is f at in.
func evaluate(ctx context.Context, t failer, in []input, f program) input {
	t.Helper()
	ctx, free := tensor.Scope(ctx)
	defer free()
	return read(ctx, t, f(ctx, leaves(ctx, t, in)).Value())
}

// firstOrder compares every element of VJP, for a random cotangent that it answers,
// with central differences: in the real direction, and in the imaginary one of
// complex inputs. What has no gradient must make no difference.
func firstOrder(ctx context.Context, t failer, rng *rand.Rand, in []input, f program) input {
	t.Helper()
	ctx, free := tensor.Scope(ctx)
	defer free()
	x := leaves(ctx, t, in)
	y := f(ctx, x)
	at := read(ctx, t, y.Value())
	cotangent := random(rng, at.dt, at.shape...)
	loss := func(in []input) (sum float64) {
		for i, y := range evaluate(ctx, t, in, f).data {
			sum += real(cmplx.Conj(cotangent.data[i]) * y)
		}
		return sum
	}
	for i, g := range grad.VJP(ctx, y, grad.Leaf(async.Of(cotangent.array(ctx, t))), x...) {
		got := input{in[i].dt, in[i].shape, make([]complex128, len(in[i].data))}
		if g != nil {
			got = read(ctx, t, g.Value())
		}
		if got.dt != in[i].dt || !slices.Equal(got.shape, in[i].shape) {
			t.Fatalf("the gradient of operand %d is %v %v; want %v %v", i, got.dt, got.shape, in[i].dt, in[i].shape)
		}
		for e := range in[i].data {
			directions := []complex128{1, 1i}
			if !in[i].dt.IsComplex() {
				directions = directions[:1]
			}
			for _, d := range directions {
				const h = 1e-4
				moved := func(by float64) float64 {
					in := slices.Clone(in)
					in[i].data = slices.Clone(in[i].data)
					in[i].data[e] += d * complex(by, 0)
					return loss(in)
				}
				want := (moved(h) - moved(-h)) / (2 * h)
				have := real(cmplx.Conj(d) * got.data[e])
				if !(math.Abs(have-want) <= 1e-6*(1+math.Abs(want))) {
					t.Fatalf("element %d of the gradient of operand %d, shape %v: %v in direction %v; want %v", e, i, in[i].shape, have, d, want)
				}
			}
		}
	}
	return cotangent
}

// differentiates checks the gradients of f, and those of every gradient with
// respect to all inputs and the cotangent.
func differentiates(ctx context.Context, t failer, rng *rand.Rand, in []input, f program) {
	t.Helper()
	cotangent := firstOrder(ctx, t, rng, in, f)
	n := len(in)
	for i := range in {
		second := func(ctx context.Context, x []*grad.Node) *grad.Node {
			return grad.VJP(ctx, f(ctx, x[:n]), x[n], x[i])[0]
		}
		if second(ctx, append(leaves(ctx, t, in), grad.Leaf(async.Of(cotangent.array(ctx, t))))) != nil {
			firstOrder(ctx, t, rng, append(slices.Clone(in), cotangent), second)
		}
	}
}

func TestEveryOperationAgainstDifferences(t *testing.T) {
	ctx := start(t, runtime.Options{})
	device, err := runtime.Default()
	if err != nil {
		t.Fatal(err)
	}
	one := func(f func(ctx context.Context, x *grad.Node) *grad.Node) program {
		return func(ctx context.Context, x []*grad.Node) *grad.Node { return f(ctx, x[0]) }
	}
	two := func(f func(ctx context.Context, x, y *grad.Node) *grad.Node) program {
		return func(ctx context.Context, x []*grad.Node) *grad.Node { return f(ctx, x[0], x[1]) }
	}
	einsum := func(spec string) program {
		return func(ctx context.Context, x []*grad.Node) *grad.Node { return grad.Einsum(ctx, spec, x...) }
	}
	for _, c := range []struct {
		name   string
		shapes [][]int
		f      program
	}{
		{"T", [][]int{{2, 3, 4}}, one(grad.T)},
		{"H", [][]int{{2, 3}}, one(grad.H)},
		{"Conj", [][]int{{3}}, one(grad.Conj)},
		{"Copy", [][]int{{2, 2}}, one(grad.Copy)},
		{"a copy of a view", [][]int{{2, 3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Copy(ctx, grad.H(ctx, x)) })},
		{"Permute", [][]int{{2, 3, 4}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Permute(ctx, x, -1, 0, 1) })},
		{"Reshape", [][]int{{2, 6}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Reshape(ctx, x, 3, -1) })},
		{"Reshape of a transpose", [][]int{{2, 3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Reshape(ctx, grad.T(ctx, x), 6) })},
		{"Broadcast", [][]int{{3, 1}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Broadcast(ctx, x, 2, 3, 2) })},
		{"Broadcast to nothing", [][]int{{1, 2}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Broadcast(ctx, x, 0, 2) })},
		{"Slice", [][]int{{4, 5, 3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node {
			return grad.Slice(ctx, x, tensor.At(-1), tensor.NewAxis(), tensor.Steps(1, tensor.End, 2), tensor.Reverse())
		})},
		{"Slice of nothing", [][]int{{4}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Slice(ctx, x, tensor.Span(2, 2)) })},
		{"Slice whole", [][]int{{4, 2}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Slice(ctx, x) })},
		{"Diagonal", [][]int{{3, 2, 3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Diagonal(ctx, x, 0, -1) })},
		{"Diagonal of an oblong", [][]int{{2, 4}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Diagonal(ctx, x, 1, 0) })},
		{"Scale", [][]int{{2, 2}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Scale(ctx, -2.5, x) })},
		{"AsType", [][]int{{3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node {
			return grad.Scale(ctx, 2-1i, grad.AsType(ctx, x, tensor.Complex128))
		})},
		{"AsType to the real part", [][]int{{3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node {
			z := grad.Scale(ctx, 2-1i, grad.AsType(ctx, x, tensor.Complex128))
			return grad.AsType(ctx, grad.Einsum(ctx, "i,j->ij", z, z), tensor.Float64)
		})},
		{"To", [][]int{{3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.To(ctx, x, device) })},
		{"Add", [][]int{{2, 3}, {2, 3}}, two(grad.Add)},
		{"Add stretched", [][]int{{2, 1, 3}, {4, 1}}, two(grad.Add)},
		{"Add of a scalar", [][]int{{}, {2}}, two(grad.Add)},
		{"Add of nothing", [][]int{{1, 3}, {0, 1}}, two(grad.Add)},
		{"Add to itself", [][]int{{2}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Add(ctx, x, x) })},
		{"a square", [][]int{{3, 3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.MatMul(ctx, x, x) })},
		{"a Gram matrix", [][]int{{2, 3}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.MatMul(ctx, x, grad.H(ctx, x)) })},
		{"an outer square", [][]int{{1, 2}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.MatMul(ctx, grad.T(ctx, x), x) })},
		{"an operand that is not used", [][]int{{2}, {2}}, two(func(ctx context.Context, x, y *grad.Node) *grad.Node { return grad.Scale(ctx, 3, x) })},
		{"the input itself", [][]int{{2}}, one(func(ctx context.Context, x *grad.Node) *grad.Node { return x })},
		{"trace", [][]int{{3, 3}}, einsum("ii")},
		{"trace of a product", [][]int{{2, 3}, {3, 2}}, einsum("ij,ji->")},
		{"diagonal by einsum", [][]int{{3, 2, 3}}, einsum("iji->ij")},
		{"an index thrice", [][]int{{2, 2, 2}, {2}}, einsum("iii,i->i")},
		{"indices of one operand alone", [][]int{{2, 3, 2}, {2}}, einsum("ijk,k->i")},
		{"a diagonal summed alone", [][]int{{2, 2}, {3}}, einsum("ii,j->j")},
		{"stretched indices", [][]int{{1, 3}, {2, 1}}, einsum("ij,ij->j")},
		{"a stretched diagonal", [][]int{{1, 1}, {3}}, einsum("ii,i->i")},
		{"ellipses", [][]int{{2, 1, 3, 2}, {4, 2, 3}}, einsum("...ij,...jk")},
		{"an ellipsis of one operand", [][]int{{2, 3}, {3, 2}}, einsum("i...,ji->j...")},
		{"an ellipsis in the middle", [][]int{{2, 3, 2}, {3}}, einsum("i...i,...->...i")},
		{"an ellipsis of none", [][]int{{2, 2}, {2}}, einsum("ij...,j...->i")},
		{"implicit output, spaces", [][]int{{2, 3}, {3, 2}}, einsum(" bj , j a ")},
		{"three operands", [][]int{{2, 3}, {3, 2}, {2, 2}}, einsum("ij,jk,kl->li")},
		{"scalars", [][]int{{}, {}, {2}}, einsum(",,i->i")},
		{"no extent", [][]int{{0, 2}, {0}}, einsum("ij,i->j")},
		{"an extent of none stretched", [][]int{{1, 2}, {0}}, einsum("ij,i->j")},
		{"with options", [][]int{{2, 3}, {3, 2}, {2, 2}}, func(ctx context.Context, x []*grad.Node) *grad.Node {
			return grad.EinsumWith(ctx, tensor.EinsumOptions{Order: [][2]int{{1, 2}, {0, 3}}, Names: []string{"a", "b", "c"}}, "ij,jk,kl->il", x...)
		}},
	} {
		for _, dt := range kinds {
			t.Run(fmt.Sprint(c.name, ", ", dt), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, 2))
				var in []input
				for _, s := range c.shapes {
					in = append(in, random(rng, dt, s...))
				}
				differentiates(ctx, t, rng, in, c.f)
			})
		}
	}
	t.Run("Scale by a complex number", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		differentiates(ctx, t, rng, []input{random(rng, tensor.Complex128, 3)}, one(func(ctx context.Context, x *grad.Node) *grad.Node {
			return grad.Scale(ctx, 2+3i, x)
		}))
	})
}

// draws is what the properties below are drawn from.
func draws(t *rapid.T) (*rand.Rand, tensor.DType) {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "numbers"), 0)), rapid.SampledFrom(kinds).Draw(t, "type")
}

// stretched is a shape that stretches to whole.
func stretched(t *rapid.T, whole []int, name string) []int {
	shape := slices.Clone(whole[rapid.IntRange(0, len(whole)).Draw(t, name+": missing axes"):])
	for i := range shape {
		if rapid.IntRange(0, 3).Draw(t, name+": one?") == 0 {
			shape[i] = 1
		}
	}
	return shape
}

var extent = rapid.SampledFrom([]int{1, 2, 2, 3, 3, 0})

func TestProductsAgainstDifferences(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rapid.Check(t, func(t *rapid.T) {
		rng, dt := draws(t)
		m, n, k := extent.Draw(t, "m"), extent.Draw(t, "n"), extent.Draw(t, "k")
		whole := rapid.SliceOfN(extent, 0, 2).Draw(t, "batch")
		side := func(matrix []int, vector bool, name string) []int {
			if vector {
				return []int{k}
			}
			return append(stretched(t, whole, name), matrix...)
		}
		a := side([]int{m, k}, rapid.Bool().Draw(t, "row"), "a")
		b := side([]int{k, n}, rapid.Bool().Draw(t, "column"), "b")
		differentiates(ctx, t, rng, []input{random(rng, dt, a...), random(rng, dt, b...)}, func(ctx context.Context, x []*grad.Node) *grad.Node {
			return grad.MatMul(ctx, x[0], x[1])
		})
	})
}

func TestSumsAgainstDifferences(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rapid.Check(t, func(t *rapid.T) {
		rng, dt := draws(t)
		whole := rapid.SliceOfN(extent, 0, 3).Draw(t, "shape")
		in := []input{random(rng, dt, stretched(t, whole, "a")...), random(rng, dt, stretched(t, whole, "b")...)}
		differentiates(ctx, t, rng, in, func(ctx context.Context, x []*grad.Node) *grad.Node { return grad.Add(ctx, x[0], x[1]) })
	})
}

func TestEinsumAgainstDifferences(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rapid.Check(t, func(t *rapid.T) {
		rng, dt := draws(t)
		letters := "ijkxyλ"
		extents := map[rune]int{}
		for _, r := range letters {
			extents[r] = extent.Draw(t, "extent of "+string(r))
		}
		whole := rapid.SliceOfN(extent, 0, 2).Draw(t, "ellipsis")
		var in []input
		var terms []string
		used := ""
		budget := 64 // elements, for the sake of time
		for k := range rapid.IntRange(1, 3).Draw(t, "operands") {
			name := fmt.Sprint("operand ", k)
			term := []rune(rapid.StringOfN(rapid.SampledFrom([]rune(letters)), 0, 3, -1).Draw(t, name))
			at := -1
			if rapid.Bool().Draw(t, name+": ellipsis") {
				at = rapid.IntRange(0, len(term)).Draw(t, name+": place")
			}
			ones := map[rune]bool{}
			for _, r := range letters {
				ones[r] = rapid.IntRange(0, 4).Draw(t, name+": one?") == 0
			}
			var shape []int
			text := ""
			for i := 0; i <= len(term); i++ {
				if i == at {
					text += "..."
					shape = append(shape, stretched(t, whole, name)...)
				}
				if i == len(term) {
					break
				}
				text += string(term[i])
				if n := extents[term[i]]; ones[term[i]] {
					shape = append(shape, 1)
				} else {
					shape = append(shape, n)
				}
			}
			x := random(rng, dt, shape...)
			if budget -= len(x.data); budget < 0 {
				break
			}
			in, terms, used = append(in, x), append(terms, text), used+string(term)
		}
		if len(in) == 0 {
			return
		}
		spec := strings.Join(terms, ",")
		if rapid.Bool().Draw(t, "explicit") {
			output := []rune{}
			for _, r := range used {
				if !slices.Contains(output, r) && rapid.Bool().Draw(t, "output has "+string(r)) {
					output = append(output, r)
				}
			}
			place := rapid.IntRange(0, len(output)).Draw(t, "ellipsis of the output")
			spec += "->" + string(output[:place])
			if strings.Contains(spec, "...") {
				spec += "..."
			}
			spec += string(output[place:])
		}
		program := func(ctx context.Context, x []*grad.Node) *grad.Node { return grad.Einsum(ctx, spec, x...) }
		if y := evaluate(ctx, t, in, program); len(y.data) > 256 {
			return
		}
		differentiates(ctx, t, rng, in, program)
	})
}

// step is a drawn operation on a node of a known shape, and the shape that it makes.
func step(t *rapid.T, shape []int) (program, []int) {
	of := func(f func(ctx context.Context, x *grad.Node) *grad.Node, shape ...int) (program, []int) {
		return func(ctx context.Context, x []*grad.Node) *grad.Node { return f(ctx, x[0]) }, shape
	}
	rank := len(shape)
	size := 1
	for _, n := range shape {
		size *= n
	}
	switch rapid.IntRange(0, 9).Draw(t, "operation") {
	case 0:
		reverse := slices.Clone(shape)
		slices.Reverse(reverse)
		return of(grad.T, reverse...)
	case 1:
		return of(grad.Conj, shape...)
	case 2:
		return of(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Scale(ctx, 1.5, x) }, shape...)
	case 3:
		axes := rapid.Permutation(axesOf(rank)).Draw(t, "axes")
		to := make([]int, rank)
		for i, k := range axes {
			to[i] = shape[k]
		}
		return of(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Permute(ctx, x, axes...) }, to...)
	case 4:
		if size < 12 {
			to := append([]int{2}, shape...)
			return of(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Broadcast(ctx, x, to...) }, to...)
		}
	case 5:
		return of(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Reshape(ctx, x, size) }, size)
	case 6:
		if rank > 0 {
			n := shape[0]
			from := rapid.IntRange(0, n).Draw(t, "from")
			to := append([]int{n - from}, shape[1:]...)
			return of(func(ctx context.Context, x *grad.Node) *grad.Node {
				return grad.Slice(ctx, x, tensor.Span(from, tensor.End))
			}, to...)
		}
	case 7:
		if rank > 1 {
			to := append(slices.Clone(shape[1:rank-1]), min(shape[0], shape[rank-1]))
			return of(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Diagonal(ctx, x, 0, -1) }, to...)
		}
	case 8:
		return of(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Add(ctx, x, grad.Conj(ctx, x)) }, shape...)
	}
	return of(func(ctx context.Context, x *grad.Node) *grad.Node { return grad.Einsum(ctx, "...,...->...", x, x) }, shape...)
}

func axesOf(rank int) []int {
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	return axes
}

func TestChainsAgainstDifferences(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rapid.Check(t, func(t *rapid.T) {
		rng, dt := draws(t)
		first := rapid.SliceOfN(extent, 0, 3).Draw(t, "shape")
		shape := first
		var steps []program
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			var s program
			s, shape = step(t, shape)
			steps = append(steps, s)
		}
		in := []input{random(rng, dt, first...)}
		program := func(ctx context.Context, x []*grad.Node) *grad.Node {
			y := x[0]
			for _, s := range steps {
				y = s(ctx, []*grad.Node{y})
			}
			return y
		}
		if got := evaluate(ctx, t, in, program).shape; !slices.Equal(got, shape) {
			t.Fatalf("the test thinks of shape %v; the chain made %v", shape, got)
		}
		firstOrder(ctx, t, rng, in, program)
	})
}
