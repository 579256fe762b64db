package grad

import (
	"context"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// Gradients answers the gradient of y, an array of one element, with respect to
// each node of wrt, in that one's shape and element type. It is VJP with the
// cotangent 1.
//
//go:noinline
func Gradients(ctx context.Context, y *Node, wrt ...*Node) []*Node {
	const op = "grad.Gradients"
	at := callers.At(callers.PCs())
	one := flow.ApplyAt(ctx, at, op, func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		y := in[0]
		if y.Size() != 1 {
			return nil, weir.Argf(op, "y has shape %v; expected one element, or a cotangent (VJP)", y.Shape())
		}
		if err := differentiable(op, y); err != nil {
			return nil, err
		}
		return tensor.Full(runtime.On(ctx, y.Device()), 1, y.DType(), y.Shape()...)
	}, y.Value())
	return backward(ctx, at, op, y, Leaf(one), wrt)
}

// VJP is the vector-Jacobian product: the gradient of the real part of the inner
// product of cotangent, which has y's shape and element type, and y, with respect
// to each node of wrt, in that one's shape and element type. A node that y was not
// made of has none: nil. Where y is poisoned, the others are.
//
// Contributions to one node are added one by one. Steps back are taken in the
// reverse of the order in which a depth-first walk from y along operands, first to
// last, leaves the nodes, and those of one step in the order of its operands.
//
//go:noinline
func VJP(ctx context.Context, y, cotangent *Node, wrt ...*Node) []*Node {
	at := callers.At(callers.PCs())
	return backward(ctx, at, "grad.VJP", y, checked.apply(ctx, at, cotangent, y.Value()), wrt)
}

// checked is a cotangent if it fits y.
var checked = pair{
	linear{"grad.VJP", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) {
		const op = "grad.VJP"
		c, y := in[0], in[1]
		if err := differentiable(op, y); err != nil {
			return nil, err
		}
		if err := alike(op, c, y); err != nil {
			return nil, err
		}
		return c, nil
	}},
	linear{"grad.VJP", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) { return in[0], nil }},
}

func alike(op string, c, y *tensor.Array) error {
	if c.DType() != y.DType() || !slices.Equal(c.Shape(), y.Shape()) {
		return weir.Argf(op, "the cotangent is %v %v and y %v %v; expected the same", c.DType(), c.Shape(), y.DType(), y.Shape())
	}
	return nil
}

func differentiable(op string, a *tensor.Array) error {
	if a.DType().IsInteger() {
		return weir.Argf(op, "%v has no gradients; expected a floating or complex type", a.DType())
	}
	return nil
}

func backward(ctx context.Context, at callers.Site, op string, y, cotangent *Node, wrt []*Node) []*Node {
	order, needed := between(y, wrt)
	cotangents := map[*Node]*Node{y: cotangent}
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		for k, p := range n.parents {
			if !needed[p] {
				continue
			}
			c := n.back(ctx, k, cotangents[n])
			if first := cotangents[p]; first != nil {
				c = addAt(ctx, at, op, first, c)
			}
			cotangents[p] = c
		}
	}
	all := make([]*Node, len(wrt))
	for i, n := range wrt {
		switch {
		case n == nil:
			all[i] = Leaf(flow.ApplyAt(ctx, at, op, func(context.Context, []*tensor.Array) (*tensor.Array, error) {
				return nil, weir.Argf(op, "node %d to differentiate with respect to is nil; expected a node", i)
			}))
		case y == nil:
			all[i] = cotangent // poisoned
		default:
			all[i] = cotangents[n]
		}
	}
	return all
}

// between lists the nodes that y was made of and that were made of one of wrt, y
// and wrt included, operands before what was made of them. A graph may be deep, so
// that the walk is no recursion.
func between(y *Node, wrt []*Node) (order []*Node, needed map[*Node]bool) {
	needed = map[*Node]bool{nil: false} // the nodes that were left or are under way
	asked := map[*Node]bool{}
	for _, n := range wrt {
		asked[n] = true
	}
	type step struct {
		n    *Node
		next int // of its parents
	}
	var path []step
	enter := func(n *Node) {
		if _, seen := needed[n]; !seen {
			needed[n] = asked[n]
			path = append(path, step{n: n})
		}
	}
	for enter(y); len(path) > 0; {
		s := &path[len(path)-1]
		if s.next < len(s.n.parents) {
			s.next++
			enter(s.n.parents[s.next-1])
			continue
		}
		for _, p := range s.n.parents {
			needed[s.n] = needed[s.n] || needed[p]
		}
		if needed[s.n] {
			order = append(order, s.n)
		}
		path = path[:len(path)-1]
	}
	return order, needed
}
