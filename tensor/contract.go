package tensor

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/tensor/internal/einsum"
)

// term is an operand of a plan or a result of one of its steps: an array, and
// how the plan's indices lie in its memory.
type term struct {
	array *Array
	lies  einsum.Layout
	ours  bool // to be freed when it has been used
}

// execution runs a plan once.
type execution struct {
	*Plan
	ctx   context.Context // without the caller's scope: terms are freed here
	outer context.Context // with it, for the result
	terms []term
}

// run does the steps in order. Every step is submitted with a lease of its own;
// a step's terms are freed, in stream order, as soon as it is submitted, which
// is what the plan's memory counts on.
func (p *Plan) run(ctx context.Context, progress func(done, total int), operands []*Array) (out *Array, err error) {
	x := &execution{Plan: p, ctx: unscoped(ctx), outer: ctx}
	defer func() {
		for _, t := range x.terms {
			if t.ours {
				err = join(err, t.array.Free())
			}
		}
	}()
	for k, a := range operands {
		t := term{array: a, lies: p.problem.Input(k)}
		if a.conj {
			if t.array, err = compact(x.ctx, a); err != nil {
				return nil, err
			}
			t.ours = true
		}
		x.terms = append(x.terms, t)
	}
	steps := p.path.Steps
	for k := range steps {
		last := k == len(steps)-1
		if out, err = x.step(&steps[k], last); err != nil {
			return nil, err
		}
		x.terms = append(x.terms, term{array: out, lies: p.problem.Contiguous(steps[k].Out), ours: !last})
		for _, used := range [...]int{steps[k].Left, steps[k].Right} {
			if used < 0 || !x.terms[used].ours {
				continue
			}
			x.terms[used].ours = false
			if err := x.terms[used].array.Free(); err != nil {
				return nil, join(err, out.Free())
			}
		}
		if progress != nil {
			progress(k+1, len(steps))
		}
	}
	out.layout = rowMajor(p.problem.OutputShape())
	return out, nil
}

// step submits one step and answers its result.
func (x *execution) step(s *einsum.Step, last bool) (*Array, error) {
	ctx := x.ctx
	if last {
		ctx = x.outer
	}
	left := x.terms[s.Left]
	out, err := emptyOn(ctx, "einsum", left.array.memory(), left.array.dtype, x.extents(s.Out))
	if err != nil || out.size() == 0 {
		return out, err
	}
	if left.array.size() == 0 || s.Kind != einsum.Reduce && x.terms[s.Right].array.size() == 0 {
		return made(out, clearAll(x.ctx, out)) // sums of nothing
	}
	switch s.Kind {
	case einsum.Reduce:
		err = x.reduce(s, left, out)
	case einsum.Multiply:
		err = x.multiply(s, left, x.terms[s.Right], out)
	default:
		err = x.product(s, left, x.terms[s.Right], out)
	}
	return made(out, err)
}

func (x *execution) extents(indices []int) []int64 {
	shape := make([]int64, len(indices))
	for i, index := range indices {
		shape[i] = x.problem.Extent(index)
	}
	return shape
}

// as is t's array with its axes in the order of indices; those that t lacks
// repeat.
func (x *execution) as(t term, indices ...int) *Array {
	strides := make([]int64, len(indices))
	for i, index := range indices {
		if slices.Contains(t.lies.Indices, index) {
			strides[i] = t.lies.Stride(index)
		}
	}
	return t.array.with(layoutOf(x.extents(indices), strides), t.array.offset)
}

func (x *execution) reduce(s *einsum.Step, left term, out *Array) error {
	op := driver.KernelSum
	if len(s.Summed) == 0 {
		op = driver.KernelCopy
	}
	from := x.as(left, slices.Concat(s.Out, s.Summed)...)
	return onStream(x.ctx, out, func(o *operation) error {
		to, at := o.acc.Write(out.Buffer()), o.acc.Read(from.Buffer())
		return o.launch(&driver.Kernel{Op: op, Out: out.view(to), A: from.view(at)})
	}, from)
}

func (x *execution) multiply(s *einsum.Step, left, right term, out *Array) error {
	a, b := x.as(left, s.Out...), x.as(right, s.Out...)
	return onStream(x.ctx, out, func(o *operation) error {
		to, atA, atB := o.acc.Write(out.Buffer()), o.acc.Read(a.Buffer()), o.acc.Read(b.Buffer())
		return o.launch(&driver.Kernel{Op: driver.KernelMul, Out: out.view(to), A: a.view(atA), B: b.view(atB)})
	}, a, b)
}

// product lowers a step to one strided batched product, packing what the plan
// says.
func (x *execution) product(s *einsum.Step, left, right term, out *Array) error {
	if s.PackLeft {
		packed, err := x.pack(left, s.Batch, s.LeftFree, s.Contracted)
		if err != nil {
			return err
		}
		defer packed.array.Free()
		left = packed
	}
	if s.PackRight {
		packed, err := x.pack(right, s.Batch, s.Contracted, s.RightFree)
		if err != nil {
			return err
		}
		defer packed.array.Free()
		right = packed
	}
	result := term{array: out, lies: x.problem.Contiguous(s.Out)}
	if s.PackOut {
		order := slices.Concat(s.Batch, s.LeftFree, s.RightFree)
		a, err := emptyOn(x.ctx, "einsum", out.memory(), out.dtype, x.extents(order))
		if err != nil {
			return err
		}
		defer a.Free()
		result = term{array: a, lies: x.problem.Contiguous(order)}
	}
	p := product{op: "einsum", alpha: 1, precision: x.options.Precision, unpacked: true}
	var batches [3]einsum.Axis
	p.a, batches[0] = x.matrix(left, s.Batch, s.LeftFree, s.Contracted)
	p.b, batches[1] = x.matrix(right, s.Batch, s.Contracted, s.RightFree)
	p.c, batches[2] = x.matrix(result, s.Batch, s.LeftFree, s.RightFree)
	p.batch = []batchAxis{{n: batches[2].Extent, a: batches[0].Stride, b: batches[1].Stride, c: batches[2].Stride}}
	if err := p.run(x.ctx); err != nil || !s.PackOut {
		return err
	}
	return convertInto(x.ctx, out, x.as(result, s.Out...))
}

// pack copies a term to the order of three groups.
func (x *execution) pack(t term, groups ...[]int) (term, error) {
	order := slices.Concat(groups...)
	a, err := compact(x.ctx, x.as(t, order...))
	return term{array: a, lies: x.problem.Contiguous(order)}, err
}

// matrix is a term, which the plan found fit, as a batch of matrices.
func (x *execution) matrix(t term, batch, rows, cols []int) (matrix, einsum.Axis) {
	m, ok := x.problem.Matrix(t.lies, batch, rows, cols)
	if !ok {
		panic(fmt.Sprintf("einsum: indices %v, %v, %v of a term that lies as %v are no matrices", batch, rows, cols, t.lies))
	}
	return matrix{array: t.array, offset: t.array.offset, rows: m.Rows.Extent, cols: m.Cols.Extent,
		rs: m.Rows.Stride, cs: m.Cols.Stride}, m.Batch
}
