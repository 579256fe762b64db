package tensor

import (
	"cmp"
	"slices"

	"github.com/weirgo/weir"
)

// operand is the array that a member of a batch reads (which 0 and 1, its a and
// b) or writes (2).
type operand struct {
	array     *Array
	at        int // the buffer
	member    int
	which     int
	low, high int64 // the first element's place in the buffer, and the last's
}

var operandNames = [...]string{"a", "b", "c"}

// apart refuses a result that overlaps an array of another member.
func (x *batch) apart(op string) error {
	contended := x.contended
	for i := range x.operands {
		o := &x.operands[i]
		if b := &x.opened[o.at]; !b.results || b.members < 2 {
			continue
		}
		if o.low, o.high = o.array.extent(); o.low > o.high {
			continue
		}
		o.low, o.high = o.low+o.array.offset, o.high+o.array.offset
		contended = append(contended, *o)
	}
	x.contended = contended
	slices.SortStableFunc(contended, func(x, y operand) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.low, y.low))
	})
	for i := range contended {
		for j := i + 1; j < len(contended) && contended[j].at == contended[i].at && contended[j].low <= contended[i].high; j++ {
			if err := x.separate(op, &contended[i], &contended[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// separate refuses p and q if one is written, they are of two members, and they
// share an element.
func (x *batch) separate(op string, p, q *operand) error {
	if p.member == q.member || p.which != 2 && q.which != 2 || disjoint(p.array, q.array) {
		return nil
	}
	if q.which == 2 && (p.which != 2 || q.member < p.member) {
		p, q = q, p
	}
	return weir.Argf(op, "c of member %d overlaps %s of member %d in memory; expected results that no other member reads or writes",
		x.members[p.member].number, operandNames[q.which], x.members[q.member].number)
}

// disjoint says whether two matrices of one buffer and element type share no
// element. Where their intervals of memory overlap, it knows only those that
// step alike, as the blocks of a larger matrix do.
func disjoint(a, b *Array) bool {
	x, y := latticeOf(a, b), latticeOf(b, a)
	if !x.regular() || !y.regular() || x.large != y.large || x.small != y.small {
		return false
	}
	// The elements are low + i·large + j·small, j·small below large. With
	// a difference of quotient·large + rest, i differs by the quotient or one more.
	difference := y.low - x.low
	quotient, rest := difference/x.large, difference%x.large
	if rest < 0 {
		quotient, rest = quotient-1, rest+x.large
	}
	meet := func(i, j int64) bool {
		return -y.nLarge < i && i < x.nLarge && j%x.small == 0 && -y.nSmall < j/x.small && j/x.small < x.nSmall
	}
	return !meet(quotient, rest) && !meet(quotient+1, rest-x.large)
}

// lattice is where the elements of a matrix lie: nLarge times nSmall of them from
// low on, at positive steps.
type lattice struct{ low, large, small, nLarge, nSmall int64 }

// latticeOf is a's lattice. An axis of one element steps by nothing; it is taken to
// step as that of other does.
func latticeOf(a, other *Array) lattice {
	low, _ := a.extent()
	step := func(axis int) int64 {
		switch {
		case a.shape()[axis] > 1:
			return magnitude(a.strides()[axis])
		case other.shape()[axis] > 1:
			return magnitude(other.strides()[axis])
		}
		return 1
	}
	l := lattice{a.offset + low, step(0), step(1), a.shape()[0], a.shape()[1]}
	if l.large < l.small {
		l.large, l.small, l.nLarge, l.nSmall = l.small, l.large, l.nSmall, l.nLarge
	}
	return l
}

// regular says whether each element lies at one place of the lattice.
func (l lattice) regular() bool { return l.small > 0 && l.small*(l.nSmall-1) < l.large }
