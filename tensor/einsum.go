package tensor

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/tensor/internal/einsum"
)

// EinsumOptions configures a contraction. The zero value sets no limit and lets
// the search choose the order.
type EinsumOptions struct {
	// MemoryLimit is the most bytes that intermediate results, packed copies and
	// the result may ask for at one time; operands do not count, but copies of
	// conjugated ones do. 0 is no limit. A limit that no order keeps is an error
	// before any work, which says how much is needed and for which step.
	MemoryLimit int64
	// Order is the order to use instead of a search: for n operands n-1 pairs
	// of terms. Terms below n are the operands, term n+k the result of pair k.
	Order [][2]int
	// Precision is that of the steps that are matrix products. The order does not
	// depend on it.
	Precision Precision
	// Names are the operands' names in messages: none, or one for each.
	Names []string
	// Progress is called after each step has been submitted.
	Progress func(done, total int)
}

// Einsum sums products of elements over indices, in the notation of NumPy's
// einsum: "ij,jk->ik" is a matrix product, "ii->" a trace, "...ij->...ji" a
// transposition. Any number of operands is contracted pair by pair in a good
// order; an index that is repeated in one operand takes its diagonal, and
// extent 1 stretches. Any Unicode letter is an index. Operands have one element
// type. The result is a new row-major array.
//
// The order depends on spec, shapes and options alone, and so do the rounding
// and, where a sum can be factored, whether a NaN times an empty sum is NaN.
// Results on the host device and on CUDA agree within eps times the number of
// summed terms times the sum of their absolute values.
func Einsum(ctx context.Context, spec string, operands ...*Array) (*Array, error) {
	return EinsumWith(ctx, EinsumOptions{}, spec, operands...)
}

// EinsumWith is Einsum with options.
func EinsumWith(ctx context.Context, o EinsumOptions, spec string, operands ...*Array) (*Array, error) {
	p, err := PlanEinsum(o, spec, operands...)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, o.Progress, operands)
}

// Network contracts a tensor network whose indices are integers: labels[k][a]
// is the label of axis a of operand k, and output lists the labels of the
// result's axes.
func Network(ctx context.Context, o EinsumOptions, operands []*Array, labels [][]int, output []int) (*Array, error) {
	p, err := PlanNetwork(o, operands, labels, output)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, o.Progress, operands)
}

// Contract sums over pairs of axes: axis axesA[i] of a with axis axesB[i] of b,
// negative ones counted from the end. The result has a's other axes in order,
// then b's.
func Contract(ctx context.Context, a, b *Array, axesA, axesB []int) (*Array, error) {
	const op = "tensor.Contract"
	if err := sameDevice(op, namesAB, a, b); err != nil {
		return nil, err
	}
	if len(axesA) != len(axesB) {
		return nil, weir.Argf(op, "axes %v of a and %v of b; expected pairs", axesA, axesB)
	}
	labels := [][]int{make([]int, a.rank), make([]int, b.rank)}
	for i := range labels[0] {
		labels[0][i] = i
	}
	for i := range labels[1] {
		labels[1][i] = a.rank + i
	}
	summed := map[int]bool{}
	for i := range axesA {
		x, ok1 := a.axis(axesA[i])
		y, ok2 := b.axis(axesB[i])
		if !ok1 || !ok2 || summed[x] || labels[1][y] < a.rank {
			return nil, weir.Argf(op, "axes %v of a, rank %d, and %v of b, rank %d; expected each axis at most once", axesA, a.rank, axesB, b.rank)
		}
		if a.shape()[x] != b.shape()[y] {
			return nil, weir.Argf(op, "axis %d of a has extent %d and axis %d of b %d; expected equal ones", x, a.shape()[x], y, b.shape()[y])
		}
		summed[x] = true
		labels[1][y] = x
	}
	var output []int
	for _, l := range append(append([]int{}, labels[0]...), labels[1]...) {
		if !summed[l] {
			output = append(output, l)
		}
	}
	return Network(ctx, EinsumOptions{Names: []string{"a", "b"}}, []*Array{a, b}, labels, output)
}

