package tensor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/stream"
)

// GemmBatchInto computes c[i] = alpha·a[i]·b[i] + beta·c[i] for every i, each as
// GemmInto does, but in one operation: one lease, one completion, and as few
// launches as the device allows. Shapes and layouts may differ from member to
// member; element type and device are the same. An array may be the a or b of
// many members, and an operand that overlaps its own member's result is copied
// first; a result that overlaps another member's arrays is an ErrArgument.
//
// Members that BLAS takes as they lie are grouped by extents, transposition and
// leading dimensions; those of a group at even steps in memory are one strided
// batch. A member that needs a copy is an operation of its own. When an error is
// met after some members were submitted, they are computed; the message names
// the member that it is of.
func GemmBatchInto(ctx context.Context, alpha complex128, a, b []*Array, beta complex128, c []*Array, opts ...ProductOption) error {
	const op = "tensor.GemmBatchInto"
	o, err := optionsOf(op, opts)
	if err != nil {
		return err
	}
	if len(a) != len(c) || len(b) != len(c) {
		return weir.Argf(op, "%d, %d and %d arrays in a, b and c; expected as many of each", len(a), len(b), len(c))
	}
	if o.provider == RAFT {
		return weir.Argf(op, "provider %q; expected none for a batch, which RAFT has no product of", string(RAFT))
	}
	x := batches.Get().(*batch)
	defer x.giveBack()
	for i := range c {
		p := product{precision: o.precision}
		err := p.plan(op, alpha, a[i], b[i], beta, c[i])
		if err == nil {
			err = uniformMember(op, c[0], i, c[i])
		}
		if err != nil {
			return ofMember(op, i, err)
		}
		x.add(i, p)
	}
	if err := x.apart(op); err != nil {
		return err
	}
	x.sort()
	if err := x.together(ctx, op); err != nil {
		return err
	}
	for _, m := range x.alone {
		if err := x.members[m].run(ctx); err != nil {
			return ofMember(op, x.members[m].number, err)
		}
	}
	return nil
}

// uniformMember checks member i, whose own arrays agree, against the first.
func uniformMember(op string, first *Array, i int, c *Array) error {
	if c.memory() != first.memory() {
		return apart(op, "c of member 0", first, fmt.Sprintf("c of member %d", i), c)
	}
	if c.dtype != first.dtype {
		return weir.Argf(op, "the arrays are %v and those of member 0 %v; expected one element type", c.dtype, first.dtype)
	}
	return nil
}

// ofMember is err with the member that it is of.
func ofMember(op string, i int, err error) error {
	name := fmt.Sprintf("member %d", i)
	if e, ok := err.(*weir.Error); ok && e.Op == op && e.Message != "" {
		named := *e
		named.Message = name + ": " + e.Message
		return &named
	}
	kind := weir.KindGeneric
	if e := (*weir.Error)(nil); errors.As(err, &e) {
		kind = e.Kind
	}
	return &weir.Error{Op: op, Kind: kind, Message: name, Err: err}
}

// batch is what GemmBatchInto gathers, in memory that is used again.
type batch struct {
	members   []member
	operands  []operand
	contended []operand              // those in memory that a result shares with another member
	buffers   map[*buffer.Buffer]int // the place in opened
	opened    []opened
	alone     []int  // members that are operations of their own
	submitted bool   // in whole or in part
	chunk     *chunk // for results, of which some are used
	used      int
	groups    []group
	places    map[form]int // the place in groups
	latest    int          // group that was asked for, and its form
	is        form
	calls     []blas.Group
}

var batches = sync.Pool{New: func() any {
	return &batch{buffers: map[*buffer.Buffer]int{}, places: map[form]int{}}
}}

// member is a product with a result that is not empty.
type member struct {
	product
	number int
	again  bool   // it computes the same if it is submitted twice
	fresh  bool   // its result was made for it
	at     [3]int // the buffers of a, b and c; those of a and b -1 without terms
}

// opened is a buffer of several operands: an access takes each buffer once for
// writing, or for reading.
type opened struct {
	buffer      *buffer.Buffer
	read, write bool // by the members that are submitted together
	results     bool
	members     int // with an operand in it, and the last of them
	last        int
	ptr         driver.Ptr
}

// form is what members of a group have in common. (A whole blas.Product is too
// long for a map to keep it in place.)
type form struct {
	dtype         DType
	precision     Precision
	opA, opB      driver.Op
	m, n, k       int64
	lda, ldb, ldc int64
	alpha, beta   complex128 // may be conjugated
}

