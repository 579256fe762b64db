package grad_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
	"github.com/weirgo/weir/tensor/grad"
)

// here is the line that calls it, as poison has it.
func here() string {
	_, file, line, _ := goruntime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line)
}

// poisoned checks what n's poison is.
func poisoned(ctx context.Context, t *testing.T, n *grad.Node, op, site, says string) {
	t.Helper()
	_, err := n.Value().Get(ctx)
	var p *async.Poison
	if !errors.As(err, &p) {
		t.Errorf("got %v; want poison of %s", err, op)
		return
	}
	if p.Op != op || p.Site() != site || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, of %q at %s;\nwant %q of %q at %s", err, p.Op, p.Site(), says, op, site)
	}
}

func TestPoisonReachesTheGradientsThatDependOnIt(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	boom := errors.New("boom")
	bad := async.New[*tensor.Array]("bad")
	_ = bad.Write().Fail(boom)
	n := leaves(ctx, t, []input{random(rng, tensor.Float64, 2, 2), random(rng, tensor.Float64, 2, 2)})
	a, b, c := grad.Leaf(bad), n[0], n[1]
	of := func(x, y *grad.Node) *grad.Node {
		return grad.Einsum(ctx, "ij->", grad.MatMul(ctx, x, y))
	}
	ab, bc := of(a, b), of(b, c)
	for _, g := range grad.Gradients(ctx, ab, a, b) {
		if _, err := g.Value().Get(ctx); !errors.Is(err, boom) || !errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("a gradient of a poisoned node: %v", err)
		}
	}
	for _, g := range grad.Gradients(ctx, bc, b, c) {
		if err := g.Value().Wait(ctx); err != nil {
			t.Errorf("a gradient that depends on nothing poisoned: %v", err)
		}
	}
	if g := grad.Gradients(ctx, ab, c); g[0] != nil {
		t.Error("a gradient of what was not used")
	}
	// A poisoned cotangent poisons all, but not the node.
	for _, g := range grad.VJP(ctx, bc, a, b, c) {
		if _, err := g.Value().Get(ctx); !errors.Is(err, boom) {
			t.Errorf("a product with a poisoned cotangent: %v", err)
		}
	}
	// What failed in one sum is no failure of its other term.
	g := grad.Gradients(ctx, grad.Add(ctx, ab, bc), c)
	if _, err := g[0].Value().Get(ctx); !errors.Is(err, boom) {
		t.Errorf("a gradient of a sum of which a term is poisoned: %v", err)
	}
}

func TestPoisonNamesTheOperationAndTheLine(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	n := leaves(ctx, t, []input{random(rng, tensor.Float64, 2, 3), random(rng, tensor.Float64, 2), random(rng, tensor.Float64)})
	a, v, s := n[0], n[1], n[2]

	y, line := grad.MatMul(ctx, a, a), here()
	poisoned(ctx, t, y, "flow.MatMul", line, "a is 2×3 and b 2×3")
	poisoned(ctx, t, grad.Gradients(ctx, grad.Einsum(ctx, "ij->", y), a)[0], "flow.MatMul", line, "a is 2×3 and b 2×3")
	y, line = grad.MatMul(ctx, a, a, tensor.FastTF32), here()
	poisoned(ctx, t, y, "flow.MatMul", line, "a is 2×3 and b 2×3")
	y, line = grad.Einsum(ctx, "ij,ij->k", a, a), here()
	poisoned(ctx, t, y, "flow.Einsum", line, "index k is in no operand")
	poisoned(ctx, t, grad.Gradients(ctx, y, a)[0], "flow.Einsum", line, "index k is in no operand")
	y, line = grad.Einsum(ctx, "ij", a, a), here()
	poisoned(ctx, t, grad.Gradients(ctx, y, a)[0], "flow.Einsum", line, "operands: got 2; expected 1")
	y, line = grad.MatMul(ctx, a, a, nil), here()
	poisoned(ctx, t, y, "flow.MatMul", line, "option 0 is nil")
	y, line = grad.EinsumWith(ctx, tensor.EinsumOptions{MemoryLimit: 1}, "ij,ij->i", a, a), here()
	poisoned(ctx, t, y, "flow.EinsumWith", line, "memory limit: got 1 bytes")
	y, line = grad.Add(ctx, a, v), here()
	poisoned(ctx, t, y, "flow.Add", line, "shapes that stretch to one")
	y, line = grad.Slice(ctx, a, tensor.At(2)), here()
	poisoned(ctx, t, y, "flow.Slice", line, "At(2) of axis 0")
	y, line = grad.Permute(ctx, a, 0), here()
	poisoned(ctx, t, grad.VJP(ctx, y, y, a)[0], "flow.Permute", line, "1 axes [0]")
	y, line = grad.Scale(ctx, 1i, a), here()
	poisoned(ctx, t, y, "flow.Scale", line, "")

	y, line = grad.T(ctx, nil), here() // small enough to be inlined
	poisoned(ctx, t, y, "flow.T", line, "operand 0 is nil")

	// Steps back that fail name the line of the step forward.
	y, line = grad.AsType(ctx, grad.AsType(ctx, s, tensor.Int64), tensor.Float64), here()
	g := grad.Gradients(ctx, y, s)
	poisoned(ctx, t, g[0], "grad.AsType", line, "int64 has no gradients")

	g, line = grad.Gradients(ctx, v, v), here()
	poisoned(ctx, t, g[0], "grad.Gradients", line, "y has shape [2]; expected one element, or a cotangent")
	g, line = grad.Gradients(ctx, grad.AsType(ctx, s, tensor.Int32), s), here()
	poisoned(ctx, t, g[0], "grad.Gradients", line, "int32 has no gradients")
	g, line = grad.VJP(ctx, grad.T(ctx, a), a, a), here()
	poisoned(ctx, t, g[0], "grad.VJP", line, "the cotangent is float64 [2 3] and y float64 [3 2]; expected the same")
	g, line = grad.VJP(ctx, s, grad.AsType(ctx, s, tensor.Float32), s), here()
	poisoned(ctx, t, g[0], "grad.VJP", line, "the cotangent is float32 [] and y float64 []")

	if _, err := g[0].Value().Get(ctx); !errors.Is(err, weir.ErrArgument) {
		t.Errorf("%v does not match ErrArgument", err)
	}
}