// Plan is how a contraction will be done: an order of pairwise steps, each
// lowered to a strided batched product, an elementwise product or a sum. It
// depends on the operands' shapes, strides and element type, not on their
// values, and is immutable.
type Plan struct {
	spec    string // what was planned, for planKey
	options EinsumOptions
	key     string
	problem *einsum.Problem
	path    *einsum.Path
	conj    int64 // bytes of copies of conjugated operands
}

// plans keeps the latest plans, keyed by all that they depend on and without
// their options: what a caller names and wants to be told is not kept alive.
var plans, _ = lru.New[string, *Plan](512) // fails only for sizes below 1

// PlanEinsum plans a contraction without doing it.
func PlanEinsum(o EinsumOptions, spec string, operands ...*Array) (*Plan, error) {
	return plan(o, operands, "e"+spec, func() (*einsum.Expr, error) {
		ranks := make([]int, len(operands))
		for i, a := range operands {
			ranks[i] = a.rank
		}
		return einsum.Parse(spec, ranks, o.Names...)
	})
}

// CheckEinsum says what is wrong with a specification for that many operands
// whatever they are.
func CheckEinsum(spec string, operands int) error {
	if operands < 0 {
		return weir.Argf("einsum", "%d operands; expected 0 or more", operands)
	}
	inputs, _, _ := strings.Cut(spec, "->")
	terms := strings.Split(inputs, ",")
	ranks := make([]int, operands)
	for i := range ranks {
		if i < len(terms) {
			ranks[i] = len([]rune(strings.NewReplacer(" ", "", ".", "").Replace(terms[i])))
		}
	}
	_, err := einsum.Parse(spec, ranks)
	return err
}

// PlanNetwork plans a contraction of a network without doing it.
func PlanNetwork(o EinsumOptions, operands []*Array, labels [][]int, output []int) (*Plan, error) {
	if err := uniform(o, operands); err != nil {
		return nil, err
	}
	if len(labels) != len(operands) {
		return nil, weir.Argf("tensor.Network", "labels for %d operands, and %d operands; expected as many", len(labels), len(operands))
	}
	for k, l := range labels {
		if len(l) != operands[k].rank {
			return nil, weir.Argf("tensor.Network", "%s has %d labels and rank %d; expected one for each axis", operandName(o, k), len(l), operands[k].rank)
		}
	}
	return plan(o, operands, fmt.Sprint("n", labels, output), func() (*einsum.Expr, error) {
		return einsum.FromLabels(labels, output, o.Names...)
	})
}

func plan(o EinsumOptions, operands []*Array, spec string, parse func() (*einsum.Expr, error)) (*Plan, error) {
	if err := uniform(o, operands); err != nil {
		return nil, err
	}
	if err := einsum.CheckNames(o.Names, len(operands)); err != nil { // a cached plan has been parsed under others
		return nil, err
	}
	if err := o.Precision.check("einsum"); err != nil {
		return nil, err
	}
	if o.MemoryLimit < 0 {
		return nil, weir.Argf("einsum", "memory limit %d bytes; expected 0 or more", o.MemoryLimit)
	}
	key := planKey(o, operands, spec)
	if p, ok := plans.Get(key); ok {
		q := *p
		q.options = o
		return &q, nil
	}
	expr, err := parse()
	if err != nil {
		return nil, err
	}
	p := &Plan{spec: spec, key: key}
	shapes, strides := make([][]int64, len(operands)), make([][]int64, len(operands))
	for i, a := range operands {
		l := a.layout
		if a.conj {
			l = rowMajor(a.shape())
			p.conj += a.Bytes()
		}
		// The plan outlives the operand.
		l = l.clone()
		shapes[i], strides[i] = l.shape(), l.strides()
	}
	if p.problem, err = expr.Bind(shapes, strides); err != nil {
		return nil, err
	}
	limit := o.MemoryLimit
	if limit > 0 {
		if limit -= p.conj; limit <= 0 {
			return nil, &weir.Error{Op: "einsum", Kind: weir.KindOutOfMemory, Err: weir.ErrOutOfMemory,
				Message: fmt.Sprintf("memory limit %d bytes; copies of conjugated operands alone need %d", o.MemoryLimit, p.conj)}
		}
	}
	if p.path, err = p.problem.Path(einsum.Options{DType: operands[0].dtype, MemoryLimit: limit, Order: o.Order}); err != nil {
		return nil, err
	}
	plans.Add(key, p)
	q := *p
	q.options = o
	return &q, nil
}

