package grad_test

import (
	"context"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/grad"
)

// The references below are loops over matrices of Go's numbers.

func times(a, b input) input {
	m, k, n := a.shape[0], a.shape[1], b.shape[1]
	c := input{a.dt, []int{m, n}, make([]complex128, m*n)}
	for i := range m {
		for j := range n {
			for l := range k {
				c.data[i*n+j] += a.data[i*k+l] * b.data[l*n+j]
			}
		}
	}
	return c
}

func adjoint(a input) input {
	m, n := a.shape[0], a.shape[1]
	c := input{a.dt, []int{n, m}, make([]complex128, m*n)}
	for i := range m {
		for j := range n {
			c.data[j*m+i] = cmplx.Conj(a.data[i*n+j])
		}
	}
	return c
}

func sum(alpha complex128, a input, beta complex128, b input) input {
	c := input{a.dt, a.shape, slices.Clone(a.data)}
	for i := range c.data {
		c.data[i] = alpha*a.data[i] + beta*b.data[i]
	}
	return c
}

func near(t *testing.T, what string, got, want input) {
	t.Helper()
	if got.dt != want.dt || !slices.Equal(got.shape, want.shape) {
		t.Fatalf("%s is %v %v; want %v %v", what, got.dt, got.shape, want.dt, want.shape)
	}
	for i := range want.data {
		if !(cmplx.Abs(got.data[i]-want.data[i]) <= 1e-12*(1+cmplx.Abs(want.data[i]))) {
			t.Fatalf("element %d of %s is %v; want %v", i, what, got.data[i], want.data[i])
		}
	}
}

func number(x complex128) input { return input{tensor.Complex128, []int{}, []complex128{x}} }

// square is the sum of the squares of the absolute values.
func square(ctx context.Context, x *grad.Node) *grad.Node {
	return grad.Einsum(ctx, "i,i->", grad.Reshape(ctx, grad.Conj(ctx, x), -1), grad.Reshape(ctx, x, -1))
}

func TestAnalyticGradients(t *testing.T) {
	ctx := start(t, runtime.Options{})
	for _, dt := range kinds {
		t.Run(dt.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			a, x, v := random(rng, dt, 3, 3), random(rng, dt, 3, 1), random(rng, dt, 3, 1)
			n := leaves(ctx, t, []input{a, x, v})
			one := func(y *grad.Node, wrt *grad.Node) *grad.Node {
				t.Helper()
				g := grad.Gradients(ctx, y, wrt)
				if len(g) != 1 || g[0] == nil {
					t.Fatalf("got %v; want one gradient", g)
				}
				return g[0]
			}

			// Re xᴴAx has the gradient (A + Aᴴ)x, and that the derivative (A + Aᴴ)v
			// along v.
			form := grad.MatMul(ctx, grad.H(ctx, n[1]), grad.MatMul(ctx, n[0], n[1]))
			g := one(form, n[1])
			both := sum(1, a, 1, adjoint(a))
			near(t, "the gradient of a quadratic form", read(ctx, t, g.Value()), times(both, x))
			along := one(grad.MatMul(ctx, grad.H(ctx, n[2]), g), n[1])
			near(t, "the Hessian times a vector", read(ctx, t, along.Value()), times(both, v))
			// and with respect to A it is x·xᴴ.
			near(t, "the gradient of a quadratic form in its matrix", read(ctx, t, one(form, n[0]).Value()), times(x, adjoint(x)))

			// Re tr AB has the gradient Bᴴ in A.
			b := random(rng, dt, 3, 3)
			nb := leaves(ctx, t, []input{b})[0]
			near(t, "the gradient of a trace", read(ctx, t, one(grad.Einsum(ctx, "ij,ji", n[0], nb), n[0]).Value()), adjoint(b))
			trace := grad.Einsum(ctx, "i->", grad.Diagonal(ctx, grad.MatMul(ctx, n[0], nb), 0, 1))
			near(t, "the gradient of a trace by its diagonal", read(ctx, t, one(trace, n[0]).Value()), adjoint(b))
			// tr AA, both operands one node: 2Aᴴ.
			near(t, "the gradient of tr AA", read(ctx, t, one(grad.Einsum(ctx, "ij,ji", n[0], n[0]), n[0]).Value()), sum(2, adjoint(a), 0, a))

			// |x|² has the gradient 2x.
			near(t, "the gradient of the square of the norm", read(ctx, t, one(square(ctx, n[1]), n[1]).Value()), sum(2, x, 0, x))
		})
	}
}

func TestALinearNetworkOfTwoLayers(t *testing.T) {
	ctx := start(t, runtime.Options{})
	for _, dt := range kinds {
		rng := rand.New(rand.NewPCG(3, 1))
		w1, w2, x, y := random(rng, dt, 4, 3), random(rng, dt, 2, 4), random(rng, dt, 3, 5), random(rng, dt, 2, 5)
		n := leaves(ctx, t, []input{w1, w2, x, y})
		hidden := grad.MatMul(ctx, n[0], n[2])
		r := grad.Add(ctx, grad.MatMul(ctx, n[1], hidden), grad.Scale(ctx, -1, n[3]))
		g := grad.Gradients(ctx, square(ctx, r), n[0], n[1], hidden)

		h := times(w1, x)
		residual := sum(1, times(w2, h), -1, y)
		near(t, "the gradient of the second layer", read(ctx, t, g[1].Value()), sum(2, times(residual, adjoint(h)), 0, w2))
		back := times(adjoint(w2), residual)
		near(t, "the gradient of what is between", read(ctx, t, g[2].Value()), sum(2, back, 0, h))
		near(t, "the gradient of the first layer", read(ctx, t, g[0].Value()), sum(2, times(back, adjoint(x)), 0, w1))
	}
}