func TestNilIsPoison(t *testing.T) {
	ctx := start(t, runtime.Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	a := leaves(ctx, t, []input{random(rng, tensor.Float64)})[0]
	device, _ := runtime.Default()
	for name, n := range map[string]*grad.Node{
		"MatMul": grad.MatMul(ctx, a, nil), "Einsum": grad.Einsum(ctx, ",->", a, nil), "EinsumWith": grad.EinsumWith(ctx, tensor.EinsumOptions{}, ",->", nil, a),
		"Add": grad.Add(ctx, a, nil), "Scale": grad.Scale(ctx, 1, nil), "Reshape": grad.Reshape(ctx, nil), "T": grad.T(ctx, nil), "H": grad.H(ctx, nil),
		"Conj": grad.Conj(ctx, nil), "Permute": grad.Permute(ctx, nil), "Slice": grad.Slice(ctx, nil), "Broadcast": grad.Broadcast(ctx, nil),
		"Diagonal": grad.Diagonal(ctx, nil, 0, 1), "Copy": grad.Copy(ctx, nil), "AsType": grad.AsType(ctx, nil, tensor.Float64), "To": grad.To(ctx, nil, device),
		"Leaf": grad.T(ctx, grad.Leaf(nil)), "no operands": grad.Einsum(ctx, "->"),
	} {
		for i, g := range append(grad.Gradients(ctx, n, a), grad.VJP(ctx, n, n, a)...) {
			if g == nil {
				continue
			}
			if _, err := g.Value().Get(ctx); !errors.Is(err, weir.ErrPoisoned) || !errors.Is(err, weir.ErrArgument) {
				t.Errorf("%s: gradient %d: %v", name, i, err)
			}
		}
		if _, err := n.Value().Get(ctx); !errors.Is(err, weir.ErrPoisoned) || !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, line := grad.Gradients(ctx, a, a, nil), here()
	if err := g[0].Value().Wait(ctx); err != nil {
		t.Errorf("the gradient beside: %v", err)
	}
	poisoned(ctx, t, g[1], "grad.Gradients", line, "node 1 to differentiate with respect to is nil")
	g, line = grad.Gradients(ctx, nil, a), here()
	poisoned(ctx, t, g[0], "grad.Gradients", line, "operand 0 is nil")
	g, line = grad.VJP(ctx, nil, a, a), here()
	poisoned(ctx, t, g[0], "grad.VJP", line, "operand 1 is nil")
	g, line = grad.VJP(ctx, a, nil, a), here()
	poisoned(ctx, t, g[0], "grad.VJP", line, "operand 0 is nil")
}

func TestACancelledContextPoisonsGradients(t *testing.T) {
	ctx := start(t, runtime.Options{})
	x := grad.Leaf(async.New[*tensor.Array]("never written"))
	_, err := grad.Gradients(ctx, grad.Scale(ctx, 2, x), x)[0].Value().Get(ctx)
	if !errors.Is(err, weir.ErrUninitialized) {
		t.Errorf("the gradient of what was never written: %v", err)
	}

	v := async.New[*tensor.Array]("x")
	w := v.Write()
	x = grad.Leaf(v)
	y := grad.Scale(ctx, 2, x)
	ended, end := context.WithCancel(ctx)
	g := grad.Gradients(ended, y, x)[0]
	end()
	if _, err := g.Value().Get(ctx); !errors.Is(err, weir.ErrCancelled) {
		t.Errorf("a gradient under a context that ended: %v", err)
	}
	one, err := tensor.Scalar(ctx, 1.0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Set(one); err != nil {
		t.Fatal(err)
	}
	if err := y.Value().Wait(ctx); err != nil {
		t.Errorf("what was asked for under another context: %v", err)
	}
	if err := grad.Gradients(ctx, y, x)[0].Value().Wait(ctx); err != nil {
		t.Errorf("asked for again: %v", err)
	}
}

func TestWithoutARuntimeThereIsPoison(t *testing.T) {
	ctx := context.Background()
	x := grad.Leaf(async.New[*tensor.Array]("x"))
	y, line := grad.Scale(ctx, 1, x), here()
	poisoned(ctx, t, y, "flow.Scale", line, "")
	if _, err := grad.Gradients(ctx, y, x)[0].Value().Get(ctx); !errors.Is(err, weir.ErrNotStarted) {
		t.Errorf("got %v", err)
	}
	var v *flow.Value
	if got := (*grad.Node)(nil).Value(); got != v {
		t.Errorf("got %v", got)
	}
}
