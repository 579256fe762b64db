package einsum

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestParseWritesTheOutputOut(t *testing.T) {
	for _, c := range []struct {
		spec  string
		ranks []int
		want  string
	}{
		{"ij,jk->ik", []int{2, 2}, "ij,jk->ik"},
		{"ij,jk", []int{2, 2}, "ij,jk->ik"},
		{" i j , jk -> i k ", []int{2, 2}, "ij,jk->ik"},
		{"ba", []int{2}, "ba->ab"},
		{"bA", []int{2}, "bA->Ab"},
		{"ii", []int{2}, "ii->"},
		{"", []int{0}, "->"},
		{",", []int{0, 0}, ",->"},
		{"b...a,...c", []int{4, 2}, "b...a,...c->...abc"},
		{"...", []int{0}, "...->..."},
		{"αβ,βж", []int{2, 2}, "αβ,βж->αж"},
		{"語,語x->x", []int{1, 2}, "語,語x->x"},
	} {
		e, err := Parse(c.spec, c.ranks)
		if err != nil {
			t.Errorf("%q: %v", c.spec, err)
		} else if e.String() != c.want {
			t.Errorf("%q: got %q; want %q", c.spec, e, c.want)
		}
	}
}

func TestMoreThan52IndicesAreParsed(t *testing.T) {
	term := string(letters(500, nil))
	e, err := Parse(term+"->", []int{500})
	if err != nil || len(e.symbols) != 500 {
		t.Fatalf("got %v", err)
	}
}

func TestParseRefusesWhatIsNoExpression(t *testing.T) {
	for _, c := range []struct {
		spec  string
		ranks []int
		says  string
	}{
		{"ij,j2->i", []int{2, 2}, `position 5: got "2"; expected a letter`},
		{"ij,\tjk", []int{2, 2}, `position 4: got "\t"`},
		{"é\xff", []int{1}, `position 2: got "\xff"`},
		{"i€", []int{1}, `position 2: got "€"`},
		{"ij-ik", []int{2}, `position 3: got '-' without '>'`},
		{"ij- >i", []int{2}, `position 3: got '-' without '>'`},
		{"ij>i", []int{2}, `position 3: got ">"`},
		{"ij->i->j", []int{2}, `position 6: got a second "->"`},
		{"ij->i,j", []int{2}, `position 6: got ',' in the output`},
		{"i.j", []int{2}, `position 2: got 1 dots; expected an ellipsis of exactly three`},
		{"i..j", []int{2}, `position 2: got 2 dots`},
		{"i....j", []int{2}, `position 2: got 4 dots`},
		{"i. ..j", []int{2}, `position 2: got 1 dots`},
		{"i,j...k...", []int{1, 2}, `position 8: got a second "..." in operand 2`},
		{"i->...i...", []int{1}, `position 8: got a second "..." in the output`},
		{"ij,jk", []int{2}, `operands: got 1; expected 2, one for each term of "ij,jk"`},
		{"ij", []int{2, 2}, `operands: got 2; expected 1`},
		{"ij,jk", []int{2, 3}, `operand 2: got rank 3; expected 2 for "jk"`},
		{"ij,j...k", []int{2, 1}, `operand 2: got rank 1; expected at least 2 for "j...k"`},
		{"i", []int{-1}, `operand 1: got rank -1; expected 1 for "i"`},
		{"ij->ik", []int{2}, `output: index k is in no operand`},
		{"ij->iji", []int{2}, `output: index i is there twice`},
		{"i...->i", []int{3}, `output: got no "..."; expected one, since the operands' ellipses stand for 2 axes`},
		{"...", []int{math.MaxInt}, `axes of all operands: got 9223372036854775807; expected at most 32768`},
		{strings.Repeat(",", MaxOperands), make([]int, MaxOperands+1), `operands: got 4097; expected at most 4096`},
		{strings.Repeat(",", 10*MaxOperands), nil, `operands: got 4097; expected at most 4096`}, // not read to the end
		{string(letters(MaxIndices+1, nil)) + "->", []int{MaxIndices + 1}, `indices: got 8193 different ones; expected at most 8192`},
	} {
		_, err := Parse(c.spec, c.ranks)
		refused(t, err, c.says)
	}
}

func TestMessagesNameTheOperand(t *testing.T) {
	_, err := Parse("ij,jk", []int{2, 3}, "a.npy", "b.npy")
	refused(t, err, "operand 2 (b.npy): got rank 3")
	_, err = Parse("ij,jk", []int{2, 2}, "a.npy")
	refused(t, err, "names: got 1; expected one for each of the 2 operands")
	e, err := Parse("ij,jk", []int{2, 2}, "a.npy", "b.npy")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Bind([][]int64{{2, 3}, {4, 5}}, nil)
	refused(t, err, "index j: extent 3 in operand 1 (a.npy), extent 4 in operand 2 (b.npy); expected equal extents, or 1")
}

func TestLabelsMakeTheSameExpressionAsLetters(t *testing.T) {
	e, err := FromLabels([][]int{{7, -2}, {-2, 1000000, 1000000}}, []int{7})
	if err != nil {
		t.Fatal(err)
	}
	if e.String() != "ba,acc->b" { // in order of the labels
		t.Errorf("got %q", e)
	}
	same, err := Parse(e.String(), []int{2, 3})
	if err != nil || !reflect.DeepEqual(same.inputs, e.inputs) || !reflect.DeepEqual(same.output, e.output) {
		t.Errorf("%v: got %v and %v", err, same, e)
	}
	_, err = e.Bind([][]int64{{2, 3}, {4, 5, 5}}, nil)
	refused(t, err, "label -2: extent 3 in operand 1, extent 4 in operand 2")
}

func TestFromLabelsRefusesOutputsThatAreNone(t *testing.T) {
	_, err := FromLabels([][]int{{1, 2}}, []int{3})
	refused(t, err, "output: label 3 is in no operand")
	_, err = FromLabels([][]int{{1, 2}}, []int{2, 2})
	refused(t, err, "output: label 2 is there twice")
	_, err = FromLabels(nil, nil)
	refused(t, err, "operands: got none")
	_, err = FromLabels([][]int{{1}}, nil, "a", "b")
	refused(t, err, "names: got 2")
	_, err = FromLabels([][]int{shuffled(MaxIndices+1, 0)}, nil)
	refused(t, err, "indices: got 8193 different ones; expected at most 8192")
}

// FuzzParse checks that no specification panics or hangs, and that an
// accepted one is the same expression when it is written and parsed again.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{"ij,jk->ik", "...ij,j...", "ii", ",->", "αβ,β語->", "i.j", "ij->i->j", "\xff", "a b . . ."} {
		f.Add(spec, uint16(2))
	}
	f.Fuzz(func(t *testing.T, spec string, extra uint16) {
		// Ranks as the terms have them, and some axes for each ellipsis.
		terms, _, _, err := scan(spec)
		if err != nil {
			terms = nil
		}
		ranks := make([]int, len(terms))
		for k, term := range terms {
			ranks[k] = len(term)
			for _, r := range term {
				if r == dots {
					ranks[k] += int(extra>>(k%8))%4 - 1
				}
			}
		}
		e, err := Parse(spec, ranks)
		if err != nil {
			return
		}
		again, err := Parse(e.String(), ranks)
		if err != nil {
			t.Fatalf("%q is written as %q, which is refused: %v", spec, e, err)
		}
		if !reflect.DeepEqual(e, again) {
			t.Fatalf("%q is written as %q, which is another expression", spec, e)
		}
	})
}