func TestDerivativesOfAnyOrder(t *testing.T) {
	ctx := start(t, runtime.Options{})
	z := 0.5 + 2i
	x := leaves(ctx, t, []input{number(z)})[0]
	y := grad.Einsum(ctx, ",,,->", x, x, x, x)
	// The gradient of the real part of holomorphic f is conj(f'), and the gradient
	// of that one's real part conj(f'') again.
	for i, want := range []complex128{4 * z * z * z, 12 * z * z, 24 * z, 24} {
		y = grad.Gradients(ctx, y, x)[0]
		near(t, "a derivative", read(ctx, t, y.Value()), number(cmplx.Conj(want)))
		if i%2 == 0 {
			y = grad.Conj(ctx, y) // the conjugate is no different: its real part is the same
		}
	}
	if g := grad.Gradients(ctx, grad.Leaf(y.Value()), x); g[0] != nil {
		t.Errorf("a leaf, which was made of nothing, has a gradient")
	}
}

func TestWhatIsNotReachedHasNoGradient(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	n := leaves(ctx, t, []input{random(rng, tensor.Float64), random(rng, tensor.Float64), random(rng, tensor.Float64)})
	y := grad.Add(ctx, n[0], n[1])
	after := grad.Add(ctx, y, n[2])
	g := grad.Gradients(ctx, y, n[2], n[0], after, y, n[0])
	if g[0] != nil || g[2] != nil {
		t.Errorf("a leaf beside and a node after y have gradients %v and %v; want none", g[0], g[2])
	}
	if g[0].Value() != nil {
		t.Error("the value of no node is a value")
	}
	for _, k := range []int{1, 3, 4} {
		if got := read(ctx, t, g[k].Value()).data; !slices.Equal(got, []complex128{1}) {
			t.Errorf("gradient %d is %v; want 1", k, got)
		}
	}
	if g := grad.Gradients(ctx, y); len(g) != 0 {
		t.Errorf("with respect to nothing: %v", g)
	}
}

func TestGraphsAreAsDeepAndWideAsTheyCome(t *testing.T) {
	ctx := start(t, runtime.Options{})
	const n = 20_000
	one := number(1)
	x := leaves(ctx, t, []input{one})[0]
	deep := x
	for range n {
		deep = grad.Conj(ctx, deep)
	}
	near(t, "the gradient through a deep graph", read(ctx, t, grad.Gradients(ctx, deep, x)[0].Value()), one)
	wide := x
	for range n {
		wide = grad.Add(ctx, wide, x)
	}
	near(t, "the gradient of what is used often", read(ctx, t, grad.Gradients(ctx, wide, x)[0].Value()), number(n+1))
	// Each is used twice, so that there are 2^60 paths.
	many := x
	for range 60 {
		many = grad.Add(ctx, many, many)
	}
	near(t, "the gradient over many paths", read(ctx, t, grad.Gradients(ctx, many, x)[0].Value()), number(1<<60))
}

// The sum of these rounds differently in every order.
var roundings = []float32{1e8, 3, -1e8, 0.25, 7e-3, 5e7}

func TestContributionsAreAddedInAFixedOrder(t *testing.T) {
	ctx := start(t, runtime.Options{})
	one, err := tensor.Scalar(ctx, float32(1))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	// y is a sum of uses u1 + u2 + …; a walk leaves them first to last, so that
	// their steps back are last to first.
	want := roundings[len(roundings)-1]
	for i := len(roundings) - 2; i >= 0; i-- {
		want += roundings[i]
	}
	for range 20 {
		x := grad.Leaf(async.Of(one))
		uses := make([]*grad.Node, len(roundings))
		for _, i := range rng.Perm(len(uses)) { // the order in which they are made is nothing
			uses[i] = grad.Scale(ctx, complex(float64(roundings[i]), 0), x)
		}
		y := uses[0]
		for _, u := range uses[1:] {
			y = grad.Add(ctx, y, u)
		}
		g, err := grad.Gradients(ctx, y, x)[0].Value().Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tensor.Item[float32](ctx, g); err != nil || got != want {
			t.Fatalf("got %v, %v; want %v, the sum from the last to the first", got, err, want)
		}
	}
}

func TestContributionsOfOneStepAreAddedByOperand(t *testing.T) {
	ctx := start(t, runtime.Options{})
	ones := input{tensor.Float32, []int{2}, []complex128{1, 1}}
	// With x = (1, 1), operand k contributes to element 0 what is at the place
	// of which index k alone is 0.
	weights := input{tensor.Float32, []int{2, 2, 2}, []complex128{0b011: 1e8, 0b101: -1e8, 0b110: 3, 0b111: 0}}
	n := leaves(ctx, t, []input{ones, weights})
	g := grad.Gradients(ctx, grad.Einsum(ctx, "i,j,k,ijk->", n[0], n[0], n[0], n[1]), n[0])[0]
	if got := read(ctx, t, g.Value()).data[0]; got != 3 {
		t.Errorf("got %v; want 3, the sum from the first operand to the last", got)
	}
}
