package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgo/weir"
)

// picture is the model of a view: its shape, and for each index, in row-major
// order, which element of the source it shows.
type picture struct {
	shape []int
	shows []int
}

// at is the place of an index in a row-major list.
func (p picture) at(index []int) int {
	k := 0
	for i, x := range index {
		k = k*p.shape[i] + x
	}
	return k
}

// picture of a new shape, each index showing what old shows of it.
func (p picture) remap(shape []int, old func(index []int) []int) picture {
	q := picture{shape: slices.Clone(shape)}
	index := make([]int, len(shape))
	for {
		if slices.Contains(shape, 0) {
			return q
		}
		q.shows = append(q.shows, p.shows[p.at(old(index))])
		i := len(shape) - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < shape[i] {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			return q
		}
	}
}

// chooser makes the choices of a program of views.
type chooser func(label string, low, high int) int

// step applies one random view to both; ok is false when the view refused, which
// only a reshape may.
func step(choose chooser, a *Array, p picture) (*Array, picture, bool, error) {
	rank := len(p.shape)
	switch choose("view", 0, 6) {
	case 0:
		shape := slices.Clone(p.shape)
		slices.Reverse(shape)
		return a.T(), p.remap(shape, func(x []int) []int { y := slices.Clone(x); slices.Reverse(y); return y }), true, nil
	case 1:
		order := make([]int, rank)
		for i := range order {
			order[i] = i
		}
		for i := range order {
			j := choose("swap", i, rank-1)
			order[i], order[j] = order[j], order[i]
		}
		shape := make([]int, rank)
		for i, k := range order {
			shape[i] = p.shape[k]
		}
		v, err := a.Permute(order...)
		return v, p.remap(shape, func(x []int) []int {
			y := make([]int, rank)
			for i, k := range order {
				y[k] = x[i]
			}
			return y
		}), true, err
	case 2:
		return slice(choose, a, p)
	case 3:
		shape := factors(choose, len(p.shows))
		if len(p.shows) == 0 {
			shape = []int{0, choose("extent", 0, 3)}
		}
		v, err := a.Reshape(shape...)
		return v, picture{shape, p.shows}, err == nil, nil
	case 4:
		shape := slices.Clone(p.shape)
		for i, n := range shape {
			if n == 1 {
				shape[i] = choose("stretch", 1, 3)
			}
		}
		lead := choose("lead", 0, 1)
		shape = append(slices.Repeat([]int{2}, lead), shape...)
		v, err := a.Broadcast(shape...)
		return v, p.remap(shape, func(x []int) []int {
			y := slices.Clone(x[lead:])
			for i := range y {
				if p.shape[i] == 1 {
					y[i] = 0
				}
			}
			return y
		}), true, err
	case 5:
		if rank < 2 {
			return a, p, true, nil
		}
		i := choose("axis", 0, rank-2)
		j := choose("axis", i+1, rank-1)
		var shape []int
		for k, n := range p.shape {
			if k != i && k != j {
				shape = append(shape, n)
			}
		}
		shape = append(shape, min(p.shape[i], p.shape[j]))
		v, err := a.Diagonal(i, j-rank)
		return v, p.remap(shape, func(x []int) []int {
			y := make([]int, 0, rank)
			rest, d := x[:len(x)-1], x[len(x)-1]
			for k := range rank {
				if k == i || k == j {
					y = append(y, d)
				} else {
					y, rest = append(y, rest[0]), rest[1:]
				}
			}
			return y
		}), true, err
	}
	return a.Conj().Conj(), p, true, nil
}

