package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirgo/weir"
)

// T is the view with the axes in reverse order: the transpose of a matrix.
func (a *Array) T() *Array {
	if a.none() {
		return a
	}
	l := newLayout(a.rank)
	for i := range a.rank {
		j := a.rank - 1 - i
		l.shape()[i], l.strides()[i] = a.shape()[j], a.strides()[j]
	}
	return a.with(l, a.offset)
}

// Conj is the view that reads as the conjugate; of a real array, the same view.
func (a *Array) Conj() *Array {
	if a.none() {
		return a
	}
	v := a.with(a.layout.clone(), a.offset)
	v.conj = a.dtype.IsComplex() && !a.conj
	return v
}

// H is the conjugate transpose.
func (a *Array) H() *Array { return a.T().Conj() }

func (l *layout) clone() layout { return layoutOf(l.shape(), l.strides()) }

// Permute is the view whose axis i is a's axis axes[i]; axes is a permutation
// of 0 … Rank-1, negative ones counted from the end.
func (a *Array) Permute(axes ...int) (*Array, error) {
	const op = "tensor.Permute"
	if err := a.usable(op, "a"); err != nil {
		return nil, err
	}
	if len(axes) != a.rank {
		return nil, weir.Argf(op, "%d axes %v; expected %d, those of shape %s", len(axes), axes, a.rank, shapeString(a.shape()))
	}
	seen := make([]bool, a.rank)
	order := make([]int, a.rank)
	for i, x := range axes {
		k, ok := a.axis(x)
		if !ok || seen[k] {
			return nil, weir.Argf(op, "axes %v; expected each of 0 to %d once", axes, a.rank-1)
		}
		seen[k] = true
		order[i] = k
	}
	return a.with(a.permute(order), a.offset), nil
}

// axis resolves an axis number, negative ones counted from the end.
func (a *Array) axis(x int) (int, bool) {
	if x < 0 {
		x += a.rank
	}
	return x, x >= 0 && x < a.rank
}

// Reshape is the view of the same elements, in row-major order, with another
// shape; one extent may be -1 and is then computed. Where strides cannot
// express it, as for most reshapes of a transposed array, it is an error;
// tensor.Reshape copies then.
func (a *Array) Reshape(shape ...int) (*Array, error) {
	const op = "tensor.Reshape"
	if err := a.usable(op, "a"); err != nil {
		return nil, err
	}
	v, ok, err := a.reshaped(op, shape)
	if err == nil && !ok {
		err = weir.Argf(op, "%s with strides %v has no view of shape %s; use tensor.Reshape(ctx, a, …), which copies",
			shapeString(a.shape()), a.Strides(), shapeString(toInt64(shape)))
	}
	return v, err
}

func (a *Array) reshaped(op string, shape []int) (*Array, bool, error) {
	want := toInt64(shape)
	unknown := -1
	known := int64(1)
	for i, n := range want {
		switch {
		case n == -1 && unknown < 0:
			unknown = i
		case n < 0:
			return nil, false, weir.Argf(op, "shape %s; expected extents of 0 or more, and at most one -1", shapeString(want))
		case n > 0 && known > math.MaxInt64/n:
			return nil, false, weir.Argf(op, "shape %s has more than 2^63-1 elements", shapeString(want))
		default:
			known *= n
		}
	}
	if unknown >= 0 && known > 0 && a.size()%known == 0 {
		want[unknown] = a.size() / known
		known = a.size()
	}
	if known != a.size() || unknown >= 0 && want[unknown] < 0 {
		return nil, false, weir.Argf(op, "%s has %d elements; shape %s does not", shapeString(a.shape()), a.size(), shapeString(want))
	}
	l, ok := a.layout.reshape(want)
	if !ok {
		return nil, false, nil
	}
	return a.with(l, a.offset), true, nil
}

// Broadcast is the view stretched to shape: axes of extent 1, and missing
// leading ones, repeat their element without copying it.
func (a *Array) Broadcast(shape ...int) (*Array, error) {
	const op = "tensor.Broadcast"
	if err := a.usable(op, "a"); err != nil {
		return nil, err
	}
	want := toInt64(shape)
	if _, err := elements(op, want, a.dtype.Size()); err != nil {
		return nil, err
	}
	l, ok := a.layout.broadcast(want)
	if !ok {
		return nil, weir.Argf(op, "%s does not stretch to %s; expected equal extents, or 1", shapeString(a.shape()), shapeString(want))
	}
	return a.with(l, a.offset), nil
}

// Diagonal is the view of the elements whose indices on the two axes are equal,
// along a new last axis.
func (a *Array) Diagonal(axis1, axis2 int) (*Array, error) {
	const op = "tensor.Diagonal"
	if err := a.usable(op, "a"); err != nil {
		return nil, err
	}
	i, ok1 := a.axis(axis1)
	j, ok2 := a.axis(axis2)
	if !ok1 || !ok2 || i == j {
		return nil, weir.Argf(op, "axes %d and %d of %s; expected two different ones", axis1, axis2, shapeString(a.shape()))
	}
	l := newLayout(a.rank - 1)
	k := 0
	for x := range a.rank {
		if x != i && x != j {
			l.shape()[k], l.strides()[k] = a.shape()[x], a.strides()[x]
			k++
		}
	}
	l.shape()[k] = min(a.shape()[i], a.shape()[j])
	l.strides()[k] = a.strides()[i] + a.strides()[j]
	return a.with(l, a.offset), nil
}

