package einsum

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirgo/weir"
)

// dots stands for an ellipsis among the letters of a term.
const dots rune = -1

// Parse reads an expression in the notation of numpy.einsum for operands of
// these ranks: "ij,jk->ik", "ii" (a trace), "ij->ji", "...ij,...jk". Without
// "->" the output has the ellipsis' axes and then the indices that occur once,
// by code point. Spaces are ignored, but not within "..." and "->". Any letter
// is an index. Names of the operands, for messages, are optional.
func Parse(spec string, ranks []int, names ...string) (*Expr, error) {
	if err := CheckNames(names, len(ranks)); err != nil {
		return nil, err
	}
	terms, output, explicit, err := scan(spec)
	if err != nil {
		return nil, err
	}
	if len(terms) != len(ranks) {
		return nil, weir.Argf(op, "operands: got %d; expected %d, one for each term of %q", len(ranks), len(terms), spec)
	}
	e := &Expr{names: names}
	ids := make(map[rune]int)
	if err := e.bindTerms(terms, ranks, ids); err != nil {
		return nil, err
	}
	if !explicit {
		output = implicitOutput(terms)
	}
	if err := e.bindOutput(output, ids); err != nil {
		return nil, err
	}
	e.text = write(terms, output)
	return e, nil
}

// scan splits a specification into its terms, each a list of letters and at
// most one dots.
func scan(spec string) (terms [][]rune, output []rune, explicit bool, err error) {
	all := make([]rune, 0, len(spec)) // backs every term
	start := 0
	position := 0
	for at := 0; at < len(spec); {
		position++
		r, width := rune(spec[at]), 1
		if r >= utf8.RuneSelf {
			r, width = utf8.DecodeRuneInString(spec[at:])
		}
		rest := spec[at:]
		switch {
		case r == ' ':
		case r == ',':
			if explicit {
				return nil, nil, false, weir.Argf(op, "position %d: got ',' in the output; expected one output term", position)
			}
			if len(terms) == MaxOperands {
				return nil, nil, false, checkSize(MaxOperands+1, 0, 0)
			}
			terms = append(terms, all[start:len(all):len(all)])
			start = len(all)
		case strings.HasPrefix(rest, "->"):
			if explicit {
				return nil, nil, false, weir.Argf(op, "position %d: got a second \"->\"; expected one at most", position)
			}
			explicit = true
			terms = append(terms, all[start:len(all):len(all)])
			start = len(all)
			width, position = 2, position+1
		case r == '-':
			return nil, nil, false, weir.Argf(op, "position %d: got '-' without '>' right after it; expected \"->\"", position)
		case r == '.':
			if !strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "....") {
				return nil, nil, false, weir.Argf(op, "position %d: got %d dots; expected an ellipsis of exactly three",
					position, len(rest)-len(strings.TrimLeft(rest, ".")))
			}
			if slices.Contains(all[start:], dots) {
				return nil, nil, false, weir.Argf(op, "position %d: got a second \"...\" in %s; expected one at most",
					position, termName(len(terms), explicit))
			}
			all = append(all, dots)
			width, position = 3, position+2
		case unicode.IsLetter(r):
			all = append(all, r)
		default:
			return nil, nil, false, weir.Argf(op, "position %d: got %q; expected a letter, ',', '...', '->' or a space", position, rest[:width])
		}
		at += width
	}
	last := all[start:len(all):len(all)]
	if explicit {
		return terms, last, true, nil
	}
	return append(terms, last), nil, false, nil
}

func termName(k int, output bool) string {
	if output {
		return "the output"
	}
	return operandName(k, nil)
}

// bindTerms numbers the indices and gives every axis of every operand its own.
func (e *Expr) bindTerms(terms [][]rune, ranks []int, ids map[rune]int) error {
	axes, widest := 0, 0
	for k, term := range terms {
		letters := len(term)
		if slices.Contains(term, dots) {
			letters--
			if ranks[k] < letters {
				return weir.Argf(op, "%s: got rank %d; expected at least %d for %q", operandName(k, e.names), ranks[k], letters, spell(term))
			}
			widest = max(widest, ranks[k]-letters)
		} else if ranks[k] != letters {
			return weir.Argf(op, "%s: got rank %d; expected %d for %q", operandName(k, e.names), ranks[k], letters, spell(term))
		}
		if axes += ranks[k]; axes > MaxAxes || ranks[k] > MaxAxes {
			return checkSize(len(terms), max(axes, ranks[k]), 0)
		}
	}
	e.inputs = make([][]int, len(terms))
	e.symbols = make([]rune, 0, min(axes, 16))
	flat := make([]int, 0, axes) // backs every input
	for k, term := range terms {
		start := len(flat)
		for _, r := range term {
			if r != dots {
				id, ok := ids[r]
				if !ok {
					id = len(e.symbols)
					ids[r] = id
					e.symbols = append(e.symbols, r)
				}
				flat = append(flat, id)
				continue
			}
			for len(e.ellipsis) < widest {
				e.ellipsis = append(e.ellipsis, len(e.symbols))
				e.symbols = append(e.symbols, dots)
			}
			flat = append(flat, e.ellipsis[widest-(ranks[k]-len(term)+1):]...)
		}
		e.inputs[k] = flat[start:len(flat):len(flat)]
	}
	if len(e.ellipsis) > 0 {
		for k, letter := range letters(len(e.ellipsis), ids) {
			e.symbols[e.ellipsis[k]] = letter
		}
	}
	return checkSize(len(terms), axes, len(e.symbols))
}

// bindOutput resolves the output term.
func (e *Expr) bindOutput(output []rune, ids map[rune]int) error {
	e.output = make([]int, 0, len(output)+len(e.ellipsis))
	for _, r := range output {
		if r == dots {
			e.output = append(e.output, e.ellipsis...)
			continue
		}
		id, ok := ids[r]
		if !ok {
			return weir.Argf(op, "output: index %c is in no operand; expected indices of the operands", r)
		}
		if slices.Contains(e.output, id) {
			return weir.Argf(op, "output: index %c is there twice; expected each index once", r)
		}
		e.output = append(e.output, id)
	}
	if len(e.ellipsis) > 0 && !slices.Contains(output, dots) {
		return weir.Argf(op, "output: got no \"...\"; expected one, since the operands' ellipses stand for %d axes", len(e.ellipsis))
	}
	return nil
}

// implicitOutput is the ellipsis, if there is one, and the letters that occur
// once, by code point.
func implicitOutput(terms [][]rune) []rune {
	count := make(map[rune]int)
	for _, term := range terms {
		for _, r := range term {
			count[r]++
		}
	}
	var output []rune
	for r, n := range count {
		if n == 1 || r == dots {
			output = append(output, r)
		}
	}
	slices.Sort(output) // dots is negative and comes first
	return output
}

// write is the inverse of scan.
func write(terms [][]rune, output []rune) string {
	var b strings.Builder
	b.Grow(32)
	for k, term := range terms {
		if k > 0 {
			b.WriteByte(',')
		}
		writeTerm(&b, term)
	}
	b.WriteString("->")
	writeTerm(&b, output)
	return b.String()
}

func writeTerm(b *strings.Builder, term []rune) {
	for _, r := range term {
		if r == dots {
			b.WriteString("...")
		} else {
			b.WriteRune(r)
		}
	}
}

func spell(term []rune) string {
	var b strings.Builder
	writeTerm(&b, term)
	return b.String()
}
