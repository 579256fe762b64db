package tensor

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/x448/float16"
)

const (
	printWhole = 1000  // arrays of more elements are abbreviated
	printEdge  = 3     // places shown at each end of an abbreviated axis
	printMost  = 20000 // of an array with more even when abbreviated, none is shown
	printWidth = 76    // columns of a line
)

// Format waits for a and renders its type, shape, device and elements, as
// NumPy does: the innermost axis along the line, aligned; of large arrays only
// the three first and last places of each axis, so that no more than those are
// copied from the device.
func Format(ctx context.Context, a *Array) (string, error) {
	if err := sameDevice("tensor.Format", namesA, a); err != nil {
		return "", err
	}
	head := fmt.Sprintf("%s on %s", a.describe(), a.Device())
	if abbreviated(a) > printMost {
		return fmt.Sprintf("%s\n[... %d elements in %d axes ...]", head, a.size(), a.rank), nil
	}
	edges, cut, err := edges(ctx, a)
	if err != nil {
		return "", err
	}
	if edges != a {
		defer edges.Free()
	}
	words, err := words(ctx, edges)
	if err != nil {
		return "", err
	}
	if a.size() == 0 {
		return head + "\n[]", nil
	}
	p := printer{shape: edges.shape(), cut: cut, words: words}
	for _, w := range words {
		p.width = max(p.width, len([]rune(w)))
	}
	p.axis(0, 0)
	return head + "\n" + p.b.String(), nil
}

// String is Format without a context, for fmt; it waits for the array. What
// goes wrong is part of the text.
func (a *Array) String() string {
	if a == nil {
		return "nil array"
	}
	if a.none() {
		return "zero Array"
	}
	text, err := Format(context.Background(), a)
	if err != nil {
		return fmt.Sprintf("%s (%v)", a.describe(), err)
	}
	return text
}

// abbreviated is how many elements of a are shown.
func abbreviated(a *Array) int64 {
	if a.size() <= printWhole {
		return a.size()
	}
	n := int64(1)
	for _, x := range a.shape() {
		if n *= min(x, 2*printEdge); n > printMost {
			break
		}
	}
	return n
}

// edges answers a itself if it is small, else a copy in which every long axis
// has only its ends; cut says which axes those are.
func edges(ctx context.Context, a *Array) (*Array, []bool, error) {
	cut := make([]bool, a.rank)
	if a.size() <= printWhole {
		return a, cut, nil
	}
	shape := append([]int64(nil), a.shape()...)
	for i, n := range shape {
		if n > 2*printEdge {
			shape[i], cut[i] = 2*printEdge, true
		}
	}
	ctx = unscoped(ctx)
	out, err := emptyOn(ctx, "tensor.Format", a.memory(), a.dtype, shape)
	if err != nil {
		return nil, nil, err
	}
	// Each combination of first and last ends is one block.
	err = eachEnd(cut, func(last []bool) error {
		from, to := make([]Index, a.rank), make([]Index, a.rank)
		for i, n := range a.Shape() {
			switch {
			case !cut[i]:
				from[i], to[i] = All(), All()
			case last[i]:
				from[i], to[i] = Span(n-printEdge, n), Span(printEdge, 2*printEdge)
			default:
				from[i], to[i] = Span(0, printEdge), Span(0, printEdge)
			}
		}
		src, err := a.Slice(from...)
		if err != nil {
			return err
		}
		dst, err := out.Slice(to...)
		if err != nil {
			return err
		}
		return convertInto(ctx, dst, src)
	})
	out, err = made(out, err)
	return out, cut, err
}

// eachEnd calls do for every choice of an end of the axes in cut.
func eachEnd(cut []bool, do func(last []bool) error) error {
	last := make([]bool, len(cut))
	for {
		if err := do(last); err != nil {
			return err
		}
		i := 0
		for ; i < len(cut); i++ {
			if !cut[i] {
				continue
			}
			if last[i] = !last[i]; last[i] {
				break
			}
		}
		if i == len(cut) {
			return nil
		}
	}
}

// words renders every element of a.
func words(ctx context.Context, a *Array) ([]string, error) {
	switch a.dtype {
	case Float32:
		return render(ctx, a, func(x float32) string { return number(float64(x), 32) })
	case Float64:
		return render(ctx, a, func(x float64) string { return number(x, 64) })
	case Int32:
		return render(ctx, a, func(x int32) string { return strconv.FormatInt(int64(x), 10) })
	case Int64:
		return render(ctx, a, func(x int64) string { return strconv.FormatInt(x, 10) })
	case Complex64:
		return render(ctx, a, func(x complex64) string { return complexNumber(complex128(x), 32) })
	case Complex128:
		return render(ctx, a, func(x complex128) string { return complexNumber(x, 64) })
	case Float16:
		return render(ctx, a, func(x float16.Float16) string { return number(float64(x.Float32()), 32) })
	}
	return render(ctx, a, func(x BF16) string { return number(float64(x.Float32()), 32) })
}

func render[T Element](ctx context.Context, a *Array, word func(T) string) ([]string, error) {
	data, err := Data[T](ctx, a)
	if err != nil {
		return nil, err
	}
	words := make([]string, len(data))
	for i, x := range data {
		words[i] = word(x)
	}
	return words, nil
}

// number shows up to 8 significant digits: all that a float32 has.
func number(x float64, bits int) string {
	if math.IsNaN(x) {
		return "NaN"
	}
	shortest := strconv.FormatFloat(x, 'g', -1, bits)
	if rounded := strconv.FormatFloat(x, 'g', 8, bits); len(rounded) < len(shortest) {
		return rounded
	}
	return shortest
}

func complexNumber(z complex128, bits int) string {
	im := number(imag(z), bits)
	if !strings.HasPrefix(im, "-") && !strings.HasPrefix(im, "+") {
		im = "+" + im
	}
	return number(real(z), bits) + im + "i"
}

// printer writes nested brackets.
type printer struct {
	shape []int64
	cut   []bool
	words []string
	width int
	next  int
	b     strings.Builder
}

func (p *printer) axis(axis, indent int) {
	if axis == len(p.shape) {
		p.word()
		return
	}
	p.b.WriteByte('[')
	last := axis == len(p.shape)-1
	column := indent + 1
	for i := range p.shape[axis] {
		if p.cut[axis] && i == printEdge {
			if last {
				p.b.WriteString(" ...")
				column += 4
			} else {
				p.b.WriteString("\n" + strings.Repeat(" ", indent+1) + "...")
			}
		}
		switch {
		case i == 0:
		case !last:
			p.b.WriteString(strings.Repeat("\n", len(p.shape)-axis-1) + strings.Repeat(" ", indent+1))
		case column+1+p.width > printWidth:
			p.b.WriteString("\n" + strings.Repeat(" ", indent+1))
			column = indent + 1
		default:
			p.b.WriteByte(' ')
			column++
		}
		p.axis(axis+1, indent+1)
		column += p.width
	}
	p.b.WriteByte(']')
}

func (p *printer) word() {
	w := p.words[p.next]
	p.next++
	p.b.WriteString(strings.Repeat(" ", p.width-len([]rune(w))) + w)
}