// Index says what of one axis a slice takes; see At, Span, Steps, All, Reverse
// and NewAxis.
type Index struct {
	kind              indexKind
	start, stop, step int
}

type indexKind uint8

const (
	indexAll indexKind = iota
	indexAt
	indexSpan
	indexNew
)

// End, as the stop of a Span or Steps, is the end of the axis.
const End = math.MaxInt

// At takes one place; the axis goes. Negative places count from the end.
func At(i int) Index { return Index{kind: indexAt, start: i} }

// Span takes the places from start up to, and without, stop. Negative ones
// count from the end. Places outside the axis are an error, unlike NumPy's,
// which are cut off.
func Span(start, stop int) Index { return Index{kind: indexSpan, start: start, stop: stop, step: 1} }

// Steps is Span with every step-th place only, step > 0.
func Steps(start, stop, step int) Index {
	return Index{kind: indexSpan, start: start, stop: stop, step: step}
}

// All takes the axis whole.
func All() Index { return Index{} }

// Reverse takes the axis whole, last place first.
func Reverse() Index { return Index{step: -1} }

// NewAxis adds an axis of extent 1.
func NewAxis() Index { return Index{kind: indexNew} }

func (x Index) String() string {
	switch {
	case x.kind == indexAt:
		return fmt.Sprintf("At(%d)", x.start)
	case x.kind == indexNew:
		return "NewAxis()"
	case x.kind == indexAll && x.step < 0:
		return "Reverse()"
	case x.kind == indexAll:
		return "All()"
	}
	stop := fmt.Sprint(x.stop)
	if x.stop == End {
		stop = "End"
	}
	if x.step == 1 {
		return fmt.Sprintf("Span(%d, %s)", x.start, stop)
	}
	return fmt.Sprintf("Steps(%d, %s, %d)", x.start, stop, x.step)
}

// Slice is the view of what one Index for each axis, in order, takes; axes
// without an Index are taken whole.
func (a *Array) Slice(index ...Index) (*Array, error) {
	const op = "tensor.Slice"
	if err := a.usable(op, "a"); err != nil {
		return nil, err
	}
	var shape, strides []int64
	offset, axis := a.offset, 0
	for _, x := range index {
		if x.kind == indexNew {
			shape, strides = append(shape, 1), append(strides, 0)
			continue
		}
		if axis == a.rank {
			return nil, weir.Argf(op, "%s for %s; expected at most %d that take an axis", indexList(index), shapeString(a.shape()), a.rank)
		}
		n, step := a.shape()[axis], a.strides()[axis]
		start, count, by, err := x.resolve(n)
		if err != nil {
			return nil, weir.Argf(op, "%v of axis %d, extent %d: %v", x, axis, n, err)
		}
		if count > 0 || x.kind == indexAt {
			offset += start * step
		}
		if x.kind != indexAt {
			shape, strides = append(shape, count), append(strides, step*by)
		}
		axis++
	}
	shape = append(shape, a.shape()[axis:]...)
	strides = append(strides, a.strides()[axis:]...)
	if slices.Contains(shape, 0) {
		offset = a.offset
	}
	return a.with(layoutOf(shape, strides), offset), nil
}

// resolve answers the first place, the number of places and the step.
func (x Index) resolve(n int64) (start, count, step int64, err error) {
	from := func(i int) int64 {
		if i < 0 {
			return int64(i) + n
		}
		return int64(i)
	}
	switch x.kind {
	case indexAll:
		if x.step < 0 {
			return max(n-1, 0), n, -1, nil
		}
		return 0, n, 1, nil
	case indexAt:
		i := from(x.start)
		if i < 0 || i >= n {
			return 0, 0, 0, fmt.Errorf("no such place")
		}
		return i, 1, 1, nil
	}
	start, stop := from(x.start), n
	if x.stop != End {
		stop = from(x.stop)
	}
	if x.step < 1 {
		return 0, 0, 0, fmt.Errorf("expected a step of 1 or more; use Reverse for the other direction")
	}
	if start < 0 || stop > n || start > stop {
		return 0, 0, 0, fmt.Errorf("expected 0 ≤ start ≤ stop ≤ %d", n)
	}
	if start == stop {
		return start, 0, 1, nil
	}
	count = (stop-start-1)/int64(x.step) + 1
	if count == 1 { // no second place is stepped to
		return start, 1, 1, nil
	}
	return start, count, int64(x.step), nil
}

func indexList(index []Index) string {
	parts := make([]string, len(index))
	for i, x := range index {
		parts[i] = x.String()
	}
	return strings.Join(parts, ", ")
}
