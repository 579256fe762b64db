package einsum

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// maxExhaustive is the largest number of operands for which every order is
// looked at under a memory limit.
const maxExhaustive = 8

// exhaustive finds the best path under a memory limit, or the one with the
// lowest peak where none keeps it. Other than the search for the cheapest tree
// it knows the layouts, so the packed copies, and it also takes orders that
// leave a subtree half done, which may need less memory than any depth-first
// order (J. W. H. Liu, "An application of generalized tree pebbling to sparse
// matrix factorization", SIAM J. Algebr. Discrete Methods 8(3), 1987).
//
// It is Dijkstra's algorithm over the states of a contraction: the sets of
// operands multiplied so far, each with the layout of its product. The length
// of a way is (peak, or the limit if that is more; flops). A state within the
// limit is thus first reached with the fewest flops; and the peak alone is
// exact beyond it, since a maximum never shrinks.
type exhaustive struct {
	b     *builder
	moves int      // products that may still be tried
	have  []uint32 // by index: the operands that have it; the output is the bit after the last operand
	queue heap[*state]
	done  map[string]bool
}

type state struct {
	terms  []piece // sorted by operands
	live   int64
	flops  float64
	excess int64 // the peak, or the limit if that is more
	number int   // breaks ties, so that the result is always the same

	from *state // with the product of its terms left and right this state comes
	pair [2]int
}

// piece is the product of some operands.
type piece struct {
	operands uint32
	term
}

// search returns the best order, and whether all orders were covered.
func (x *exhaustive) search() (order []pair, complete bool) {
	n := len(x.b.p.inputs)
	start := &state{excess: x.b.opts.limit()}
	x.have = make([]uint32, len(x.b.p.extents))
	for k, in := range x.b.p.inputs {
		start.terms = append(start.terms, piece{1 << k, term{layout: in, lone: x.b.p.lone[k]}})
		for _, i := range in.Indices {
			x.have[i] |= 1 << k
		}
	}
	for _, i := range x.b.p.output {
		x.have[i] |= 1 << n
	}
	x.done = make(map[string]bool)
	x.queue = heap[*state]{less: func(s, t *state) bool {
		if s.excess != t.excess {
			return s.excess < t.excess
		}
		if s.flops != t.flops {
			return s.flops < t.flops
		}
		return s.number < t.number
	}}
	x.queue.push(start)
	for number := 0; ; {
		s := x.queue.pop()
		if len(s.terms) == 1 {
			return s.order(n), true
		}
		key := s.key()
		if x.done[key] {
			continue
		}
		x.done[key] = true
		for l := range s.terms {
			for r := range s.terms {
				if l == r || l > r && len(s.terms) == 2 { // the sides of the last product don't matter
					continue
				}
				if x.moves--; x.moves < 0 {
					return nil, false
				}
				next := x.move(s, l, r)
				number++
				next.number = number
				x.queue.push(next)
			}
		}
	}
}

// move multiplies terms l and r of a state.
func (x *exhaustive) move(s *state, l, r int) *state {
	a, b := s.terms[l], s.terms[r]
	both := a.operands | b.operands
	var out []int
	if len(s.terms) == 2 {
		out = x.b.p.output
	}
	steps, result := x.b.multiply(a.term, b.term, s.live, 0, func(i int) bool { return x.have[i]&^both == 0 }, out)
	next := &state{live: add(s.live-a.bytes-b.bytes, result.bytes), flops: s.flops, excess: s.excess, from: s, pair: [2]int{l, r}}
	for _, step := range steps {
		next.flops += step.FLOPs
		next.excess = max(next.excess, step.PeakBytes)
	}
	next.terms = make([]piece, 0, len(s.terms)-1)
	for k, t := range s.terms {
		if k != l && k != r {
			next.terms = append(next.terms, t)
		}
	}
	next.terms = append(next.terms, piece{both, result})
	slices.SortFunc(next.terms, func(s, t piece) int { return int(s.operands) - int(t.operands) })
	return next
}

// key tells states apart: by the operands of each term and, for products, the
// order of the indices.
func (s *state) key() string {
	var key []byte
	for _, t := range s.terms {
		key = binary.AppendUvarint(key, uint64(t.operands))
		if bits.OnesCount32(t.operands) > 1 {
			for _, i := range t.layout.Indices {
				key = binary.AppendUvarint(key, uint64(i))
			}
		}
	}
	return string(key)
}

// order lists the products that led to the state, for n operands.
func (s *state) order(n int) []pair {
	var states []*state // from the first product to the last
	for ; s.from != nil; s = s.from {
		states = append(states, s)
	}
	slices.Reverse(states)
	id := make(map[uint32]int)
	for k := range n {
		id[1<<k] = k
	}
	var order []pair
	for _, s := range states {
		a, b := s.from.terms[s.pair[0]].operands, s.from.terms[s.pair[1]].operands
		order = append(order, pair{id[a], id[b]})
		id[a|b] = n + len(order) - 1
	}
	return order
}
