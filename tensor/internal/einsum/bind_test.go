package einsum

import (
	"math"
	"slices"
	"testing"
)

func TestBindRefusesShapesThatDontFit(t *testing.T) {
	for _, c := range []struct {
		spec   string
		shapes [][]int64
		says   string
	}{
		{"ij,jk", [][]int64{{2, 3}, {4, 5}}, "index j: extent 3 in operand 1, extent 4 in operand 2; expected equal extents, or 1"},
		{"i,i,i->", [][]int64{{1}, {5}, {7}}, "index i: extent 5 in operand 2, extent 7 in operand 3"},
		{"i,i->", [][]int64{{0}, {2}}, "index i: extent 0 in operand 1, extent 2 in operand 2"},
		{"iji->j", [][]int64{{2, 3, 4}}, "operand 1: index i has extents 2 and 4 at axes 1 and 3; expected equal extents on a diagonal"},
		{"ii->", [][]int64{{1, 4}}, "operand 1: index i has extents 1 and 4"},
		{"...i,...->i...", [][]int64{{2, 3, 9}, {4, 3}}, "axis 1 of the 2 that '...' stands for: extent 2 in operand 1, extent 4 in operand 2"},
		{"i", [][]int64{{-1}}, "operand 1: got extent -1 at axis 1; expected zero or more"},
		{"ij", [][]int64{{math.MaxInt64, 2}}, "operand 1: shape [9223372036854775807 2] has 2^63-1 elements or more"},
		{"i,j->ij", [][]int64{{1 << 40}, {1 << 40}}, "output: shape [1099511627776 1099511627776] has 2^63-1 elements or more"},
	} {
		e, err := Parse(c.spec, ranks(c.shapes))
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Bind(c.shapes, nil)
		refused(t, err, c.says)
	}
}

func TestBindRefusesWrongCounts(t *testing.T) {
	e, err := Parse("ij,jk", []int{2, 2})
	if err != nil {
		t.Fatal(err)
	}
	ok := [][]int64{{2, 3}, {3, 4}}
	_, err = e.Bind(ok[:1], nil)
	refused(t, err, "shapes: got 1; expected 2")
	_, err = e.Bind(ok, ok[:1])
	refused(t, err, "strides: got 1; expected 2")
	_, err = e.Bind(ok, [][]int64{nil, {1}})
	refused(t, err, "operand 2: got 1 strides; expected 2")
	_, err = e.Bind([][]int64{{2, 3}, {3}}, nil)
	refused(t, err, "operand 2: got shape [3] of rank 1; expected rank 2")
}

func TestExtentsMayBeHugeWhereSomethingIsEmpty(t *testing.T) {
	n := int64(1) << 62
	p := mustBind(t, "ab,bc->ac", []int64{n, 0}, []int64{0, 0})
	if !slices.Equal(p.OutputShape(), []int64{n, 0}) {
		t.Errorf("got %v", p.OutputShape())
	}
	mustPath(t, p, Options{})
}

func TestInputsAreSeenAsViews(t *testing.T) {
	for _, c := range []struct {
		spec    string
		shape   []int64
		strides []int64
		indices string
		want    []int64
	}{
		{"ij->", []int64{2, 3}, nil, "ij", []int64{3, 1}},
		{"ij->", []int64{2, 3}, []int64{1, 2}, "ji", []int64{2, 1}},
		{"ij->", []int64{2, 3}, []int64{-3, 0}, "ij", []int64{-3, 0}},
		{"ii->", []int64{3, 3}, nil, "i", []int64{4}},
		{"iji->", []int64{3, 2, 3}, nil, "ij", []int64{7, 3}},
		{"ijk->", []int64{2, 1, 3}, nil, "ik", []int64{3, 1}},
	} {
		e, err := Parse(c.spec, []int{len(c.shape)})
		if err != nil {
			t.Fatal(err)
		}
		var strides [][]int64
		if c.strides != nil {
			strides = [][]int64{c.strides}
		}
		p, err := e.Bind([][]int64{c.shape}, strides)
		if err != nil {
			t.Fatal(err)
		}
		in := p.Input(0)
		var got []rune
		for _, i := range in.Indices {
			got = append(got, e.symbols[i])
		}
		if string(got) != c.indices || !slices.Equal(in.Strides, c.want) {
			t.Errorf("%s of %v: got %s with strides %v; want %s with %v", c.spec, c.shape, string(got), in.Strides, c.indices, c.want)
		}
	}
}
