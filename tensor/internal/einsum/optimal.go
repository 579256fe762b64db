package einsum

import (
	"math/bits"
	"slices"
)

// maxOptimal is the largest number of operands for which every tree is looked
// at: 3^12/2 splits, about ten milliseconds.
const maxOptimal = 12

// leaf is a term that the optimizer combines: an operand or a whole subtree.
type leaf struct {
	set  []int32
	live float64 // elements that it holds once it is there
	value
}

// optimizer finds the best tree over a few leaves by dynamic programming over
// their subsets, outer products included: the best tree over a set is the best
// split of it into two sets that are each combined in the best way (R. N. C.
// Pfeifer, J. Haegeman, F. Verstraete, "Faster identification of optimal
// contraction sequences for tensor networks", Phys. Rev. E 90, 033315, 2014).
// It keeps its tables between calls.
type optimizer struct {
	net *network

	// The indices of the call at hand.
	indices []int32
	within  []uint32 // the leaves that have it, as a bit set
	outer   []bool   // the result has it
	at      []int32  // by index: 1 + its place in indices, or 0

	// By subset of the leaves.
	size  []float64
	live  []float64
	best  []value
	split []uint32 // the side of the best split with the last leaf; 0 where none was found
}

func newOptimizer(net *network) *optimizer {
	return &optimizer{net: net, at: make([]int32, len(net.extents))}
}

// run finds the best tree over the leaves, whose product has the indices out,
// and says whether there is one with at most bound flops.
func (o *optimizer) run(leaves []leaf, out []int32, bound, ceiling float64) (value, bool) {
	o.gather(leaves, out)
	full := uint32(1)<<len(leaves) - 1
	if len(o.size) <= int(full) {
		o.size, o.live = make([]float64, full+1), make([]float64, full+1)
		o.best, o.split = make([]value, full+1), make([]uint32, full+1)
	}
	clear(o.split)
	for k, l := range leaves {
		o.live[1<<k], o.best[1<<k] = l.live, l.value
	}
	var closed []int // indices that the subset sums
	for set := uint32(3); set <= full; set++ {
		if set&(set-1) == 0 {
			continue
		}
		size := 1.0
		closed = closed[:0]
		for k, w := range o.within {
			switch {
			case w&set == 0:
			case w&^set == 0 && !o.outer[k]:
				closed = append(closed, k)
			default:
				size = scale(size, o.net.extents[o.indices[k]])
			}
		}
		o.net.work -= len(o.within)
		o.size[set], o.live[set] = size, size
		o.bestSplit(set, closed, bound, ceiling)
	}
	return o.best[full], o.split[full] != 0
}

// bestSplit finds the best way to make a set; closed are the indices that all
// lie within it.
func (o *optimizer) bestSplit(set uint32, closed []int, bound, ceiling float64) {
	top := uint32(1) << (bits.Len32(set) - 1)
	for a := (set - 1) & set; a >= top; a = (a - 1) & set { // each split once
		b := set ^ a
		if !o.reached(a) || !o.reached(b) {
			continue
		}
		o.net.work -= 4 + len(closed)
		flops, factor := o.size[set], 1.0
		for _, k := range closed {
			if w := o.within[k]; w&a != 0 && w&b != 0 {
				flops, factor = scale(flops, o.net.extents[o.indices[k]]), 2
			}
		}
		v := join(o.best[a], o.best[b], o.live[a], o.live[b], flops*factor, o.size[set])
		if v.flops <= bound && (o.split[set] == 0 || v.better(o.best[set], ceiling)) {
			o.best[set], o.split[set] = v, a
		}
	}
}

func (o *optimizer) reached(set uint32) bool { return set&(set-1) == 0 || o.split[set] != 0 }

// gather lists the indices of the leaves and which leaves have them.
func (o *optimizer) gather(leaves []leaf, out []int32) {
	for _, i := range o.indices {
		o.at[i] = 0
	}
	o.indices, o.within, o.outer = o.indices[:0], o.within[:0], o.outer[:0]
	for k, l := range leaves {
		for _, i := range l.set {
			if o.at[i] == 0 {
				o.indices, o.within, o.outer = append(o.indices, i), append(o.within, 0), append(o.outer, false)
				o.at[i] = int32(len(o.indices))
			}
			o.within[o.at[i]-1] |= 1 << k
		}
	}
	for _, i := range out {
		o.outer[o.at[i]-1] = true
	}
}

// set is the sorted set of indices of the product of these leaves.
func (o *optimizer) set(leaves uint32) []int32 {
	var of []int32
	for k, w := range o.within {
		if w&leaves != 0 && (o.outer[k] || w&^leaves != 0) {
			of = append(of, o.indices[k])
		}
	}
	slices.Sort(of)
	return of
}

// pairs lists the products of the best tree over all of n leaves.
func (o *optimizer) pairs(n int) []pair {
	order := make([]pair, 0, n-1)
	var visit func(set uint32) int
	visit = func(set uint32) int {
		if set&(set-1) == 0 {
			return bits.TrailingZeros32(set)
		}
		p := pair{visit(set ^ o.split[set]), visit(o.split[set])}
		order = append(order, p)
		return n + len(order) - 1
	}
	visit(1<<n - 1)
	return order
}
