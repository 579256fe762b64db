package einsum

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

// load reads a file of testdata/generate.py.
func load[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var cases []T
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func ranks(shapes [][]int64) []int {
	r := make([]int, len(shapes))
	for k, s := range shapes {
		r[k] = len(s)
	}
	return r
}

// bind parses and binds; a case that NumPy refuses may be refused by either.
func bind(spec string, shapes, strides [][]int64) (*Problem, error) {
	e, err := Parse(spec, ranks(shapes))
	if err != nil {
		return nil, err
	}
	return e.Bind(shapes, strides)
}

func TestNumPyGivesTheSameShapesValuesAndRefusals(t *testing.T) {
	type numpyCase struct {
		Spec   string
		Shapes [][]int64
		Error  bool
		Shape  []int64
		Values []float64
	}
	cases := load[numpyCase](t, "numpy.json")
	if len(cases) < 400 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		p, err := bind(c.Spec, c.Shapes, nil)
		if c.Error {
			var e *weir.Error
			if !errors.Is(err, weir.ErrArgument) || !errors.As(err, &e) || e.Op != "einsum" {
				t.Errorf("%q of %v: NumPy refuses it, we answer %v", c.Spec, c.Shapes, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q of %v: %v", c.Spec, c.Shapes, err)
			continue
		}
		if !slices.Equal(p.OutputShape(), c.Shape) {
			t.Errorf("%q of %v: got shape %v, NumPy's is %v", c.Spec, c.Shapes, p.OutputShape(), c.Shape)
			continue
		}
		operands := make([]array, len(c.Shapes))
		for k, shape := range c.Shapes {
			data := make([]float64, product(shape))
			for e := range data {
				data[e] = float64((7*e+5*k+3)%11 - 5)
			}
			operands[k] = contiguous(shape, data)
		}
		path, err := p.Path(Options{DType: dtype.Float64})
		if err != nil {
			t.Errorf("%q of %v: %v", c.Spec, c.Shapes, err)
			continue
		}
		if err := same(run(t, path, operands), c.Values); err != nil {
			t.Errorf("%q of %v, by its path: %v\n%v", c.Spec, c.Shapes, err, path)
		}
		if err := same(sum(p, operands), c.Values); err != nil {
			t.Errorf("%q of %v, by the test's own definition: %v", c.Spec, c.Shapes, err)
		}
	}
}
