package host

import (
	"cmp"
	"slices"

	"github.com/weirgo/weir/internal/driver"
)

// loop runs over the elements of up to three views of one shape. Axes of
// extent 1 are dropped, axes are ordered by the first view's stride, largest
// outside, and neighbours that every view steps over evenly are merged.
type loop struct {
	base  [3]uintptr
	axes  []axis // outermost first
	empty bool
}

type axis struct {
	n    int64
	step [3]int64 // in bytes
}

// row is the innermost axis: n elements from ptr, step bytes apart.
type row struct {
	ptr  [3]uintptr
	step [3]int64
	n    int64
}

func newLoop(shape []int64, views ...driver.View) *loop {
	l := &loop{}
	for i, v := range views {
		l.base[i] = uintptr(v.Ptr)
	}
	for a, n := range shape {
		if n == 0 {
			l.empty = true
		}
		if n == 1 {
			continue
		}
		x := axis{n: n}
		for i, v := range views {
			x.step[i] = v.Strides[a] * v.DType.Size()
		}
		l.axes = append(l.axes, x)
	}
	slices.SortStableFunc(l.axes, func(a, b axis) int {
		for i := range a.step {
			if c := cmp.Compare(magnitude(b.step[i]), magnitude(a.step[i])); c != 0 {
				return c
			}
		}
		return 0
	})
	merged := l.axes[:0]
	for _, x := range l.axes {
		if last := len(merged) - 1; last >= 0 && fits(merged[last], x) {
			merged[last] = axis{n: merged[last].n * x.n, step: x.step}
			continue
		}
		merged = append(merged, x)
	}
	l.axes = merged
	return l
}

// fits says whether stepping outer once is stepping inner n times.
func fits(outer, inner axis) bool {
	for i := range outer.step {
		if outer.step[i] != inner.n*inner.step[i] {
			return false
		}
	}
	return true
}

func magnitude(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

func (l *loop) run(do func(*row)) { l.walk(l.base, do) }

// runAt runs with the first view's elements starting at p.
func (l *loop) runAt(p uintptr, do func(*row)) { l.walk([3]uintptr{p}, do) }

func (l *loop) walk(at [3]uintptr, do func(*row)) {
	if l.empty {
		return
	}
	r := row{ptr: at, n: 1}
	last := len(l.axes) - 1
	if last >= 0 {
		r.n, r.step = l.axes[last].n, l.axes[last].step
	}
	if last < 1 {
		do(&r)
		return
	}
	index := make([]int64, last)
	for {
		r.ptr = at
		do(&r)
		a := last - 1
		for ; a >= 0; a-- {
			index[a]++
			for i := range at {
				at[i] += uintptr(l.axes[a].step[i])
			}
			if index[a] < l.axes[a].n {
				break
			}
			index[a] = 0
			for i := range at {
				at[i] -= uintptr(l.axes[a].step[i] * l.axes[a].n)
			}
		}
		if a < 0 {
			return
		}
	}
}
