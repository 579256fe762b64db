package einsum

import "testing"

func TestMatrixMergesGroupsThatLieWithOneStride(t *testing.T) {
	p := mustBind(t, "abcd->", []int64{2, 3, 4, 5}) // strides 60 20 5 1
	l := p.Input(0)
	i := func(s string) []int {
		var group []int
		for _, r := range s {
			group = append(group, int(r-'a'))
		}
		return group
	}
	for _, c := range []struct {
		batch, rows, cols string
		want              Matrix
		ok                bool
	}{
		{"", "ab", "cd", Matrix{Axis{1, 0}, Axis{6, 20}, Axis{20, 1}}, true},
		{"", "cd", "ab", Matrix{Axis{1, 0}, Axis{20, 1}, Axis{6, 20}}, true},
		{"a", "b", "cd", Matrix{Axis{2, 60}, Axis{3, 20}, Axis{20, 1}}, true},
		{"ab", "c", "d", Matrix{Axis{6, 20}, Axis{4, 5}, Axis{5, 1}}, true},
		{"b", "a", "cd", Matrix{Axis{3, 20}, Axis{2, 60}, Axis{20, 1}}, true},
		{"", "abcd", "", Matrix{Axis{1, 0}, Axis{120, 1}, Axis{1, 0}}, true},
		{"", "ac", "bd", Matrix{}, false},
		{"", "ba", "cd", Matrix{}, false}, // wrong order within the group
		{"cd", "a", "b", Matrix{}, false}, // neither rows nor columns are adjacent
		{"abc", "", "d", Matrix{Axis{24, 5}, Axis{1, 0}, Axis{5, 1}}, true},
	} {
		got, ok := p.Matrix(l, i(c.batch), i(c.rows), i(c.cols))
		if ok != c.ok || ok && got != c.want {
			t.Errorf("batch %q, rows %q, columns %q: got %+v, %v; want %+v, %v", c.batch, c.rows, c.cols, got, ok, c.want, c.ok)
		}
	}
}

func TestMatrixRefusesStridesThatGEMMCannotWalk(t *testing.T) {
	for _, c := range []struct {
		name    string
		strides []int64
		ok      bool
	}{
		{"row-major", []int64{3, 1}, true},
		{"column-major", []int64{1, 2}, true},
		{"rows apart", []int64{7, 1}, true},
		{"every second column", []int64{6, 2}, false},
		{"rows reversed", []int64{-3, 1}, false},
		{"columns reversed", []int64{3, -1}, false},
		{"rows repeated", []int64{0, 1}, false},
		{"rows overlap", []int64{2, 1}, false},
	} {
		e, err := Parse("ij->", []int{2})
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.Bind([][]int64{{2, 3}}, [][]int64{c.strides})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := p.Matrix(p.Input(0), nil, []int{0}, []int{1}); ok != c.ok {
			t.Errorf("%s: got %v; want %v", c.name, ok, c.ok)
		}
	}
	e, err := Parse("bij->", []int{3})
	if err != nil {
		t.Fatal(err)
	}
	for stride, want := range map[int64]bool{6: true, 0: true, -6: false} {
		p, err := e.Bind([][]int64{{2, 2, 3}}, [][]int64{{stride, 3, 1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := p.Matrix(p.Input(0), []int{0}, []int{1}, []int{2}); ok != want {
			t.Errorf("batch stride %d: got %v; want %v", stride, ok, want)
		}
	}
}

func TestCopiesAreMadeWhereAxesDontMerge(t *testing.T) {
	for _, c := range []struct {
		spec             string
		left, right, out bool
	}{
		{"akb,kc->abc", true, false, false},    // k lies between the free axes
		{"ka,bkc->abc", false, true, false},    // the same on the right
		{"akl,lkb->ab", true, false, false},    // k and l in different orders
		{"kab,kcd->acbd", false, false, true},  // the result interleaves both sides
		{"kab,kc->bac", true, false, false},    // cheaper to copy the operand than the result
		{"xkb,xkc->bcx", false, false, true},   // the batch index is innermost in the result
		{"xka,xkb->xab", false, false, false},  // a batch
		{"kxa,xbk->axb", false, false, false},  // a batch between the axes
		{"akbl,lckd->abcd", true, true, false}, // everything interleaved
	} {
		extent := map[rune]int64{'a': 3, 'b': 4, 'c': 5, 'd': 2, 'k': 3, 'l': 2, 'x': 2}
		var shapes [][]int64
		var operands []array
		shape := []int64{}
		for _, r := range c.spec {
			if r == ',' || r == '-' {
				data := make([]float64, product(shape))
				for k := range data {
					data[k] = float64(k%7 - 3)
				}
				shapes, operands = append(shapes, shape), append(operands, contiguous(shape, data))
				shape = nil
			}
			if r == '-' {
				break
			}
			if n, ok := extent[r]; ok {
				shape = append(shape, n)
			}
		}
		p := mustBind(t, c.spec, shapes...)
		path := mustPath(t, p, Options{})
		if s := path.Steps[0]; s.PackLeft != c.left || s.PackRight != c.right || s.PackOut != c.out {
			t.Errorf("%s: copies %s", c.spec, copies(s))
		}
		if err := same(run(t, path, operands), sum(p, operands)); err != nil {
			t.Errorf("%s: %v", c.spec, err)
		}
	}
}