func slice(choose chooser, a *Array, p picture) (*Array, picture, bool, error) {
	type pick struct {
		axis              int // -1: new
		start, step, gone int
	}
	var index []Index
	var picks []pick
	var shape []int
	for axis, n := range p.shape {
		switch choose("index", 0, 4) {
		case 0:
			index, picks, shape = append(index, All()), append(picks, pick{axis: axis, step: 1}), append(shape, n)
		case 1:
			index, picks, shape = append(index, Reverse()), append(picks, pick{axis: axis, start: max(n-1, 0), step: -1}), append(shape, n)
		case 2:
			if n == 0 {
				index, picks, shape = append(index, All()), append(picks, pick{axis: axis, step: 1}), append(shape, n)
				break
			}
			i := choose("place", -n, n-1)
			index, picks = append(index, At(i)), append(picks, pick{axis: axis, start: (i + n) % n, gone: 1})
		case 3:
			start := choose("start", 0, n)
			stop := choose("stop", start, n)
			by := choose("step", 1, 3)
			index = append(index, Steps(start, stop, by))
			picks, shape = append(picks, pick{axis: axis, start: start, step: by}), append(shape, (stop-start+by-1)/by)
		case 4:
			index, picks, shape = append(index, NewAxis(), All()), append(picks, pick{axis: -1}, pick{axis: axis, step: 1}), append(shape, 1, n)
		}
	}
	v, err := a.Slice(index...)
	return v, p.remap(shape, func(x []int) []int {
		y := make([]int, len(p.shape))
		for _, k := range picks {
			switch {
			case k.axis < 0:
				x = x[1:]
			case k.gone == 1:
				y[k.axis] = k.start
			default:
				y[k.axis] = k.start + k.step*x[0]
				x = x[1:]
			}
		}
		return y
	}), true, err
}

// factors splits n into up to three extents.
func factors(choose chooser, n int) []int {
	var shape []int
	for range choose("factors", 0, 2) {
		var divisors []int
		for d := 1; d <= n; d++ {
			if n%d == 0 {
				divisors = append(divisors, d)
			}
		}
		if len(divisors) == 0 {
			break
		}
		d := divisors[choose("divisor", 0, len(divisors)-1)]
		shape = append(shape, d)
		n /= d
	}
	return append(shape, n)
}

// program runs views over an array of the numbers from 0 and compares every one
// with the model.
func program(ctx context.Context, choose chooser) error {
	shape := make([]int, choose("rank", 0, 4))
	size := 1
	for i := range shape {
		shape[i] = choose("extent", 0, 4)
		size *= shape[i]
	}
	data := make([]int32, size)
	p := picture{shape: shape, shows: make([]int, size)}
	for i := range data {
		data[i], p.shows[i] = int32(i), i
	}
	a, err := From(ctx, data, shape...)
	if len(shape) == 0 {
		a, err = Scalar(ctx, data[0])
	}
	if err != nil {
		return err
	}
	defer a.Free()
	v := a
	for range choose("steps", 1, 5) {
		w, q, ok, err := step(choose, v, p)
		if err != nil {
			return fmt.Errorf("a view of %v was refused: %w", p.shape, err)
		}
		if !ok {
			continue
		}
		if len(q.shows) > 4096 {
			break
		}
		v, p = w, q
		if !slices.Equal(v.Shape(), p.shape) {
			return fmt.Errorf("shape %v; want %v", v.Shape(), p.shape)
		}
		got, err := Data[int32](ctx, v)
		if err != nil {
			return err
		}
		for i, k := range p.shows {
			if got[i] != int32(k) {
				return fmt.Errorf("shape %v strides %v: element %d is %d; want %d", v.Shape(), v.Strides(), i, got[i], k)
			}
		}
		if v.distinct() && len(unique(p.shows)) != len(p.shows) {
			return fmt.Errorf("shape %v strides %v: said to repeat no element, but does", v.Shape(), v.Strides())
		}
	}
	return nil
}

func unique(x []int) []int {
	x = slices.Clone(x)
	slices.Sort(x)
	return slices.Compact(x)
}

func TestViewsShowWhatAnIndexByIndexModelShows(t *testing.T) {
	ctx := start(t)
	rapid.Check(t, func(r *rapid.T) {
		if err := program(ctx, func(label string, low, high int) int {
			return rapid.IntRange(low, high).Draw(r, label)
		}); err != nil {
			r.Fatal(err)
		}
	})
}

