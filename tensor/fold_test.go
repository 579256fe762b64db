package tensor

import (
	"reflect"
	"testing"
)

// TestABatchThatOneOperandDoesNotStepAlongIsOneProduct of more rows or columns,
// where the other operand and the result go on evenly.
func TestABatchThatOneOperandDoesNotStepAlongIsOneProduct(t *testing.T) {
	a, b, c := matrix{rows: 2, cols: 3, rs: 3, cs: 1}, matrix{rows: 3, cols: 4, rs: 1, cs: 3}, matrix{rows: 2, cols: 4, rs: 4, cs: 1}
	columns := matrix{rows: 2, cols: 4, rs: 1, cs: 2}
	for name, p := range map[string]struct {
		given, want product
	}{
		"of a": {
			product{a: a, b: b, c: c, batch: []batchAxis{{n: 5, a: 6, b: 0, c: 8}}},
			product{a: matrix{rows: 10, cols: 3, rs: 3, cs: 1}, b: b, c: matrix{rows: 10, cols: 4, rs: 4, cs: 1}},
		},
		"of single rows": {
			product{a: matrix{rows: 1, cols: 3, rs: 77, cs: 1}, b: b, c: matrix{rows: 1, cols: 4, rs: 77, cs: 1}, batch: []batchAxis{{n: 5, a: 9, b: 0, c: 10}}},
			product{a: matrix{rows: 5, cols: 3, rs: 9, cs: 1}, b: b, c: matrix{rows: 5, cols: 4, rs: 10, cs: 1}},
		},
		"of b": {
			product{a: a, b: b, c: columns, batch: []batchAxis{{n: 5, a: 0, b: 12, c: 8}}},
			product{a: a, b: matrix{rows: 3, cols: 20, rs: 1, cs: 3}, c: matrix{rows: 2, cols: 20, rs: 1, cs: 2}},
		},
		"of single columns": {
			product{a: a, b: matrix{rows: 3, cols: 1, rs: 1, cs: 77}, c: matrix{rows: 2, cols: 1, rs: 1, cs: 77}, batch: []batchAxis{{n: 5, a: 0, b: 9, c: 10}}},
			product{a: a, b: matrix{rows: 3, cols: 5, rs: 1, cs: 9}, c: matrix{rows: 2, cols: 5, rs: 1, cs: 10}},
		},
		"not where the result has a gap": {
			product{a: a, b: b, c: columns, batch: []batchAxis{{n: 5, a: 0, b: 12, c: 9}}},
			product{a: a, b: b, c: columns, batch: []batchAxis{{n: 5, a: 0, b: 12, c: 9}}},
		},
		"not where both step": {
			product{a: a, b: b, c: c, batch: []batchAxis{{n: 5, a: 6, b: 12, c: 8}}},
			product{a: a, b: b, c: c, batch: []batchAxis{{n: 5, a: 6, b: 12, c: 8}}},
		},
	} {
		if p.given.simplify(); !reflect.DeepEqual(p.given, p.want) {
			t.Errorf("%s:\ngot      %+v\nexpected %+v", name, p.given, p.want)
		}
	}
}
