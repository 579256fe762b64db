package einsum

import "fmt"

// failer is what tests, benchmarks and rapid's checks have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// array is an operand of a test: strided elements in a buffer.
type array struct {
	data    []float64
	offset  int64
	shape   []int64
	strides []int64 // nil: row-major
}

// contiguous makes a row-major operand.
func contiguous(shape []int64, data []float64) array { return array{data: data, shape: shape} }

// walk calls visit for each point of the extents.
func walk(extents []int64, visit func(point []int64)) {
	for _, n := range extents {
		if n == 0 {
			return
		}
	}
	point := make([]int64, len(extents))
	for {
		visit(point)
		k := len(point) - 1
		for ; k >= 0; k-- {
			if point[k]++; point[k] < extents[k] {
				break
			}
			point[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// sum evaluates the definition: for each point of all indices it adds the
// product of the operands' elements to one element of the output. It knows
// nothing of views, paths or the planner's layouts.
func sum(p *Problem, operands []array) []float64 {
	result := make([]float64, product(p.shape))
	walk(p.extents, func(point []int64) {
		value := 1.0
		for k, in := range p.expr.inputs {
			a := operands[k]
			at, step := a.offset, int64(1)
			for axis := len(in) - 1; axis >= 0; axis-- {
				stride := step
				if a.strides != nil {
					stride = a.strides[axis]
				}
				step *= a.shape[axis]
				if a.shape[axis] != 1 {
					at += point[in[axis]] * stride
				}
			}
			value *= a.data[at]
		}
		at := int64(0)
		for axis, i := range p.expr.output {
			at = at*p.shape[axis] + point[i]
		}
		result[at] += value
	})
	return result
}

// held is a term while a path runs.
type held struct {
	layout Layout
	data   []float64
	offset int64
	bytes  int64 // held by the path
}

// machine runs a path as an executor does, product steps through Matrix alone,
// and checks on the way what the path says of copies, memory and flops.
type machine struct {
	t     failer
	p     *Problem
	size  int64
	terms []held
	flops float64
	peak  int64
}

func run(t failer, path *Path, operands []array) []float64 {
	m := &machine{t: t, p: path.problem, size: path.DType.Size()}
	for k, a := range operands {
		m.terms = append(m.terms, held{m.p.Input(k), a.data, a.offset, 0})
	}
	var flops float64
	var peak int64
	for k, s := range path.Steps {
		before := m.flops
		live := int64(0)
		for _, h := range m.terms {
			live += h.bytes
		}
		m.peak = live
		out := held{layout: m.p.Contiguous(s.Out), data: m.alloc(s.Out)}
		out.bytes = int64(len(out.data)) * m.size
		m.step(s, out)
		m.terms[s.Left] = held{}
		if s.Right >= 0 {
			m.terms[s.Right] = held{}
		}
		m.terms = append(m.terms, out)
		if s.OutBytes != out.bytes {
			t.Fatalf("step %d: result has %d bytes, the path says %d", k+1, out.bytes, s.OutBytes)
		}
		if s.PeakBytes != m.peak {
			t.Fatalf("step %d: %d bytes were live, the path says %d", k+1, m.peak, s.PeakBytes)
		}
		if s.FLOPs != m.flops-before {
			t.Fatalf("step %d: %v flops were done, the path says %v", k+1, m.flops-before, s.FLOPs)
		}
		flops += s.FLOPs
		peak = max(peak, s.PeakBytes)
	}
	if path.FLOPs != flops || path.PeakBytes != peak {
		t.Fatalf("the steps have %v flops and a peak of %d; the path says %v and %d", flops, peak, path.FLOPs, path.PeakBytes)
	}
	return m.terms[len(m.terms)-1].data
}

// alloc makes elements for a result or a packed copy and counts them.
func (m *machine) alloc(indices []int) []float64 {
	n := product(m.extents(indices))
	m.peak += n * m.size
	return make([]float64, n)
}

func (m *machine) extents(indices []int) []int64 {
	extents := make([]int64, len(indices))
	for k, i := range indices {
		extents[k] = m.p.Extent(i)
	}
	return extents
}

// at is the element of h at a point of these indices, others left out.
func (h held) at(indices []int, point []int64) *float64 {
	at := h.offset
	for k, i := range h.layout.Indices {
		for j, other := range indices {
			if i == other {
				at += point[j] * h.layout.Strides[k]
			}
		}
	}
	return &h.data[at]
}

func (m *machine) step(s Step, out held) {
	left := m.terms[s.Left]
	switch s.Kind {
	case Reduce:
		all := append(append([]int{}, s.Out...), s.Summed...)
		walk(m.extents(all), func(point []int64) {
			*out.at(all, point) += *left.at(all, point)
			if len(s.Summed) > 0 {
				m.flops++
			}
		})
	case Multiply:
		right := m.terms[s.Right]
		walk(m.extents(s.Out), func(point []int64) {
			*out.at(s.Out, point) = *left.at(s.Out, point) * *right.at(s.Out, point)
			m.flops++
		})
	case Product:
		m.product(s, left, m.terms[s.Right], out)
	}
}

func (m *machine) product(s Step, left, right, out held) {
	if product(m.extents(left.layout.Indices)) == 0 || product(m.extents(right.layout.Indices)) == 0 {
		if s.PackLeft || s.PackRight || s.PackOut {
			m.t.Fatalf("step packs although an operand is empty: %+v", s)
		}
		return
	}
	a, left := m.operand(left, s.PackLeft, s.Batch, s.LeftFree, s.Contracted)
	b, right := m.operand(right, s.PackRight, s.Batch, s.Contracted, s.RightFree)
	order := concat(s.Batch, s.LeftFree, s.RightFree)
	target := out
	if s.PackOut {
		target = held{layout: m.p.Contiguous(order), data: m.alloc(order)}
	}
	c, ok := m.p.Matrix(target.layout, s.Batch, s.LeftFree, s.RightFree)
	if !ok {
		m.t.Fatalf("result of %+v can't be written by GEMM", s)
	}
	if a.Rows.Extent != c.Rows.Extent || a.Cols.Extent != b.Rows.Extent || b.Cols.Extent != c.Cols.Extent ||
		a.Batch.Extent != b.Batch.Extent || a.Batch.Extent != c.Batch.Extent {
		m.t.Fatalf("GEMM extents don't agree: %+v times %+v to %+v", a, b, c)
	}
	for n := range a.Batch.Extent {
		for r := range a.Rows.Extent {
			for col := range b.Cols.Extent {
				for k := range a.Cols.Extent {
					target.data[target.offset+n*c.Batch.Stride+r*c.Rows.Stride+col*c.Cols.Stride] +=
						left.data[left.offset+n*a.Batch.Stride+r*a.Rows.Stride+k*a.Cols.Stride] *
							right.data[right.offset+n*b.Batch.Stride+k*b.Rows.Stride+col*b.Cols.Stride]
					m.flops += 2
				}
			}
		}
	}
	if s.PackOut {
		walk(m.extents(order), func(point []int64) { *out.at(order, point) = *target.at(order, point) })
	}
}

// operand packs a term if the step says so, which must be if and only if
// Matrix refuses it.
func (m *machine) operand(h held, pack bool, batch, rows, cols []int) (Matrix, held) {
	matrix, ok := m.p.Matrix(h.layout, batch, rows, cols)
	if pack == ok {
		m.t.Fatalf("step packs: %v; Matrix takes the operand: %v", pack, ok)
	}
	if pack {
		order := concat(batch, rows, cols)
		packed := held{layout: m.p.Contiguous(order), data: m.alloc(order)}
		walk(m.extents(order), func(point []int64) { *packed.at(order, point) = *h.at(order, point) })
		h = packed
		if matrix, ok = m.p.Matrix(h.layout, batch, rows, cols); !ok {
			m.t.Fatalf("packed operand can't be read by GEMM")
		}
	}
	gemmTakes(m.t, matrix)
	return matrix, h
}

// gemmTakes checks what BLAS asks of an operand.
func gemmTakes(t failer, m Matrix) {
	rows, cols := m.Rows, m.Cols
	rowMajor := (cols.Extent == 1 || cols.Stride == 1) && (rows.Extent == 1 || rows.Stride >= cols.Extent)
	colMajor := (rows.Extent == 1 || rows.Stride == 1) && (cols.Extent == 1 || cols.Stride >= rows.Extent)
	if !rowMajor && !colMajor || m.Batch.Stride < 0 {
		t.Fatalf("GEMM can't take %+v", m)
	}
}

func concat(groups ...[]int) []int {
	var all []int
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// same compares results of integers, which are exact.
func same(got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("got %d elements, want %d", len(got), len(want))
	}
	for k := range want {
		if got[k] != want[k] {
			return fmt.Errorf("element %d: got %v, want %v", k, got[k], want[k])
		}
	}
	return nil
}
