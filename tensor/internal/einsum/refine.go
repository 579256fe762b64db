package einsum

import "math/bits"

// The number of leaves of a subtree that is replaced at once: a tree costs nine
// times as much to refine with eight as with six.
const (
	roughly    = 6
	thoroughly = 8
)

// refiner improves a tree: it replaces small subtrees by the best ones over
// the same leaves until none gets better (subtree reconfiguration: J. Gray, S.
// Kourtis, "Hyper-optimized tensor network contraction", Quantum 5, 410, 2021).
type refiner struct {
	opt     *optimizer
	ceiling float64
	width   int // roughly or thoroughly

	// The subtree at hand.
	ids    []int // its leaves
	inner  []int // its products, the root first
	leaves []leaf
}

// refine works on t until nothing changes or the work is spent.
func (r *refiner) refine(t *tree) {
	for changed := true; changed; {
		changed = false
		for _, k := range t.products() {
			if t.net.spent() {
				return
			}
			changed = r.replace(t, k) || changed
		}
	}
}

// replace finds the best subtree below product k and says whether it is better
// than the one there. Gains that could be rounding don't count, so that
// refining ends.
func (r *refiner) replace(t *tree, k int) bool {
	r.open(t, k)
	for j := len(r.inner) - 1; j >= 0; j-- {
		t.evaluate(r.inner[j]) // what is below may have changed
	}
	if len(r.ids) < 3 {
		return false
	}
	r.leaves = r.leaves[:0]
	for _, id := range r.ids {
		n := &t.nodes[id]
		r.leaves = append(r.leaves, leaf{n.set, n.live, n.total})
	}
	old := t.nodes[k].total
	const gain = 1 - 1e-9
	found, ok := r.opt.run(r.leaves, t.nodes[k].set, old.bound(r.ceiling), r.ceiling)
	if !ok || !found.better(value{old.flops * gain, old.peak}, r.ceiling) {
		return false
	}
	r.rebuild(t, 1<<len(r.ids)-1)
	return true
}

// open collects up to width leaves below product k: it replaces a leaf by
// its operands, the largest first.
func (r *refiner) open(t *tree, k int) {
	r.ids = append(r.ids[:0], t.nodes[k].left, t.nodes[k].right)
	r.inner = append(r.inner[:0], k)
	for len(r.ids) < r.width {
		largest := -1
		for j, id := range r.ids {
			if t.nodes[id].left >= 0 && (largest < 0 || t.nodes[id].size > t.nodes[r.ids[largest]].size) {
				largest = j
			}
		}
		if largest < 0 {
			return
		}
		id := r.ids[largest]
		r.inner = append(r.inner, id)
		r.ids[largest] = t.nodes[id].left
		r.ids = append(r.ids, t.nodes[id].right)
	}
}

// rebuild links the products as the optimizer split the set of leaves, and
// returns the set's node. The root keeps its number.
func (r *refiner) rebuild(t *tree, set uint32) int {
	if set&(set-1) == 0 {
		return r.ids[bits.TrailingZeros32(set)]
	}
	k := r.inner[0]
	r.inner = r.inner[1:]
	a := r.rebuild(t, set^r.opt.split[set])
	b := r.rebuild(t, r.opt.split[set])
	t.link(k, a, b, r.opt.set(set))
	return k
}
