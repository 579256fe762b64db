//go:build cuda

package cuda

import (
	"math"

	"github.com/weirgo/weir/csrc/kernels"
	"github.com/weirgo/weir/internal/driver"
)

// axis is one axis of up to three operands; step is in bytes.
type axis struct {
	n    int64
	step [3]int64
}

// mostAxes is more than an addressable view has, once axes of extent 1 are
// dropped: each of the others doubles the number of elements.
const mostAxes = 64

// axes are a view's axes on the way into a kernel, outermost first. The array is
// fixed so that a launch allocates nothing.
type axes struct {
	list [mostAxes]axis
	n    int
}

// add takes an axis in, unless its extent is 1, at its place by the first
// operand's step, then the second's, the largest outermost.
func (a *axes) add(x axis) {
	if x.n == 1 {
		return
	}
	at := a.n
	for at > 0 && outside(&x, &a.list[at-1]) {
		a.list[at] = a.list[at-1]
		at--
	}
	a.list[at] = x
	a.n++
}

// outside says whether x goes further out than y.
func outside(x, y *axis) bool {
	for v := range x.step {
		if p, q := magnitude(x.step[v]), magnitude(y.step[v]); p != q {
			return p > q
		}
	}
	return false
}

func magnitude(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// merge joins neighbours that every operand steps over evenly.
func (a *axes) merge() {
	n := 0
	for _, x := range a.list[:a.n] {
		if n > 0 && fits(&a.list[n-1], &x) {
			a.list[n-1] = axis{a.list[n-1].n * x.n, x.step}
			continue
		}
		a.list[n] = x
		n++
	}
	a.n = n
}

// fits says whether stepping outer once is stepping inner n times.
func fits(outer, inner *axis) bool {
	for v := range outer.step {
		if outer.step[v] != inner.n*inner.step[v] {
			return false
		}
	}
	return true
}

// count is how many elements the axes have.
func (a *axes) count() int64 {
	n := int64(1)
	for _, x := range a.list[:a.n] {
		n *= x.n
	}
	return n
}

// put writes the axes into v from axis first on; false if they have no room.
func (a *axes) put(v *kernels.Views, first int) bool {
	if first+a.n > kernels.MaxAxes {
		return false
	}
	for i, x := range a.list[:a.n] {
		v.Extent[first+i] = x.n
		for operand := range x.step {
			v.Step[operand][first+i] = x.step[operand]
		}
	}
	return true
}

// views fills v with the operands of k, which CheckKernel has let pass: the
// result first, then A and B as far as the kernel has them. false if the axes
// that remain are more than a kernel takes.
func views(k *driver.Kernel, operands int, v *kernels.Views) bool {
	of := [3]*driver.View{&k.Out, &k.A, &k.B}
	rank := len(k.Out.Shape)
	var outer, inner axes
	for i, n := range k.Out.Shape {
		x := axis{n: n}
		for o := range operands {
			x.step[o] = of[o].Strides[i] * of[o].DType.Size()
		}
		outer.add(x)
	}
	for o := range operands {
		v.Base[o] = uint64(of[o].Ptr)
	}
	outer.merge()
	v.Count, v.InnerCount = outer.count(), 1
	if k.Op == driver.KernelSum {
		size := k.A.DType.Size()
		for i, n := range k.A.Shape[rank:] {
			// The summed operand decides the order of its own axes.
			inner.add(axis{n, [3]int64{k.A.Strides[rank+i] * size}})
		}
		for i := range inner.list[:inner.n] {
			x := &inner.list[i]
			x.step[0], x.step[1] = 0, x.step[0]
		}
		inner.merge()
		v.InnerCount = inner.count()
	}
	v.Outer, v.Inner = int32(outer.n), int32(inner.n)
	if !outer.put(v, 0) || !inner.put(v, outer.n) {
		return false
	}
	if v.Count <= math.MaxInt32 && v.InnerCount <= math.MaxInt32 {
		v.Narrow = 1
		for i := range outer.n + inner.n {
			if v.Extent[i] > 0 {
				v.Divide(i)
			}
		}
	}
	return true
}

// even says whether v is one row of each of its first operands, with elements of
// the given size next to each other.
func even(v *kernels.Views, operands int, size int64) bool {
	if v.Outer > 1 {
		return false
	}
	for o := range operands {
		if v.Outer == 1 && v.Step[o][0] != size {
			return false
		}
	}
	return true
}
