package einsum

import "slices"

// builder turns an order of pairs into steps and knows what they cost.
type builder struct {
	lowering
	opts Options
}

// term is a term while steps are built.
type term struct {
	id     int
	layout Layout
	bytes  int64 // held by the path: 0 for an operand
	lone   []int // indices to be summed first
}

// multiply makes the steps of one product: sums over the operands' lone
// indices, each right before the product that needs it, and the product. live
// is what the path holds before, next the number of the next term.
func (b *builder) multiply(x, y term, live int64, next int, closes func(int) bool, out []int) ([]Step, term) {
	steps := make([]Step, 0, 3)
	x, steps = b.sumLone(x, &live, next, steps)
	y, steps = b.sumLone(y, &live, next+len(steps), steps)
	s := b.product(x.layout, y.layout, closes, out)
	s.Left, s.Right = x.id, y.id
	s.PeakBytes = add(live, add(s.OutBytes, s.PackBytes))
	steps = append(steps, s)
	return steps, term{id: next + len(steps) - 1, layout: b.p.Contiguous(s.Out), bytes: s.OutBytes}
}

func (b *builder) sumLone(x term, live *int64, next int, steps []Step) (term, []Step) {
	if len(x.lone) == 0 {
		return x, steps
	}
	s := b.reduce(x.layout, x.lone, nil)
	s.Left = x.id
	*live = add(*live, s.OutBytes)
	s.PeakBytes = *live
	return term{id: next, layout: b.p.Contiguous(s.Out), bytes: s.OutBytes}, append(steps, s)
}

// build makes the path of an order. Given the order's tree it exchanges the
// sides of a pair where the result then lies as the product that takes it
// needs it.
func (b *builder) build(order []pair, t *tree, search string) *Path {
	path := &Path{Search: search, MemoryLimit: b.opts.MemoryLimit, DType: b.opts.DType, problem: b.p, NaiveFLOPs: b.naive()}
	n := len(b.p.inputs)
	if n == 1 {
		s := b.reduce(b.p.inputs[0], b.p.lone[0], b.p.output)
		s.PeakBytes = s.OutBytes
		b.add(path, s)
		return path
	}
	terms := make([]term, n, n+len(order))
	for k := range terms {
		terms[k] = term{id: k, layout: b.p.inputs[k], lone: b.p.lone[k]}
	}
	path.Steps = make([]Step, 0, len(order))
	uses := b.p.uses()
	closes := func(i int) bool { return uses[i] == 2 }
	var live int64
	for k, pair := range order {
		x, y := terms[pair[0]], terms[pair[1]]
		var out []int
		if k == len(order)-1 {
			out = b.p.output
		}
		next := n + len(path.Steps)
		steps, result := b.multiply(x, y, live, next, closes, out)
		if t != nil && out == nil && !b.suits(result.layout, t, n+k) {
			swapped, other := b.multiply(y, x, live, next, closes, out)
			if b.suits(other.layout, t, n+k) {
				steps, result = swapped, other
			}
		}
		for _, s := range steps {
			b.add(path, s)
		}
		live = add(live-x.bytes-y.bytes, result.bytes)
		for _, i := range x.layout.Indices {
			if slices.Contains(y.layout.Indices, i) {
				uses[i]--
			}
		}
		terms = append(terms, result)
	}
	return path
}

func (b *builder) add(path *Path, s Step) {
	path.Steps = append(path.Steps, s)
	path.FLOPs += s.FLOPs
	path.PeakBytes = max(path.PeakBytes, s.PeakBytes)
	path.Largest = max(path.Largest, b.elements(s.Out))
}

// suits says whether node k, lying so, goes into its product unpacked.
func (b *builder) suits(l Layout, t *tree, k int) bool {
	parent := &t.nodes[t.nodes[k].parent]
	partner := &t.nodes[parent.left+parent.right-k]
	var batch, free, contracted []int
	for _, i := range l.Indices {
		_, shared := slices.BinarySearch(partner.set, int32(i))
		_, kept := slices.BinarySearch(parent.set, int32(i))
		switch {
		case !shared:
			free = append(free, i)
		case kept:
			batch = append(batch, i)
		default:
			contracted = append(contracted, i)
		}
	}
	if len(contracted) == 0 {
		return true
	}
	_, ok := b.p.Matrix(l, batch, free, contracted)
	return ok
}

// naive is the flops of one sum over all indices: for each point of all
// extents one multiplication for each operand after the first, and an addition
// if something is summed.
func (b *builder) naive() float64 {
	points, kept := 1.0, len(b.p.output)
	for _, n := range b.p.extents {
		points = scale(points, float64(n))
		if n != 1 {
			kept--
		}
	}
	terms := float64(len(b.p.inputs) - 1)
	if kept < 0 {
		terms++
	}
	return b.scale * points * terms
}