// uniform checks that the operands exist, on one device and of one type.
func uniform(o EinsumOptions, operands []*Array) error {
	if len(operands) == 0 {
		return weir.Argf("einsum", "no operands; expected at least one")
	}
	for i, a := range operands {
		if err := a.usable("einsum", operandName(o, i)); err != nil {
			return err
		}
		switch {
		case a.memory() != operands[0].memory():
			return apart("einsum", operandName(o, 0), operands[0], operandName(o, i), a)
		case a.dtype != operands[0].dtype:
			return weir.Argf("einsum", "%s is %v and %s is %v; convert one with tensor.AsType",
				operandName(o, 0), operands[0].dtype, operandName(o, i), a.dtype)
		}
	}
	return nil
}

func operandName(o EinsumOptions, i int) string {
	if i < len(o.Names) {
		return fmt.Sprintf("operand %d (%s)", i+1, o.Names[i])
	}
	return fmt.Sprintf("operand %d", i+1)
}

// planKey says all that a plan depends on.
func planKey(o EinsumOptions, operands []*Array, spec string) string {
	b := append(make([]byte, 0, 256), spec...)
	b = append(b, 0, byte(operands[0].dtype))
	b = binary.AppendVarint(b, o.MemoryLimit)
	for _, a := range operands {
		b = binary.AppendVarint(b, int64(a.rank))
		for i := range a.rank {
			b = binary.AppendVarint(b, a.shape()[i])
			b = binary.AppendVarint(b, a.strides()[i])
		}
		if a.conj {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	if o.Order != nil {
		b = append(b, 1)
		for _, p := range o.Order {
			b = binary.AppendVarint(b, int64(p[0]))
			b = binary.AppendVarint(b, int64(p[1]))
		}
	}
	return string(b)
}

// Run does the contraction. The operands must have the shapes, strides and
// element type, and lie on the kind of device, that were planned for; others are
// an ErrArgument.
func (p *Plan) Run(ctx context.Context, operands ...*Array) (*Array, error) {
	if err := uniform(p.options, operands); err != nil {
		return nil, err
	}
	if planKey(p.options, operands, p.spec) != p.key {
		return nil, weir.Argf("einsum", "the operands differ from the planned ones in number, shape, strides or element type; plan again")
	}
	return p.run(ctx, p.options.Progress, operands)
}

// Steps is the number of steps.
func (p *Plan) Steps() int { return len(p.path.Steps) }

// FLOPs is the number of floating-point operations, a multiplication and an
// addition being two, and four times as many for complex elements.
func (p *Plan) FLOPs() float64 { return p.path.FLOPs }

// PeakBytes is the most that intermediate results, copies and the result ask
// for at one time.
func (p *Plan) PeakBytes() int64 { return p.path.PeakBytes + p.conj }

// Shape is the shape of the result.
func (p *Plan) Shape() []int {
	out := p.problem.OutputShape()
	shape := make([]int, len(out))
	for i, n := range out {
		shape[i] = int(n)
	}
	return shape
}

// Explain writes the plan for people: each step with its extents, operations,
// size and memory, and the totals.
func (p *Plan) Explain(w io.Writer) error { return p.path.Explain(w) }

// String is what Explain writes.
func (p *Plan) String() string { return p.path.String() }
