package tensor

import (
	"fmt"
	"math"
	"strings"

	"github.com/weirgo/weir"
)

// layout is a shape with strides, in elements, axis 0 first. Up to inlineRank
// axes need no memory of their own, so that an array is one object; and an
// object that points into itself could never be found unreachable.
type layout struct {
	rank   int
	inline [2 * inlineRank]int64
	spill  []int64
}

const inlineRank = 6

func newLayout(rank int) layout {
	l := layout{rank: rank}
	if rank > inlineRank {
		l.spill = make([]int64, 2*rank)
	}
	return l
}

func (l *layout) shape() []int64 {
	if l.spill != nil {
		return l.spill[:l.rank]
	}
	return l.inline[:l.rank]
}

func (l *layout) strides() []int64 {
	if l.spill != nil {
		return l.spill[l.rank:]
	}
	return l.inline[inlineRank : inlineRank+l.rank]
}

// layoutOf copies a shape and strides.
func layoutOf(shape, strides []int64) layout {
	l := newLayout(len(shape))
	copy(l.shape(), shape)
	copy(l.strides(), strides)
	return l
}

// rowMajor is the contiguous layout of shape whose last axis is fastest; its
// extents have been checked by elements.
func rowMajor(shape []int64) layout {
	l := newLayout(len(shape))
	copy(l.shape(), shape)
	s := l.strides()
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = step
		step *= max(shape[i], 1)
	}
	return l
}

// colMajor is the contiguous layout whose first axis is fastest.
func colMajor(shape []int64) layout {
	l := newLayout(len(shape))
	copy(l.shape(), shape)
	s := l.strides()
	step := int64(1)
	for i, n := range shape {
		s[i] = step
		step *= max(n, 1)
	}
	return l
}

// elements is the number of elements of shape, checked so that the bytes of an
// array of elementSize fit an int64, extents of 0 counted as 1.
func elements(op string, shape []int64, elementSize int64) (int64, error) {
	span, empty := int64(1), false
	for axis, n := range shape {
		if n < 0 {
			return 0, weir.Argf(op, "shape %s: axis %d has extent %d; expected 0 or more", shapeString(shape), axis, n)
		}
		if n == 0 {
			empty = true
			continue
		}
		if span > math.MaxInt64/elementSize/n {
			return 0, weir.Argf(op, "shape %s of %d-byte elements needs more than 2^63-1 bytes", shapeString(shape), elementSize)
		}
		span *= n
	}
	if empty {
		return 0, nil
	}
	return span, nil
}

func (l *layout) size() int64 {
	n := int64(1)
	for _, x := range l.shape() {
		n *= x
	}
	return n
}

// isRowMajor says whether the elements lie one after another, last axis
// fastest.
func (l *layout) isRowMajor() bool { return l.packed(l.rank-1, -1) }

// isColMajor is isRowMajor with the first axis fastest.
func (l *layout) isColMajor() bool { return l.packed(0, 1) }

func (l *layout) packed(from, step int) bool {
	shape, strides := l.shape(), l.strides()
	expect := int64(1)
	for k, i := 0, from; k < l.rank; k, i = k+1, i+step {
		if shape[i] == 0 {
			return true
		}
		if shape[i] != 1 && strides[i] != expect {
			return false
		}
		expect *= shape[i]
	}
	return true
}

// extent answers the lowest and highest offset of an element, from element 0.
func (l *layout) extent() (low, high int64) {
	shape, strides := l.shape(), l.strides()
	for i, n := range shape {
		if n == 0 {
			return 0, -1
		}
		if d := (n - 1) * strides[i]; d < 0 {
			low += d
		} else {
			high += d
		}
	}
	return low, high
}

// distinct says whether no two elements lie at one address, judged by strides:
// each must step past all that the smaller ones reach. A layout for which this
// says no may still be distinct, in ways that views do not produce.
func (l *layout) distinct() bool {
	type axis struct{ n, step int64 }
	var few [inlineRank]axis
	axes := few[:0] // by step, smallest first
	shape, strides := l.shape(), l.strides()
	for i, n := range shape {
		if n == 0 {
			return true
		}
		if n == 1 {
			continue
		}
		axes = append(axes, axis{n, magnitude(strides[i])})
		for k := len(axes) - 1; k > 0 && axes[k].step < axes[k-1].step; k-- {
			axes[k], axes[k-1] = axes[k-1], axes[k]
		}
	}
	reach := int64(0)
	for _, a := range axes {
		if a.step <= reach {
			return false
		}
		reach += (a.n - 1) * a.step
	}
	return true
}

// permute answers the layout with axis i taken from axes[i].
func (l *layout) permute(axes []int) layout {
	p := newLayout(len(axes))
	for i, a := range axes {
		p.shape()[i], p.strides()[i] = l.shape()[a], l.strides()[a]
	}
	return p
}

// reshape answers a layout of the same elements in row-major order with
// another shape, if strides can express it.
func (l *layout) reshape(shape []int64) (layout, bool) {
	if l.size() == 0 {
		return rowMajor(shape), true
	}
	// Axes that step evenly are merged; each run of new axes must then split
	// one merged axis.
	type axis struct{ n, step int64 }
	var merged []axis
	for i, n := range l.shape() {
		if n == 1 {
			continue
		}
		s := l.strides()[i]
		if k := len(merged) - 1; k >= 0 && merged[k].step == n*s {
			merged[k] = axis{merged[k].n * n, s}
		} else {
			merged = append(merged, axis{n, s})
		}
	}
	r := newLayout(len(shape))
	copy(r.shape(), shape)
	k, left := len(merged)-1, int64(1)
	if k >= 0 {
		left = merged[k].n
	}
	step := int64(1)
	if k >= 0 {
		step = merged[k].step
	}
	for i := len(shape) - 1; i >= 0; i-- {
		n := shape[i]
		if n == 1 {
			r.strides()[i] = step
			continue
		}
		if left == 1 {
			k--
			left, step = merged[k].n, merged[k].step
		}
		if left%n != 0 {
			return layout{}, false
		}
		r.strides()[i] = step
		step *= n
		left /= n
	}
	return r, true
}

// broadcast answers the layout stretched to shape: axes of extent 1, and
// missing leading ones, get stride 0.
func (l *layout) broadcast(shape []int64) (layout, bool) {
	extra := len(shape) - l.rank
	if extra < 0 {
		return layout{}, false
	}
	b := newLayout(len(shape))
	copy(b.shape(), shape)
	for i, n := range l.shape() {
		switch to := shape[extra+i]; {
		case n == to:
			b.strides()[extra+i] = l.strides()[i]
		case n != 1:
			return layout{}, false
		}
	}
	return b, true
}

func magnitude(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// shapeString is "2×3", "()" for a scalar.
func shapeString(shape []int64) string {
	if len(shape) == 0 {
		return "()"
	}
	var b strings.Builder
	for i, n := range shape {
		if i > 0 {
			b.WriteString("×")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

func toInt64(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, n := range shape {
		out[i] = int64(n)
	}
	return out
}