// group is members of one form. steps are those of A, B and C from each
// to the next, if even.
type group struct {
	blas.Group
	even  bool
	at    [3]int
	steps [3]driver.Ptr
}

func (x *batch) add(number int, p product) {
	if p.c.rows == 0 || p.c.cols == 0 {
		return
	}
	m := member{product: p, number: number, at: [3]int{-1, -1, -1}}
	if p.a.cols > 0 {
		a, b := 0, 1 // as the caller calls them
		if p.swapped {
			a, b = b, a
		}
		m.at[0], m.at[1] = x.operand(p.a.array, a), x.operand(p.b.array, b)
	}
	m.at[2] = x.operand(p.c.array, 2)
	x.members = append(x.members, m)
}

// operand notes an operand of the next member and answers its buffer's place.
func (x *batch) operand(a *Array, which int) int {
	number := len(x.members)
	b := a.Buffer()
	at, ok := x.buffers[b]
	if !ok {
		at = len(x.opened)
		x.buffers[b] = at
		x.opened = append(x.opened, opened{buffer: b, last: -1})
	}
	o := &x.opened[at]
	o.results = o.results || which == 2
	if o.last != number {
		o.members, o.last = o.members+1, number
	}
	x.operands = append(x.operands, operand{array: a, at: at, member: number, which: which})
	return at
}

// sort divides the members into those that BLAS takes as they lie, put into
// groups, and others.
func (x *batch) sort() {
	for i := range x.members {
		m := &x.members[i]
		if !m.oriented && (!m.orient() || m.at[0] >= 0 && (m.packs(&m.a) || m.packs(&m.b))) {
			x.alone = append(x.alone, i)
			continue
		}
		if m.at[0] >= 0 { // orient may have swapped the operands
			m.at[0], m.at[1] = x.buffers[m.a.array.Buffer()], x.buffers[m.b.array.Buffer()]
			x.opened[m.at[0]].read, x.opened[m.at[1]].read = true, true
		}
		x.opened[m.at[2]].write = true
	}
}

// together submits what is in no need of copies, as one operation.
func (x *batch) together(ctx context.Context, op string) error {
	if len(x.alone) == len(x.members) {
		return nil
	}
	if recordingOf(ctx) != nil {
		return x.apartByForm(ctx, op)
	}
	first := &x.members[0]
	var m multiplication
	if err := m.begin(ctx, written(first.a.array, first.b.array, first.c.array), first.c.array); err != nil {
		return err
	}
	if refused := x.open(&m.acc); refused >= 0 {
		return m.endAs(nil, func(err error) error { return ofMember(op, refused, err) })
	}
	x.submitted = true
	x.gather()
	return m.end(x.submit(&m))
}

// apartByForm is together of what is recorded, with an operation for each form: a
// graph has no launch for several, and those of one operation are one after another.
func (x *batch) apartByForm(ctx context.Context, op string) error {
	done := make([]bool, len(x.members))
	for _, i := range x.alone {
		done[i] = true
	}
	for i := range x.members {
		if done[i] {
			continue
		}
		first := &x.members[i]
		var m multiplication
		if err := m.begin(ctx, stream.After{}, first.c.array); err != nil {
			return err
		}
		x.forget()
		for k := i; k < len(x.members); k++ {
			n := &x.members[k]
			if done[k] || n.form() != first.form() {
				continue
			}
			done[k] = true
			for _, at := range n.at {
				if at < 0 {
					continue
				}
				if o := &x.opened[at]; o.write {
					o.ptr = m.acc.Write(o.buffer)
				} else {
					o.ptr = m.acc.Read(o.buffer)
				}
				if m.acc.Err() != nil {
					return m.endAs(nil, func(err error) error { return ofMember(op, n.number, err) })
				}
			}
			x.addToGroup(n)
		}
		x.submitted = true
		if err := m.end(x.submit(&m)); err != nil {
			return err
		}
	}
	return nil
}

// open opens every buffer, and answers the first member that uses one which was
// refused, or -1.
func (x *batch) open(acc *buffer.Access) int {
	for i := range x.opened {
		o := &x.opened[i]
		switch {
		case o.write:
			o.ptr = acc.Write(o.buffer)
		case o.read:
			o.ptr = acc.Read(o.buffer)
		}
		if acc.Err() != nil {
			return x.user(i)
		}
	}
	return -1
}

// user is the number of the first member with an operand in a buffer.
func (x *batch) user(at int) int {
	for i := range x.members {
		m := &x.members[i]
		if m.at[0] == at || m.at[1] == at || m.at[2] == at {
			return m.number
		}
	}
	return -1
}