func FuzzViews(f *testing.F) {
	f.Add([]byte{2, 3, 4, 3, 0, 1, 1, 0, 2, 3, 1, 2, 1})
	f.Add([]byte{3, 2, 1, 3, 5, 3, 1, 2, 4, 2, 0, 0, 5, 0, 1})
	ctx := start(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		k := 0
		err := program(ctx, func(_ string, low, high int) int {
			if k == len(choices) || high <= low {
				return low
			}
			k++
			return low + int(choices[k-1])%(high-low+1)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestStepsLongerThanTheAxisTakeOnePlace(t *testing.T) {
	ctx := start(t)
	m := must(From(ctx, []float64{1, 2, 3, 4, 5, 6}, 2, 3))
	for _, step := range []int{2, 3, 1 << 40, math.MaxInt} {
		v := must(m.Slice(Steps(0, End, step)))
		if got := must(Data[float64](ctx, v)); !slices.Equal(v.Shape(), []int{1, 3}) || !slices.Equal(got, []float64{1, 2, 3}) {
			t.Errorf("step %d: shape %v, %v", step, v.Shape(), got)
		}
	}
}

func TestReshapeNeverRefusesAContiguousArray(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 2, 3, 4))
	for _, shape := range [][]int{{24}, {4, 6}, {2, 12}, {1, 24, 1}, {-1, 8}, {3, -1, 2}, {2, 2, 2, 3}} {
		v, err := a.Reshape(shape...)
		if err != nil {
			t.Errorf("%v: %v", shape, err)
		} else if v.Buffer() != a.Buffer() {
			t.Errorf("%v: copied", shape)
		}
	}
}

func TestReshapeOfATransposedMatrixCopiesOnlyInTheFunctionForm(t *testing.T) {
	ctx := start(t)
	a := must(From(ctx, []float64{1, 2, 3, 4, 5, 6}, 2, 3))
	if _, err := a.T().Reshape(6); !errors.Is(err, weir.ErrArgument) {
		t.Errorf("the method answered %v; want a refusal", err)
	}
	v := must(Reshape(ctx, a.T(), 6))
	if got := must(Data[float64](ctx, v)); !slices.Equal(got, []float64{1, 4, 2, 5, 3, 6}) {
		t.Errorf("got %v", got)
	}
}

func TestViewsRefuseWhatTheyCannotShow(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 2, 3))
	for want, err := range map[string]error{
		"tensor.Permute: 1 axes [0]; expected 2, those of shape 2×3":                                                            second(a.Permute(0)),
		"tensor.Permute: axes [0 0]; expected each of 0 to 1 once":                                                              second(a.Permute(0, 0)),
		"tensor.Permute: axes [0 2]; expected each of 0 to 1 once":                                                              second(a.Permute(0, 2)),
		"tensor.Reshape: 2×3 has 6 elements; shape 4 does not":                                                                  second(a.Reshape(4)),
		"tensor.Reshape: 2×3 has 6 elements; shape -1×4 does not":                                                               second(a.Reshape(-1, 4)),
		"tensor.Reshape: shape -1×-1; expected extents of 0 or more, and at most one -1":                                        second(a.Reshape(-1, -1)),
		"tensor.Reshape: shape -2×3; expected extents of 0 or more, and at most one -1":                                         second(a.Reshape(-2, 3)),
		"tensor.Reshape: shape 4611686018427387904×4 has more than 2^63-1 elements":                                             second(a.Reshape(1<<62, 4)),
		"tensor.Broadcast: 2×3 does not stretch to 4×3; expected equal extents, or 1":                                           second(a.Broadcast(4, 3)),
		"tensor.Broadcast: 2×3 does not stretch to 3; expected equal extents, or 1":                                             second(a.Broadcast(3)),
		"tensor.Broadcast: shape -1×3: axis 0 has extent -1; expected 0 or more":                                                second(a.Broadcast(-1, 3)),
		"tensor.Broadcast: shape 2305843009213693952×2×3 of 4-byte elements needs more than 2^63-1 bytes":                       second(a.Broadcast(1<<61, 2, 3)),
		"tensor.Diagonal: axes 0 and -2 of 2×3; expected two different ones":                                                    second(a.Diagonal(0, -2)),
		"tensor.Slice: At(2) of axis 0, extent 2: no such place":                                                                second(a.Slice(At(2))),
		"tensor.Slice: At(-3) of axis 0, extent 2: no such place":                                                               second(a.Slice(At(-3))),
		"tensor.Slice: Span(1, 5) of axis 1, extent 3: expected 0 ≤ start ≤ stop ≤ 3":                                           second(a.Slice(All(), Span(1, 5))),
		"tensor.Slice: Steps(0, End, 0) of axis 0, extent 2: expected a step of 1 or more; use Reverse for the other direction": second(a.Slice(Steps(0, End, 0))),
		"tensor.Slice: All(), NewAxis(), All(), Reverse() for 2×3; expected at most 2 that take an axis":                        second(a.Slice(All(), NewAxis(), All(), Reverse())),
	} {
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Error(cmp.Diff(want, fmt.Sprint(err)))
		}
	}
}

func second[T any](_ T, err error) error { return err }
