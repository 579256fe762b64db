package einsum

import (
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

// Options says what a path has to respect.
type Options struct {
	// DType is the element type, of the operands and of every result.
	DType dtype.DType
	// MemoryLimit bounds PeakBytes; 0 sets no limit.
	MemoryLimit int64
	// Order, where it is not nil, is the order to use instead of a search: for
	// n operands n-1 pairs of terms. Terms below n are the operands, term n+k
	// is the product of pair k.
	Order [][2]int
}

// Path is a complete plan. The result of its last step is the output.
type Path struct {
	Steps       []Step
	FLOPs       float64 // of all steps
	NaiveFLOPs  float64 // of one sum over all indices at once
	PeakBytes   int64   // the largest of the steps'
	Largest     int64   // elements of the largest result
	Search      string  // how the order was found, for people
	MemoryLimit int64   // as asked for
	DType       dtype.DType

	problem *Problem
	exact   bool // no order has a lower peak, if this one exceeds the limit
}

// Path finds the order of products with the fewest flops, and of several such
// the one with the lowest peak of memory; with a memory limit, the one with the
// fewest flops among those within it. Up to 12 operands the order is the best
// of all trees; beyond, it is the best that a bounded search finds. Up to 6
// operands the search under a limit is exact as well.
//
// When no order within the limit is found the error matches
// weir.ErrOutOfMemory and names the lowest limit that is known to do.
func (p *Problem) Path(opts Options) (*Path, error) {
	if !opts.DType.Valid() {
		return nil, weir.Argf(op, "dtype: got %v; expected a declared element type", opts.DType)
	}
	if opts.MemoryLimit < 0 {
		return nil, weir.Argf(op, "memory limit: got %d bytes; expected zero, for none, or more", opts.MemoryLimit)
	}
	b := &builder{lowering{p, opts.DType.Size(), 1}, opts}
	if opts.DType.IsComplex() {
		b.scale = 4
	}
	if opts.Order != nil {
		if err := checkOrder(opts.Order, len(p.inputs)); err != nil {
			return nil, err
		}
		return b.within(b.build(opts.Order, nil, "given"))
	}
	switch len(p.inputs) {
	case 1:
		return b.within(b.build(nil, nil, "one operand"))
	case 2:
		return b.within(b.build([]pair{{0, 1}}, nil, "one product"))
	}
	return b.search()
}

// checkOrder checks that an order uses every term once.
func checkOrder(order []pair, operands int) error {
	if len(order) != operands-1 {
		return weir.Argf(op, "order: got %d pairs; expected %d for %d operands", len(order), operands-1, operands)
	}
	used := make([]bool, operands+len(order))
	for k, pair := range order {
		for _, t := range pair {
			if t < 0 || t >= operands+k {
				return weir.Argf(op, "order: pair %d names term %d; expected a term from 0 to %d", k+1, t, operands+k-1)
			}
			if used[t] {
				return weir.Argf(op, "order: pair %d names term %d, which is used up; expected each term once", k+1, t)
			}
			used[t] = true
		}
	}
	return nil
}

// limit is the peak that a path must not exceed. No path may reach tooMany.
func (o Options) limit() int64 {
	if o.MemoryLimit == 0 {
		return tooMany - 1
	}
	return min(o.MemoryLimit, tooMany-1)
}

// within returns the path if it keeps the limit, and else an error that names
// the limit it would need and the step that needs it.
func (b *builder) within(path *Path) (*Path, error) {
	limit := b.opts.limit()
	if path.PeakBytes <= limit {
		return path, nil
	}
	worst := 0
	for k, s := range path.Steps {
		if s.PeakBytes > path.Steps[worst].PeakBytes {
			worst = k
		}
	}
	known := "the lowest that was found"
	if path.exact {
		known = "the lowest of all orders"
	}
	if b.opts.Order != nil {
		known = "for the given order"
	}
	message := fmt.Sprintf("memory limit: got %s; expected at least %s, %s, for step %d of %d, %s",
		bytesExactly(b.opts.MemoryLimit), bytesExactly(path.PeakBytes), known, worst+1, len(path.Steps), path.Subscripts(worst))
	if path.PeakBytes == tooMany {
		message = fmt.Sprintf("step %d of %d, %s: needs 2^63-1 bytes or more, in the best order that was found; expected fewer",
			worst+1, len(path.Steps), path.Subscripts(worst))
	}
	return nil, &weir.Error{Op: op, Kind: weir.KindOutOfMemory, Message: message, Err: weir.ErrOutOfMemory}
}
