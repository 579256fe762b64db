package grad

import (
	"context"

	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// Node is a value and what it was made of. It never changes. Functions of this
// package take a nil Node for an operand that is missing, which poisons the result.
type Node struct {
	value   *flow.Value
	parents []*Node
	// back is the contribution to the cotangent of parents[k], which has that
	// one's shape and element type; nil if there are no parents.
	back func(ctx context.Context, k int, cotangent *Node) *Node
}

// Leaf is v as a node that was made of nothing: a variable, or a constant, which is
// a variable that no gradient is asked of.
func Leaf(v *flow.Value) *Node { return &Node{value: v} }

// Value is the node's value; nil of a nil Node.
func (n *Node) Value() *flow.Value {
	if n == nil {
		return nil
	}
	return n.value
}

// function makes an array of others when it is launched.
type function = func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error)

// linear is a map that is linear in its first input, over the real numbers, and of
// the others takes the shapes or element types.
type linear struct {
	name string
	do   function
}

// pair is a linear map and its transpose, whose inputs are the cotangent and then
// the inputs of the map. The transpose of the transpose is the map: that closes
// differentiation under repetition.
type pair struct{ forth, back linear }

// apply is the node of p.forth.
func (p pair) apply(ctx context.Context, at callers.Site, x *Node, like ...*flow.Value) *Node {
	in := append([]*flow.Value{x.Value()}, like...)
	return &Node{
		value:   flow.ApplyAt(ctx, at, p.forth.name, p.forth.do, in...),
		parents: []*Node{x},
		back: func(ctx context.Context, _ int, cotangent *Node) *Node {
			return &Node{
				value:   flow.ApplyAt(ctx, at, p.back.name, p.back.do, append([]*flow.Value{cotangent.value}, in...)...),
				parents: []*Node{cotangent},
				back: func(ctx context.Context, _ int, again *Node) *Node {
					return p.apply(ctx, at, again, like...)
				},
			}
		},
	}
}

// record is the node of p of one operand.
func record(ctx context.Context, at callers.Site, p pair, x *Node) *Node { return p.apply(ctx, at, x) }
