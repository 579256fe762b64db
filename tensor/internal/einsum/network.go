package einsum

import "slices"

// network is what the search sees: the terms' sets of indices, without layouts
// and without the indices that are summed first. Counts are float64, so that a
// hopeless intermediate is just a large number.
type network struct {
	terms   [][]int32 // sorted
	out     []int32   // sorted
	extents []float64 // by index
	live    []float64 // elements that a term holds before any product: 0 for a plain operand
	work    int       // that the search may still do, in visits of an index; it stops when that is used up
}

// spent says whether the search has done its work.
func (n *network) spent() bool { return n.work <= 0 }

func (p *Problem) network() *network {
	n := &network{extents: make([]float64, len(p.extents)), out: sorted(p.output, nil)}
	for i, e := range p.extents {
		n.extents[i] = float64(e)
	}
	for k, in := range p.inputs {
		set := sorted(in.Indices, p.lone[k])
		n.terms = append(n.terms, set)
		n.live = append(n.live, 0)
		if len(p.lone[k]) > 0 {
			n.live[k] = n.elements(set)
		}
	}
	return n
}

// sorted returns the indices, but for those left out, as a sorted set.
func sorted(indices, leftOut []int) []int32 {
	set := make([]int32, 0, len(indices))
	for _, i := range indices {
		if !slices.Contains(leftOut, i) {
			set = append(set, int32(i))
		}
	}
	slices.Sort(set)
	return set
}

// huge bounds products of extents, so that sums and differences of a few of
// them stay finite.
const huge = 1e300

// scale is size*extent, bounded.
func scale(size, extent float64) float64 { return min(size*extent, huge) }

// elements is the number of elements of a term with these indices.
func (n *network) elements(set []int32) float64 {
	size := 1.0
	for _, i := range set {
		size = scale(size, n.extents[i])
	}
	return size
}

// uses counts for each index the terms that have it, and one more when the
// output has it.
func (n *network) uses() []int32 {
	uses := make([]int32, len(n.extents))
	for _, set := range n.terms {
		for _, i := range set {
			uses[i]++
		}
	}
	for _, i := range n.out {
		uses[i]++
	}
	return uses
}

// holders lists the terms that have each index.
func (n *network) holders() [][]int32 {
	holders := make([][]int32, len(n.extents))
	for k, set := range n.terms {
		for _, i := range set {
			holders[i] = append(holders[i], int32(k))
		}
	}
	return holders
}

// union calls visit once for each index of a or b, in order; shared says that
// both have it.
func union(a, b []int32, visit func(i int32, shared bool)) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			visit(a[0], false)
			a = a[1:]
		case a[0] > b[0]:
			visit(b[0], false)
			b = b[1:]
		default:
			visit(a[0], true)
			a, b = a[1:], b[1:]
		}
	}
	for _, i := range a {
		visit(i, false)
	}
	for _, i := range b {
		visit(i, false)
	}
}

// frontier is the state of a contraction that goes pair by pair: how often
// each index still occurs, in terms and in the output.
type frontier struct {
	net  *network
	uses []int32
}

// size is the number of elements of the product of a and b.
func (f *frontier) size(a, b []int32) float64 {
	f.net.work -= len(a) + len(b)
	size := 1.0
	union(a, b, func(i int32, shared bool) {
		if !shared || f.uses[i] > 2 {
			size = scale(size, f.net.extents[i])
		}
	})
	return size
}

// multiply replaces a and b by their product and returns its indices.
func (f *frontier) multiply(a, b []int32) []int32 {
	f.net.work -= len(a) + len(b)
	var set []int32
	union(a, b, func(i int32, shared bool) {
		if shared {
			f.uses[i]--
		}
		if !shared || f.uses[i] > 1 {
			set = append(set, i)
		}
	})
	return set
}
