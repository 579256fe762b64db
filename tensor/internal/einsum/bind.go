package einsum

import (
	"slices"
	"sort"

	"github.com/weirgo/weir"
)

// Problem is an expression with extents.
type Problem struct {
	expr    *Expr
	extents []int64  // by index
	inputs  []Layout // of each operand
	lone    [][]int  // the indices of each operand that only it has: summed first
	output  []int    // the output's indices, without those of extent 1
	shape   []int64  // of the output, complete
}

// Bind gives the operands shapes and, optionally, strides. Strides are in
// elements and may be zero or negative; strides or strides[k] may be nil, and
// then the operands, or operand k, lie row-major without gaps. The extents of
// an index must be equal wherever it occurs, except that 1 broadcasts between
// operands (not along a diagonal of one operand).
func (e *Expr) Bind(shapes, strides [][]int64) (*Problem, error) {
	if len(shapes) != len(e.inputs) {
		return nil, weir.Argf(op, "shapes: got %d; expected %d, one for each operand", len(shapes), len(e.inputs))
	}
	if strides != nil && len(strides) != len(shapes) {
		return nil, weir.Argf(op, "strides: got %d; expected %d, one for each operand", len(strides), len(shapes))
	}
	p := &Problem{expr: e, extents: make([]int64, len(e.symbols)), inputs: make([]Layout, len(shapes)),
		output: make([]int, 0, len(e.output)), shape: make([]int64, len(e.output))}
	if err := p.bindExtents(shapes); err != nil {
		return nil, err
	}
	for k, shape := range shapes {
		var st []int64
		if strides != nil {
			st = strides[k]
		}
		if st != nil && len(st) != len(shape) {
			return nil, weir.Argf(op, "%s: got %d strides; expected %d, one for each axis", e.operand(k), len(st), len(shape))
		}
		p.inputs[k] = p.layoutOf(e.inputs[k], shape, st)
	}
	for a, i := range e.output {
		p.shape[a] = p.extents[i]
		if p.extents[i] != 1 {
			p.output = append(p.output, i)
		}
	}
	if product(p.shape) == tooMany {
		return nil, weir.Argf(op, "output: shape %v has 2^63-1 elements or more; expected fewer", p.shape)
	}
	p.findLone()
	nameless := *e // names are for the messages above; a problem does not keep them alive
	nameless.names = nil
	p.expr = &nameless
	return p, nil
}

// bindExtents checks the shapes and sets the extent of every index.
func (p *Problem) bindExtents(shapes [][]int64) error {
	e := p.expr
	owner := make([]int32, len(p.extents)) // 1 + the operand that set the extent
	for k, shape := range shapes {
		in := e.inputs[k]
		if len(shape) != len(in) {
			return weir.Argf(op, "%s: got shape %v of rank %d; expected rank %d", e.operand(k), shape, len(shape), len(in))
		}
		if a := slices.IndexFunc(shape, func(n int64) bool { return n < 0 }); a >= 0 {
			return weir.Argf(op, "%s: got extent %d at axis %d; expected zero or more", e.operand(k), shape[a], a+1)
		}
		if product(shape) == tooMany {
			return weir.Argf(op, "%s: shape %v has 2^63-1 elements or more; expected fewer", e.operand(k), shape)
		}
		for a, i := range in {
			n := shape[a]
			first := slices.Index(in[:a], i)
			switch {
			case first >= 0 && shape[first] != n:
				return weir.Argf(op, "%s: %s has extents %d and %d at axes %d and %d; expected equal extents on a diagonal",
					e.operand(k), e.index(i), shape[first], n, first+1, a+1)
			case owner[i] == 0 || p.extents[i] == 1:
				p.extents[i], owner[i] = n, int32(k+1)
			case n != p.extents[i] && n != 1:
				return weir.Argf(op, "%s: extent %d in %s, extent %d in %s; expected equal extents, or 1",
					e.index(i), p.extents[i], e.operand(int(owner[i]-1)), n, e.operand(k))
			}
		}
	}
	return nil
}

// layoutOf is how an operand is seen: without axes of extent 1, whether they
// broadcast or not, and with one axis for each diagonal.
func (p *Problem) layoutOf(indices []int, shape, strides []int64) Layout {
	l := Layout{Indices: make([]int, 0, len(indices)), Strides: make([]int64, 0, len(indices))}
	step := int64(1) // row-major stride of the axis
	for a := len(indices) - 1; a >= 0; a-- {
		stride := step
		if strides != nil {
			stride = strides[a]
		}
		step = mul(step, shape[a])
		if shape[a] == 1 {
			continue
		}
		if k := slices.Index(l.Indices, indices[a]); k >= 0 {
			l.Strides[k] += stride
			continue
		}
		l.Indices, l.Strides = append(l.Indices, indices[a]), append(l.Strides, stride)
	}
	slices.Reverse(l.Indices)
	slices.Reverse(l.Strides)
	sort.Stable(byStride(l)) // equal strides stay in the order of the axes
	return l
}

// findLone lists the indices that are summed before any product.
func (p *Problem) findLone() {
	uses := p.uses()
	p.lone = make([][]int, len(p.inputs))
	for k, in := range p.inputs {
		for _, i := range in.Indices {
			if uses[i] == 1 {
				p.lone[k] = append(p.lone[k], i)
			}
		}
	}
}

// uses counts for each index the operands that have it, and one more when the
// output has it.
func (p *Problem) uses() []int32 {
	uses := make([]int32, len(p.extents))
	for _, in := range p.inputs {
		for _, i := range in.Indices {
			uses[i]++
		}
	}
	for _, i := range p.output {
		uses[i]++
	}
	return uses
}

// Extent is the extent of index i.
func (p *Problem) Extent(i int) int64 { return p.extents[i] }

// OutputShape is the shape of the output, axes of extent 1 included. The last
// step of a path produces the same elements without those axes.
func (p *Problem) OutputShape() []int64 { return p.shape }

// Input is how operand k is seen: the strides of its indices in its own
// memory, from the operand's first element. Indices of extent 1 and axes that
// broadcast are left out; a diagonal is one index.
func (p *Problem) Input(k int) Layout { return p.inputs[k] }
