package einsum

import "testing"

var square = [][]int64{{64, 64}, {64, 64}}

// firstUse parses, binds and plans a matrix product.
func firstUse(t failer) {
	e, err := Parse("ij,jk->ik", []int{2, 2})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Bind(square, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Path(Options{}); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkMatrixProduct(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		firstUse(b)
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		name    string
		problem *Problem
	}{
		{"3 operands", mustBind(b, "isj,jtk,st->ik", []int64{32, 2, 32}, []int64{32, 2, 32}, []int64{2, 2})},
		{"3x3 torus", torus(b, 3, 0)},
		{"8x8 torus", torus(b, 8, 1)},
		{"12x12 torus", torus(b, 12, 1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				mustPath(b, c.problem, Options{})
			}
		})
	}
}
