package grad

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// Einsum is flow.Einsum: sums of products of elements over indices. The step back
// to an operand is an Einsum of the cotangent and the others' conjugates, repeated
// along indices that only the operand has, on the diagonal where it has an index
// twice, and summed where it was stretched. Ellipses are allowed.
//
//go:noinline
func Einsum(ctx context.Context, spec string, operands ...*Node) *Node {
	return einsumAt(ctx, callers.At(callers.PCs()), "flow.Einsum", tensor.EinsumOptions{}, spec, slices.Clone(operands))
}

// EinsumWith is Einsum with options. Steps back keep the memory limit and the
// precision; order, names and progress are for the step forward.
//
//go:noinline
func EinsumWith(ctx context.Context, o tensor.EinsumOptions, spec string, operands ...*Node) *Node {
	return einsumAt(ctx, callers.At(callers.PCs()), "flow.EinsumWith", o, spec, slices.Clone(operands))
}

func einsumAt(ctx context.Context, at callers.Site, name string, o tensor.EinsumOptions, spec string, operands []*Node) *Node {
	in := make([]*flow.Value, len(operands))
	for k, n := range operands {
		in[k] = n.Value()
	}
	y := &Node{parents: operands, value: flow.ApplyAt(ctx, at, name, func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
		return tensor.EinsumWith(ctx, o, spec, in...)
	}, in...)}
	back := tensor.EinsumOptions{MemoryLimit: o.MemoryLimit, Precision: o.Precision}
	y.back = func(ctx context.Context, k int, cotangent *Node) *Node {
		if tensor.CheckEinsum(spec, len(operands)) != nil {
			return Leaf(y.value) // poisoned
		}
		terms, output := parse(spec)
		factors, from := []*Node{cotangent}, []string{output}
		for i, n := range operands {
			if i != k {
				factors, from = append(factors, conjugate.apply(ctx, at, n)), append(from, terms[i])
			}
		}
		to := reached(terms[k], from)
		x := cotangent
		if len(factors) > 1 || to != output {
			reverse := strings.ReplaceAll(strings.Join(from, ",")+"->"+to, string(dots), "...")
			x = einsumAt(ctx, at, "grad.Einsum", back, reverse, factors)
		}
		return spread(to, terms[k]).apply(ctx, at, x, operands[k].value)
	}
	return y
}

// dots is an ellipsis in what parse answers.
const dots = '.'

// parse divides a specification that CheckEinsum finds nothing wrong with into its
// terms, and writes out the output.
func parse(spec string) (terms []string, output string) {
	spec = strings.NewReplacer(" ", "", "...", string(dots)).Replace(spec)
	inputs, output, explicit := strings.Cut(spec, "->")
	terms = strings.Split(inputs, ",")
	if explicit {
		return terms, output
	}
	all := []rune(strings.Join(terms, ""))
	slices.Sort(all) // dots come before letters
	for i, r := range all {
		first, last := i == 0 || all[i-1] != r, i == len(all)-1 || all[i+1] != r
		if first && (last || r == dots) {
			output += string(r)
		}
	}
	return terms, output
}

// reached is the term of what the others know of an operand: their ellipsis, if
// from[0] has it, and the indices of its term that they have, each once.
func reached(term string, from []string) string {
	var to strings.Builder
	if strings.ContainsRune(from[0], dots) {
		to.WriteRune(dots)
	}
	others := strings.Join(from, "")
	for i, r := range term {
		if r != dots && strings.ContainsRune(others, r) && !strings.ContainsRune(term[:i], r) {
			to.WriteRune(r)
		}
	}
	return to.String()
}

// spread is the pair that takes an array with the axes of one term to the shape of
// an operand with those of another: it repeats along the indices that are new, sums
// over ellipsis axes that the operand lacks and those where it has extent 1, and
// puts onto the diagonal what has an index twice.
func spread(from, to string) pair {
	return pair{
		linear{"grad.Einsum", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			x, operand := in[0], in[1]
			labels := labelsOf(to, operand.Rank())
			view := func(a *tensor.Array) (*tensor.Array, error) {
				v, _, err := diagonal(a, labels)
				return v, err
			}
			v, unique, err := diagonal(operand, labels)
			if err != nil {
				return nil, err
			}
			x, err = relabel(ctx, x, labelsOf(from, x.Rank()), unique, v.Shape())
			if err != nil || len(unique) == len(labels) {
				return x, err
			}
			return scatter(ctx, x, operand, view)
		}},
		linear{"grad.Einsum", func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
			c, x, operand := in[0], in[1], in[2]
			v, unique, err := diagonal(c, labelsOf(to, operand.Rank()))
			if err != nil {
				return nil, err
			}
			return relabel(ctx, v, unique, labelsOf(from, x.Rank()), x.Shape())
		}},
	}
}

// labelsOf labels the axes of an array of a rank by a term: with the letters, and
// those of the ellipsis from the last.
func labelsOf(term string, rank int) []int {
	var labels []int
	for _, r := range term {
		if r == dots {
			labels = append(labels, fromLast(rank-utf8.RuneCountInString(term)+1)...)
		} else {
			labels = append(labels, int(r))
		}
	}
	return labels
}
