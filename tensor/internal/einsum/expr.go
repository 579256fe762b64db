package einsum

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/weirgo/weir"
)

const op = "einsum"

// The largest expressions that are planned. A network of 64 by 64 tensors
// still fits; beyond, the search's tables would be too large.
const (
	MaxOperands = 1 << 12
	MaxIndices  = 1 << 13
	MaxAxes     = 1 << 15
)

// Expr is an einsum expression for operands of known ranks. Its indices are
// numbered from 0 in the order in which the operands first have them.
type Expr struct {
	inputs   [][]int  // the index of each axis of each operand
	output   []int    // the index of each axis of the output
	symbols  []rune   // one letter for each index
	labels   []int    // the caller's label for each index; nil without labels
	ellipsis []int    // the indices of the axes that '...' stands for, outermost first
	names    []string // of the operands; nil without names
	text     string   // String
}

// String is the expression in the notation that Parse takes, with the output
// written out. Labels appear as letters: the smallest label as a, and so on
// through z, A to Z, and the other letters of Unicode.
func (e *Expr) String() string { return e.text }

// subscripts writes terms with one letter for each index.
func (e *Expr) subscripts(b *strings.Builder, indices []int) {
	for _, i := range indices {
		b.WriteRune(e.symbols[i])
	}
}

// index names index i in a message.
func (e *Expr) index(i int) string {
	if e.labels != nil {
		return fmt.Sprintf("label %d", e.labels[i])
	}
	if k := slices.Index(e.ellipsis, i); k >= 0 {
		return fmt.Sprintf("axis %d of the %d that '...' stands for", k+1, len(e.ellipsis))
	}
	return fmt.Sprintf("index %c", e.symbols[i])
}

// operand names operand k in a message.
func (e *Expr) operand(k int) string { return operandName(k, e.names) }

func operandName(k int, names []string) string {
	if k < len(names) && names[k] != "" {
		return fmt.Sprintf("operand %d (%s)", k+1, names[k])
	}
	return fmt.Sprintf("operand %d", k+1)
}

// CheckNames refuses names that are not one for each operand; none are fine.
func CheckNames(names []string, operands int) error {
	if len(names) != 0 && len(names) != operands {
		return weir.Argf(op, "names: got %d; expected one for each of the %d operands", len(names), operands)
	}
	return nil
}

// checkSize refuses expressions beyond the limits of the package.
func checkSize(operands, axes, indices int) error {
	switch {
	case operands == 0:
		return weir.Argf(op, "operands: got none; expected at least one")
	case operands > MaxOperands:
		return weir.Argf(op, "operands: got %d; expected at most %d", operands, MaxOperands)
	case axes > MaxAxes:
		return weir.Argf(op, "axes of all operands: got %d; expected at most %d", axes, MaxAxes)
	case indices > MaxIndices:
		return weir.Argf(op, "indices: got %d different ones; expected at most %d", indices, MaxIndices)
	}
	return nil
}

// letters returns n letters, none of them taken: a to z, A to Z, and then the
// others of Unicode in order.
func letters(n int, taken map[rune]int) []rune {
	found := make([]rune, 0, n)
	offer := func(first, last rune) {
		for r := first; r <= last && len(found) < n; r++ {
			if _, ok := taken[r]; !ok && unicode.IsLetter(r) {
				found = append(found, r)
			}
		}
	}
	offer('a', 'z')
	offer('A', 'Z')
	offer(unicode.MaxASCII+1, unicode.MaxRune)
	return found
}
