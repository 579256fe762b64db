package einsum

import "slices"

// Layout is how the elements of a term lie in memory: the stride, in elements,
// of each index. Indices are listed by decreasing stride, outermost first.
type Layout struct {
	Indices []int
	Strides []int64
}

// byStride sorts by decreasing stride, whatever its sign.
type byStride Layout

func (l byStride) Len() int { return len(l.Indices) }
func (l byStride) Less(a, b int) bool {
	return max(l.Strides[a], -l.Strides[a]) > max(l.Strides[b], -l.Strides[b])
}
func (l byStride) Swap(a, b int) {
	l.Indices[a], l.Indices[b] = l.Indices[b], l.Indices[a]
	l.Strides[a], l.Strides[b] = l.Strides[b], l.Strides[a]
}

// Stride is the stride of index i, which l must have.
func (l Layout) Stride(i int) int64 { return l.Strides[slices.Index(l.Indices, i)] }

// Contiguous is how a result with these indices lies: row-major without gaps.
func (p *Problem) Contiguous(indices []int) Layout {
	l := Layout{Indices: indices, Strides: make([]int64, len(indices))}
	step := int64(1)
	for k := len(indices) - 1; k >= 0; k-- {
		l.Strides[k] = step
		step = mul(step, p.extents[indices[k]])
	}
	return l
}

// Axis is a group of indices walked as one: Extent steps of Stride elements.
type Axis struct{ Extent, Stride int64 }

// Matrix is a term seen as a batch of matrices.
type Matrix struct{ Batch, Rows, Cols Axis }

// Matrix merges the indices of l, which are exactly those of the three groups,
// into a batch axis, a row axis and a column axis, each group from its outer
// to its inner index. It answers false where the term has to be copied before
// GEMM can take it: where a group doesn't lie with one stride, where neither
// rows nor columns have stride 1, where the other of them doesn't step over
// that, or where a stride is negative. A term without elements never has to.
// The planner and the executor both decide with this method.
func (p *Problem) Matrix(l Layout, batch, rows, cols []int) (Matrix, bool) {
	b, okBatch := p.merge(l, batch)
	r, okRows := p.merge(l, rows)
	c, okCols := p.merge(l, cols)
	m := Matrix{b, r, c}
	if b.Extent == 0 || r.Extent == 0 || c.Extent == 0 {
		return m, true
	}
	leads := b.Stride >= 0 && (r.unit() && c.over(r) || c.unit() && r.over(c))
	return m, okBatch && okRows && okCols && leads
}

func (a Axis) unit() bool { return a.Extent == 1 || a.Stride == 1 }

// over says whether a can be the leading dimension over rows of length b.
func (a Axis) over(b Axis) bool { return a.Extent == 1 || a.Stride >= b.Extent }

// merge makes one axis of a group of indices where each index steps over the
// whole of the next one. The stride of an empty group is 0.
func (p *Problem) merge(l Layout, group []int) (Axis, bool) {
	if len(group) == 0 {
		return Axis{Extent: 1}, true
	}
	inner := len(group) - 1
	axis := Axis{p.extents[group[inner]], l.Stride(group[inner])}
	ok := true
	for k := inner - 1; k >= 0; k-- {
		ok = ok && l.Stride(group[k]) == axis.Stride*axis.Extent
		axis.Extent = mul(axis.Extent, p.extents[group[k]])
	}
	return axis, ok
}
