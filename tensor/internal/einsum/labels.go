package einsum

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirgo/weir"
)

// FromLabels makes the expression of a network whose indices are integers:
// inputs[k][a] is the label of axis a of operand k, and output lists the
// labels of the result, each at most once. Any integers are labels. Names of
// the operands, for messages, are optional.
func FromLabels(inputs [][]int, output []int, names ...string) (*Expr, error) {
	axes := 0
	for _, in := range inputs {
		axes += len(in)
	}
	if err := checkSize(len(inputs), axes, 0); err != nil {
		return nil, err
	}
	if err := CheckNames(names, len(inputs)); err != nil {
		return nil, err
	}
	e := &Expr{inputs: make([][]int, len(inputs)), labels: []int{}, names: names}
	ids := make(map[int]int)
	for k, in := range inputs {
		e.inputs[k] = make([]int, len(in))
		for a, label := range in {
			id, ok := ids[label]
			if !ok {
				id = len(e.labels)
				ids[label] = id
				e.labels = append(e.labels, label)
			}
			e.inputs[k][a] = id
		}
	}
	if err := checkSize(len(inputs), axes, len(e.labels)); err != nil {
		return nil, err
	}
	seen := make([]bool, len(e.labels))
	for _, label := range output {
		id, ok := ids[label]
		if !ok {
			return nil, weir.Argf(op, "output: label %d is in no operand; expected labels of the operands", label)
		}
		if seen[id] {
			return nil, weir.Argf(op, "output: label %d is there twice; expected each label once", label)
		}
		seen[id] = true
		e.output = append(e.output, id)
	}
	e.spell()
	return e, nil
}

// spell gives the labels letters, the smallest label the first one.
func (e *Expr) spell() {
	order := make([]int, len(e.labels))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(e.labels[a], e.labels[b]) })
	e.symbols = make([]rune, len(e.labels))
	for k, letter := range letters(len(order), nil) {
		e.symbols[order[k]] = letter
	}
	var b strings.Builder
	for k, in := range e.inputs {
		if k > 0 {
			b.WriteByte(',')
		}
		e.subscripts(&b, in)
	}
	b.WriteString("->")
	e.subscripts(&b, e.output)
	e.text = b.String()
}
