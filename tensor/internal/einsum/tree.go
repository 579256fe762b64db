package einsum

import "slices"

// pair names two terms that are multiplied: terms below n are the operands,
// term n+k is the result of the k-th pair.
type pair = [2]int

// tree is a contraction tree over the n terms of a network: nodes below n are
// the terms, the others are products.
type tree struct {
	net   *network
	nodes []node
	root  int
	how   string // it was found
}

type node struct {
	left, right, parent int // -1 where there is none
	leaves              int
	set                 []int32
	size                float64 // elements of the term
	live                float64 // elements that it holds: 0 for a plain operand
	flops               float64 // of this product alone
	total               value   // of the subtree
}

// newTree is the tree of n-1 pairs.
func newTree(net *network, pairs []pair, how string) *tree {
	n := len(net.terms)
	t := &tree{net: net, nodes: make([]node, n, 2*n-1), root: 2*n - 2, how: how}
	for k, set := range net.terms {
		t.nodes[k] = node{left: -1, right: -1, parent: -1, leaves: 1, set: set,
			size: net.elements(set), live: net.live[k], total: value{peak: net.live[k]}}
	}
	f := frontier{net, net.uses()}
	for _, p := range pairs {
		t.nodes = append(t.nodes, node{parent: -1})
		t.link(len(t.nodes)-1, p[0], p[1], f.multiply(t.nodes[p[0]].set, t.nodes[p[1]].set))
	}
	return t
}

// link makes node k the product of a and b with the indices set.
func (t *tree) link(k, a, b int, set []int32) {
	t.nodes[a].parent, t.nodes[b].parent = k, k
	n := &t.nodes[k]
	n.left, n.right, n.set = a, b, set
	n.leaves = t.nodes[a].leaves + t.nodes[b].leaves
	n.size = t.net.elements(set)
	n.live = n.size
	n.flops = 1
	count := 0
	union(t.nodes[a].set, t.nodes[b].set, func(i int32, _ bool) {
		n.flops = scale(n.flops, t.net.extents[i])
		count++
	})
	if count > len(set) {
		n.flops *= 2
	}
	t.evaluate(k)
}

// evaluate sets the total of a product from those of its operands.
func (t *tree) evaluate(k int) {
	n := &t.nodes[k]
	a, b := &t.nodes[n.left], &t.nodes[n.right]
	n.total = join(a.total, b.total, a.live, b.live, n.flops, n.size)
}

func (t *tree) total() value { return t.nodes[t.root].total }

// products lists the nodes that are products in the order of evaluation: depth
// first, of two operands the one first that makes the lower peak, as registers
// are allocated for expressions (R. Sethi, J. D. Ullman, "The generation of
// optimal code for arithmetic expressions", J. ACM 17(4), 1970).
func (t *tree) products() []int {
	found := make([]int, 0, len(t.net.terms)-1)
	stack := []int{t.root}
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &t.nodes[k]
		if n.left < 0 {
			continue
		}
		found = append(found, k)
		a, b := n.left, n.right
		if x, y := &t.nodes[a], &t.nodes[b]; max(x.total.peak, x.live+y.total.peak) > max(y.total.peak, y.live+x.total.peak) {
			a, b = b, a
		}
		stack = append(stack, a, b)
	}
	slices.Reverse(found) // found runs from the root and visits b's side first
	return found
}

// pairs lists the products in the order of evaluation.
func (t *tree) pairs() []pair {
	n := len(t.net.terms)
	id := make([]int, len(t.nodes))
	for k := range n {
		id[k] = k
	}
	order := make([]pair, 0, n-1)
	for _, k := range t.products() {
		order = append(order, pair{id[t.nodes[k].left], id[t.nodes[k].right]})
		id[k] = n + len(order) - 1
	}
	return order
}
