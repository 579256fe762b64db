package einsum

import "slices"

// Kind is what a step does.
type Kind uint8

const (
	// Reduce sums over Summed and writes what is left in the order of Out.
	// With nothing to sum it copies. It reads any strides.
	Reduce Kind = iota
	// Multiply is a product that sums nothing: each element of Out is one
	// element of Left times one of Right, broadcast. It reads any strides.
	Multiply
	// Product is a batch of matrix products: for each value of Batch, Out =
	// Left (LeftFree by Contracted) times Right (Contracted by RightFree). If
	// Left or Right has no elements nothing is packed and Out is zero.
	Product
)

// Step computes one term from one or two earlier ones, which it uses up. Terms
// are numbered: the operands first, then the results of the steps in order.
// Groups list their indices from outer to inner.
type Step struct {
	Kind  Kind
	Left  int
	Right int // -1 for Reduce

	Summed     []int // Reduce: indices that are summed
	Batch      []int // in Left, Right and Out
	Contracted []int // in Left and Right, summed
	LeftFree   []int // in Left and Out
	RightFree  []int // in Right and Out

	// Out is the order in which the result is written, row-major and without
	// gaps: Batch, LeftFree, RightFree; for the last step the output's order.
	Out []int

	// Product: the term doesn't lie so that Problem.Matrix takes it with these
	// groups. Left and Right are first copied to the order Batch, LeftFree,
	// Contracted and Batch, Contracted, RightFree; Out is computed in the order
	// Batch, LeftFree, RightFree and then copied. A term that isn't packed is
	// used where it lies: an operand as Problem.Input says, a result, Out
	// included, as Problem.Contiguous says.
	PackLeft, PackRight, PackOut bool

	FLOPs     float64 // a multiplication and an addition are 2; times 4 for complex elements
	OutBytes  int64   // size of the result
	PackBytes int64   // size of all packed copies, 0 without any
	PeakBytes int64   // live results, Out and packed copies while the step runs; operands of the path not counted
}

// lowering chooses how the product of two terms runs. It fills in everything
// but the numbers of the terms and PeakBytes.
type lowering struct {
	p     *Problem
	size  int64   // bytes of an element
	scale float64 // flops per real flop
}

// product lowers left times right. closes says of an index that both have
// whether the product sums it; out is the order that the result must have, or
// nil if the product may choose.
//
// Of the orders in which a group can be walked, those in which a term that has
// the group lies are tried; the first choice with the fewest packed bytes wins.
func (w lowering) product(left, right Layout, closes func(int) bool, out []int) Step {
	s := Step{Kind: Multiply}
	for _, i := range left.Indices {
		switch {
		case !slices.Contains(right.Indices, i):
			s.LeftFree = append(s.LeftFree, i)
		case closes(i):
			s.Contracted = append(s.Contracted, i)
			s.Kind = Product
		default:
			s.Batch = append(s.Batch, i)
		}
	}
	for _, i := range right.Indices {
		if !slices.Contains(left.Indices, i) {
			s.RightFree = append(s.RightFree, i)
		}
	}
	if s.Kind == Product {
		w.choose(&s, left, right, out)
	}
	if s.Out = out; out == nil {
		s.Out = slices.Concat(s.Batch, s.LeftFree, s.RightFree)
	}
	s.OutBytes = mul(w.elements(s.Out), w.size)
	s.FLOPs = w.scale * w.count(s.Out) * w.count(s.Contracted)
	if s.Kind == Product {
		s.FLOPs *= 2
	}
	return s
}

// choose sets the order within each group, and what has to be packed.
func (w lowering) choose(s *Step, left, right Layout, out []int) {
	leftBytes := mul(w.elements(left.Indices), w.size)
	rightBytes := mul(w.elements(right.Indices), w.size)
	outBytes := mul(w.elements(out), w.size)
	if leftBytes == 0 || rightBytes == 0 || leftBytes == tooMany || rightBytes == tooMany {
		return // nothing is read, or the path is refused anyway
	}
	var written Layout
	if out != nil {
		written = w.p.Contiguous(out)
	}
	chosen := *s
	chosen.PackBytes = -1
	for _, batch := range orders(s.Batch, left.Indices, right.Indices, out) {
		for _, contracted := range orders(s.Contracted, left.Indices, right.Indices) {
			for _, rows := range orders(s.LeftFree, left.Indices, out) {
				for _, cols := range orders(s.RightFree, right.Indices, out) {
					t := *s
					t.Batch, t.Contracted, t.LeftFree, t.RightFree = batch, contracted, rows, cols
					if _, ok := w.p.Matrix(left, batch, rows, contracted); !ok {
						t.PackLeft, t.PackBytes = true, leftBytes
					}
					if _, ok := w.p.Matrix(right, batch, contracted, cols); !ok {
						t.PackRight, t.PackBytes = true, add(t.PackBytes, rightBytes)
					}
					if out != nil {
						if _, ok := w.p.Matrix(written, batch, rows, cols); !ok {
							t.PackOut, t.PackBytes = true, add(t.PackBytes, outBytes)
						}
					}
					if chosen.PackBytes < 0 || t.PackBytes < chosen.PackBytes {
						chosen = t
					}
					if chosen.PackBytes == 0 {
						*s = chosen
						return
					}
				}
			}
		}
	}
	*s = chosen
}

// orders lists the different orders in which the terms have a group; a term
// that is nil has none.
func orders(group []int, terms ...[]int) [][]int {
	all := [][]int{group}
	if len(group) < 2 {
		return all
	}
	for _, term := range terms {
		order := make([]int, 0, len(group))
		for _, i := range term {
			if slices.Contains(group, i) {
				order = append(order, i)
			}
		}
		if len(order) == len(group) && !slices.ContainsFunc(all, func(o []int) bool { return slices.Equal(o, order) }) {
			all = append(all, order)
		}
	}
	return all
}

// reduce sums the indices lone of a term. out is as for product.
func (w lowering) reduce(term Layout, lone, out []int) Step {
	s := Step{Kind: Reduce, Right: -1, Summed: lone, Out: out}
	if out == nil {
		s.Out = make([]int, 0, len(term.Indices)-len(lone))
		for _, i := range term.Indices {
			if !slices.Contains(lone, i) {
				s.Out = append(s.Out, i)
			}
		}
	}
	s.OutBytes = mul(w.elements(s.Out), w.size)
	if len(lone) > 0 {
		s.FLOPs = w.scale * w.count(term.Indices)
	}
	return s
}

// elements is the number of elements of a term with these indices.
func (w lowering) elements(indices []int) int64 {
	n := int64(1)
	for _, i := range indices {
		n = mul(n, w.p.extents[i])
	}
	return n
}

// count is elements for cost estimates, which may be larger.
func (w lowering) count(indices []int) float64 {
	n := 1.0
	for _, i := range indices {
		n = scale(n, float64(w.p.extents[i]))
	}
	return n
}