// gather puts the members into groups, with their addresses.
func (x *batch) gather() {
	next := 0 // of alone
	for i := range x.members {
		if next < len(x.alone) && x.alone[next] == i {
			next++
			continue
		}
		x.addToGroup(&x.members[i])
	}
}

func (x *batch) addToGroup(m *member) {
	size := driver.Ptr(m.c.array.dtype.Size())
	var ptr [3]driver.Ptr
	for k, operand := range [...]*matrix{&m.a, &m.b, &m.c} {
		if m.at[k] >= 0 {
			ptr[k] = x.opened[m.at[k]].ptr + driver.Ptr(operand.offset)*size
		}
	}
	x.group(m).add(m.at, ptr)
}

func (m *member) form() form {
	d := m.description()
	return formOf(&d, m.precision)
}

func formOf(d *blas.Product, p Precision) form {
	return form{d.DType, p, d.OpA, d.OpB, d.M, d.N, d.K, d.LDA, d.LDB, d.LDC, d.Alpha, d.Beta}
}

// group is the one of m's form.
func (x *batch) group(m *member) *group {
	d := m.description()
	f := formOf(&d, m.precision)
	if x.latest < len(x.groups) && x.is == f {
		return &x.groups[x.latest]
	}
	at, ok := x.places[f]
	x.latest, x.is = at, f
	if !ok {
		at = len(x.groups)
		x.latest = at
		x.places[f] = at
		if at < cap(x.groups) {
			x.groups = x.groups[:at+1] // with the memory of its addresses
		} else {
			x.groups = append(x.groups, group{})
		}
		x.groups[at].Gemm, x.groups[at].even = d, true
	}
	return &x.groups[at]
}

func (g *group) add(at [3]int, ptr [3]driver.Ptr) {
	n := len(g.Cs)
	if n == 0 {
		g.at = at
	} else {
		steps := [3]driver.Ptr{ptr[0] - g.As[n-1], ptr[1] - g.Bs[n-1], ptr[2] - g.Cs[n-1]}
		if n == 1 {
			g.steps = steps
		}
		// One buffer: a step from one allocation to another reaches over what is
		// none of ours.
		g.even = g.even && at == g.at && steps == g.steps
	}
	g.As, g.Bs, g.Cs = append(g.As, ptr[0]), append(g.Bs, ptr[1]), append(g.Cs, ptr[2])
}

// submit gives strided batches to the lease's stream one by one, and all other
// groups at once.
func (x *batch) submit(l *multiplication) error {
	products := 0
	for i := range x.groups {
		g := &x.groups[i]
		if n := len(g.Cs); n < 2 || !g.even {
			x.calls = append(x.calls, g.Group)
			products += n
			continue
		}
		if err := g.strided(l); err != nil {
			return err
		}
	}
	switch products {
	case 0:
		return nil
	case 1:
		return (&group{Group: x.calls[0]}).strided(l)
	}
	slices.SortStableFunc(x.calls, func(a, b blas.Group) int { // groups of one type are launched together
		return cmp.Or(cmp.Compare(a.DType, b.DType), cmp.Compare(a.Compute, b.Compute))
	})
	return l.groups(x.calls)
}

func (g *group) strided(l *multiplication) error {
	p, size := g.Gemm, g.DType.Size()
	p.A, p.B, p.C, p.Batch = g.As[0], g.Bs[0], g.Cs[0], int64(len(g.Cs))
	p.StrideA, p.StrideB, p.StrideC = int64(g.steps[0])/size, int64(g.steps[1])/size, int64(g.steps[2])/size
	return l.gemm(&p)
}

// giveBack forgets everything but the memory.
func (x *batch) giveBack() {
	x.forget()
	clear(x.buffers)
	clear(x.members)
	clear(x.operands)
	clear(x.contended)
	clear(x.opened)
	x.members, x.operands, x.contended = x.members[:0], x.operands[:0], x.contended[:0]
	x.opened, x.alone = x.opened[:0], x.alone[:0]
	x.submitted = false
	batches.Put(x)
}

// forget forgets the groups.
func (x *batch) forget() {
	clear(x.places)
	clear(x.calls)
	for i := range x.groups {
		g := &x.groups[i]
		*g = group{Group: blas.Group{As: g.As[:0], Bs: g.Bs[:0], Cs: g.Cs[:0]}}
	}
	x.groups, x.calls = x.groups[:0], x.calls[:0]
	x.latest = 0
}
