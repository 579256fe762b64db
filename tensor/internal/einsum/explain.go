package einsum

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Subscripts is step k as an expression of its own, as "ab,bc->ac".
func (p *Path) Subscripts(k int) string {
	var b strings.Builder
	s := p.Steps[k]
	p.problem.subscripts(&b, p, s.Left)
	if s.Right >= 0 {
		b.WriteByte(',')
		p.problem.subscripts(&b, p, s.Right)
	}
	b.WriteString("->")
	p.problem.expr.subscripts(&b, s.Out)
	return b.String()
}

// subscripts writes the indices of term t: of an operand, its axes but those
// of extent 1; of a result, the order in which it is written.
func (p *Problem) subscripts(b *strings.Builder, path *Path, t int) {
	if n := len(p.inputs); t >= n {
		p.expr.subscripts(b, path.Steps[t-n].Out)
		return
	}
	for _, i := range p.expr.inputs[t] {
		if slices.Contains(p.inputs[t].Indices, i) {
			b.WriteRune(p.expr.symbols[i])
		}
	}
}

// String is what Explain writes.
func (p *Path) String() string {
	var b strings.Builder
	_ = p.Explain(&b) // a strings.Builder doesn't fail
	return b.String()
}

// Explain writes the plan for people: each step with the numbers of its terms,
// its extents and flops, the size of its result, the memory that is live while
// it runs, and the terms that are packed; then totals, next to those of one sum
// over all indices. It returns the writer's error.
//
// Extents are those of the step's groups: "batch of rows x columns sum
// contracted" for a product; kept and summed elements for a reduction. An index
// twice in an operand is a diagonal, taken as a view.
func (p *Path) Explain(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	e := p.problem.expr
	fmt.Fprintf(t, "%s, %d operands of %v\n", e, len(e.inputs), p.DType)
	p.problem.legend(t)
	fmt.Fprint(t, "step\tterms\tcontraction\textents\tflops\tresult\tlive\tcopies\n")
	for k, s := range p.Steps {
		terms := fmt.Sprint(s.Left)
		if s.Right >= 0 {
			terms += fmt.Sprintf(" %d", s.Right)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k+1, terms, p.Subscripts(k), p.problem.shapeOf(s),
			count(s.FLOPs), size(s.OutBytes), size(s.PeakBytes), copies(s))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(t, "found by\t%s\n", p.Search)
	fmt.Fprintf(t, "flops\t%s; one sum over all indices %s%s\n", count(p.FLOPs), count(p.NaiveFLOPs), p.speedUp())
	fmt.Fprintf(t, "largest result\t%s elements, %s\n", count(float64(p.Largest)), size(mul(p.Largest, p.DType.Size())))
	limit := "no limit"
	if p.MemoryLimit > 0 {
		limit = "limit " + size(p.MemoryLimit)
	}
	fmt.Fprintf(t, "peak memory\t%s; %s\n", size(p.PeakBytes), limit)
	return t.Flush()
}

// legend says which letters stand for an ellipsis' axes, and which indices have
// extent 1 and so appear in no step.
func (p *Problem) legend(w io.Writer) {
	e := p.expr
	var b strings.Builder
	if len(e.ellipsis) > 0 {
		e.subscripts(&b, e.ellipsis)
		fmt.Fprintf(w, "'...' is %s\n", b.String())
	}
	b.Reset()
	for i, n := range p.extents {
		if n == 1 {
			b.WriteRune(e.symbols[i])
		}
	}
	if b.Len() > 0 {
		fmt.Fprintf(w, "of extent 1, left out: %s\n", b.String())
	}
}

func (p *Problem) shapeOf(s Step) string {
	n := func(group []int) string {
		size := 1.0
		for _, i := range group {
			size = scale(size, float64(p.extents[i]))
		}
		return count(size)
	}
	if s.Kind == Reduce {
		return n(s.Out) + " sum " + n(s.Summed)
	}
	text := n(s.LeftFree) + "x" + n(s.RightFree)
	if len(s.Batch) > 0 {
		text = n(s.Batch) + " of " + text
	}
	if s.Kind == Product {
		text += " sum " + n(s.Contracted)
	}
	return text
}

// copies names the terms that a step packs.
func copies(s Step) string {
	var names []string
	for _, c := range []struct {
		packed bool
		name   string
	}{{s.PackLeft, "left"}, {s.PackRight, "right"}, {s.PackOut, "result"}} {
		if c.packed {
			names = append(names, c.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}

func (p *Path) speedUp() string {
	if p.FLOPs == 0 {
		return ""
	}
	return fmt.Sprintf(", %s times as many", count(p.NaiveFLOPs/p.FLOPs))
}
