package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/provider/solver"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// side is the extent of the matrices that a program begins with.
const side = 2

// step is one call of a program. Its values are places in the list of all that the
// program has made, modulo the list's length.
type step struct {
	do      string
	a, b, c int
	n       int // which variant
	on      int // the device whose log, or lanes, take it
	// cancelled: its context has ended before the call.
	cancelled bool
	skip      bool // the reference could not say what comes of it
}

// verb is an operation of flow beside the direct form that it stands for.
type verb struct {
	name   string
	in     int  // operands, the one that is changed aside
	change bool // it changes its last one, in place
	take   bool // it leaves nothing of its last one
	flow   func(ctx context.Context, s step, v []*flow.Value) *flow.Value
	direct func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error)
}

var (
	chains  = []string{"ij,jk,kl,lm->im", "ij,kj,ik,kk->ki", "ji,ij,jk,ki->kj"}
	labels  = [][]int{{0, 1}, {1, 2}, {2, 0}}
	shapes  = [][]int{{side, side}, {side * side}, {1, side, side}, {7}}
	dtypes  = []tensor.DType{tensor.Float64, tensor.Int64, tensor.Complex128, tensor.Float32}
	indices = [][]tensor.Index{{tensor.Reverse()}, {tensor.All(), tensor.Reverse()}, {tensor.At(1)}, {tensor.At(5)}}
)

func pick[T any](of []T, n int) T { return of[n%len(of)] }

func factor(n int) complex128 { return complex(float64(n%5-2), 0) }

var verbs = map[string]verb{
	"matmul": {name: "flow.MatMul", in: 2,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.MatMul(ctx, v[0], v[1]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.MatMul(ctx, x[0], x[1])
		}},
	"add": {name: "flow.Add", in: 2,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.Add(ctx, v[0], v[1]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.Add(ctx, x[0], x[1])
		}},
	"einsum": {name: "flow.Einsum", in: 4,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.Einsum(ctx, pick(chains, s.n), v...)
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.Einsum(ctx, pick(chains, s.n), x...)
		}},
	"einsum with": {name: "flow.EinsumWith", in: 2,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.EinsumWith(ctx, tensor.EinsumOptions{}, "ij,jk->ki", v...)
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.EinsumWith(ctx, tensor.EinsumOptions{}, "ij,jk->ki", x...)
		}},
	"network": {name: "flow.Network", in: 3,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.Network(ctx, tensor.EinsumOptions{}, v, labels, []int{0, 1})
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.Network(ctx, tensor.EinsumOptions{}, x, labels, []int{0, 1})
		}},
	"scale": {name: "flow.Scale", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.Scale(ctx, factor(s.n), v[0])
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.Scale(ctx, factor(s.n), x[0])
		}},
	"reshape": {name: "flow.Reshape", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.Reshape(ctx, v[0], pick(shapes, s.n)...)
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.Reshape(ctx, x[0], pick(shapes, s.n)...)
		}},
	"t": {name: "flow.T", in: 1,
		flow:   func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.T(ctx, v[0]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) { return x[0].T(), nil }},
	"h": {name: "flow.H", in: 1,
		flow:   func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.H(ctx, v[0]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) { return x[0].H(), nil }},
	"conj": {name: "flow.Conj", in: 1,
		flow:   func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.Conj(ctx, v[0]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) { return x[0].Conj(), nil }},
	"permute": {name: "flow.Permute", in: 1,
		flow:   func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.Permute(ctx, v[0], 1, 0) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) { return x[0].Permute(1, 0) }},
	"slice": {name: "flow.Slice", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.Slice(ctx, v[0], pick(indices, s.n)...)
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return x[0].Slice(pick(indices, s.n)...)
		}},
	"broadcast": {name: "flow.Broadcast", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.Broadcast(ctx, v[0], side, side)
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return x[0].Broadcast(side, side)
		}},
	"diagonal": {name: "flow.Diagonal", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.Diagonal(ctx, v[0], 0, 1) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return x[0].Diagonal(0, 1)
		}},
	"copy": {name: "flow.Copy", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.Copy(ctx, v[0]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.Copy(ctx, x[0])
		}},
	"contiguous": {name: "flow.Contiguous", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.Contiguous(ctx, v[0]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.Contiguous(ctx, x[0])
		}},
	"astype": {name: "flow.AsType", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.AsType(ctx, v[0], pick(dtypes, s.n))
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.AsType(ctx, x[0], pick(dtypes, s.n))
		}},
	"to": {name: "flow.To", in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.To(ctx, v[0], device(s.n)) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return tensor.To(ctx, x[0], device(s.n))
		}},
	"gemm into": {name: "flow.GemmInto", in: 2, change: true,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.GemmInto(ctx, 2, v[0], v[1], factor(s.n), v[2])
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return x[2], tensor.GemmInto(ctx, 2, x[0], x[1], factor(s.n), x[2])
		}},
	"add into": {name: "flow.AddInto", in: 1, change: true,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			return flow.AddInto(ctx, 3, v[0], factor(s.n), v[1])
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return x[1], tensor.AddInto(ctx, 3, x[0], factor(s.n), x[1])
		}},
	"copy into": {name: "flow.CopyInto", in: 1, change: true,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value { return flow.CopyInto(ctx, v[1], v[0]) },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			return x[1], tensor.CopyInto(ctx, x[1], x[0])
		}},
	"free": {name: "flow.Free", take: true,
		flow:   func(ctx context.Context, s step, v []*flow.Value) *flow.Value { flow.Free(ctx, v[0]); return v[0] },
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) { return nil, x[0].Free() }},
	// The values of a decomposition are not integers, so they are taken times 0.
	"svd": {name: `task "flow.SVD"`, in: 1,
		flow: func(ctx context.Context, s step, v []*flow.Value) *flow.Value {
			_, values, _ := flow.SVD(ctx, v[0])
			return flow.Broadcast(ctx, flow.Scale(ctx, 0, values), side, side)
		},
		direct: func(ctx context.Context, s step, x []*tensor.Array) (*tensor.Array, error) {
			_, values, _, err := tensor.SVD(ctx, x[0])
			if err != nil {
				return nil, err
			}
			return must(tensor.Scale(ctx, 0, values)).Broadcast(side, side)
		}},
}

// What tasks, and the program itself, do with values.
const (
	taskReads    = "task reads"    // a; writes a new value
	taskAsks     = "task asks"     // a; has flow make a new value
	taskChanges  = "task changes"  // a in place, by b
	taskReplaces = "task replaces" // a by a copy of b
	taskFails    = "task fails"    // to write a
	taskPanics   = "task panics"   // to write a
	taskLeaves   = "task leaves"   // a as it was
	holds        = "hold"          // a reader of a
	opens        = "open"          // a writer of a, which is set, failed or released later
	letsGo       = "let go"        // of all that the program holds
	makes        = "make"          // a value that was never written
)

var taskVerbs = []string{taskReads, taskAsks, taskChanges, taskReplaces, taskFails, taskPanics, taskLeaves, holds, opens, letsGo, makes}

// failure is a poison that a value may carry.
type failure struct {
	op   string // what it begins with
	text string // the cause's
	is   error  // or what it matches
}

func (f failure) of(p *async.Poison) bool {
	if !strings.HasPrefix(p.Op, f.op) {
		return false
	}
	if f.is != nil {
		return errors.Is(p, f.is)
	}
	return p.Cause.Error() == f.text
}

func (f failure) String() string {
	if f.is != nil {
		return fmt.Sprintf("%s: %v", f.op, f.is)
	}
	return f.op + ": " + f.text
}

// slot is what a value is: an array, one of several poisons, or nothing.
type slot struct {
	array *tensor.Array
	fails []failure
	text  string // the elements, at the end
}

// reference runs a program by the direct forms, in the order of its calls.
type reference struct {
	ctx   context.Context
	slots []slot
	// owners are the values that ever had a memory.
	owners map[*buffer.Buffer]map[int]bool
	// loose: operations may step aside, so that their order is that of the values
	// which they share and no longer that of memory.
	loose bool
}

func (m *reference) place(i int) int { return i % len(m.slots) }

// set makes the k-th value x.
func (m *reference) set(k int, x slot) {
	if k == len(m.slots) {
		m.slots = append(m.slots, x)
	} else {
		m.slots[k] = x
	}
	if x.array != nil {
		b := x.array.Buffer()
		if m.owners[b] == nil {
			m.owners[b] = map[int]bool{}
		}
		m.owners[b][k] = true
	}
}

// alone says whether the k-th value can be changed with no other one changing.
func (m *reference) alone(k int) bool {
	x := m.slots[k].array
	return !m.loose || x == nil || len(m.owners[x.Buffer()]) == 1
}

// apply is what comes of an operation on values.
func (m *reference) apply(name string, places []int, f func([]*tensor.Array) (*tensor.Array, error)) slot {
	var in []*tensor.Array
	for _, k := range places {
		switch x := m.slots[k]; {
		case x.fails != nil:
			return slot{fails: x.fails}
		case x.array == nil:
			return slot{fails: []failure{{op: name, is: weir.ErrUninitialized}}}
		default:
			in = append(in, x.array)
		}
	}
	out, err := f(in)
	if err != nil {
		return slot{fails: []failure{{op: name, text: err.Error()}}}
	}
	return slot{array: out}
}

// operands are the places of a verb's operands, the one that it changes or takes
// last.
func (v verb) operands(s step, place func(int) int) []int {
	var places []int
	for i := range v.in {
		places = append(places, place([]int{s.a, s.b, s.a + s.b, s.n}[i]))
	}
	if v.change || v.take {
		places = append(places, place(s.c))
	}
	return places
}

func (m *reference) step(i int, s *step) {
	if v, ok := verbs[s.do]; ok {
		places := v.operands(*s, m.place)
		to := len(m.slots)
		if v.change || v.take {
			if to = places[len(places)-1]; !m.alone(to) {
				s.skip = true
				return
			}
		}
		if s.cancelled && !v.take { // what is given back is given back
			x := slot{fails: []failure{{op: v.name, is: endOf(i)}}}
			for _, k := range places {
				if m.slots[k].fails != nil { // which may be known first
					x.fails = append(x.fails, m.slots[k].fails...)
				}
				if m.slots[k].fails == nil && m.slots[k].array == nil {
					x.fails = append(x.fails, failure{op: v.name, is: weir.ErrUninitialized})
				}
			}
			if s.do == "svd" { // what is made of it may be cancelled for itself
				x.fails = append(x.fails, failure{op: "flow.", is: endOf(i)})
			}
			m.set(to, x)
			return
		}
		m.set(to, m.apply(v.name, places, func(x []*tensor.Array) (*tensor.Array, error) { return v.direct(m.ctx, *s, x) }))
		return
	}
	a, b := m.place(s.a), m.place(s.b)
	task := fmt.Sprintf("task %q", name(i))
	switch s.do {
	case taskReads, taskAsks:
		m.set(len(m.slots), m.apply(task, []int{a}, func(x []*tensor.Array) (*tensor.Array, error) { return tensor.Scale(m.ctx, 3, x[0]) }))
	case taskChanges:
		if s.skip = !m.alone(a); s.skip {
			return
		}
		if x := m.slots[a]; a == b && x.array != nil {
			m.set(a, slot{fails: []failure{{op: task, is: weir.ErrDeadlock}}})
			return
		}
		m.set(a, m.apply(task, []int{b, a}, func(x []*tensor.Array) (*tensor.Array, error) {
			return x[1], tensor.AddInto(m.ctx, 1, x[0], 2, x[1])
		}))
	case taskReplaces:
		m.set(a, m.apply(task, []int{b}, func(x []*tensor.Array) (*tensor.Array, error) { return tensor.Copy(m.ctx, x[0]) }))
	case taskFails:
		m.set(a, m.apply(task, []int{b}, func(x []*tensor.Array) (*tensor.Array, error) { return nil, endOf(i) }))
		if f := m.slots[a].fails; len(f) == 1 && f[0].op == task && f[0].is == nil {
			f[0].is = endOf(i)
		}
	case taskPanics:
		m.set(a, slot{fails: []failure{{op: task, is: endOf(i)}}})
	case opens:
		switch s.n % 3 {
		case 0:
			m.set(a, slot{array: must(tensor.From(m.ctx, numbers(i, side*side), side, side))})
		case 1:
			m.set(a, slot{fails: []failure{{op: "the write of", is: endOf(i)}}})
		}
	case makes:
		m.set(len(m.slots), slot{})
	}
}

func name(i int) string { return fmt.Sprintf("step %d", i) }

// ends are the failures that steps are told to have.
var ends [64]error

func init() {
	for i := range ends {
		ends[i] = fmt.Errorf("the failure of step %d", i)
	}
}

func endOf(i int) error { return ends[i] }

// asked runs a program through flow, and tasks.
type asked struct {
	ctx    context.Context
	values []*flow.Value
	later  []func() error // lets go of what the program holds
}

func (m *asked) place(i int) int { return i % len(m.values) }

func (m *asked) letGo() error {
	var errs []error
	for _, f := range m.later {
		errs = append(errs, f())
	}
	m.later = nil
	return errors.Join(errs...)
}

func (m *asked) step(i int, s step) error {
	ctx := runtime.On(m.ctx, device(s.on))
	if s.cancelled {
		c, cancel := context.WithCancelCause(ctx)
		cancel(endOf(i))
		ctx = c
	}
	if v, ok := verbs[s.do]; ok {
		var in []*flow.Value
		for _, k := range v.operands(s, m.place) {
			in = append(in, m.values[k])
		}
		out := v.flow(ctx, s, in)
		if v.change || v.take {
			if out != in[len(in)-1] {
				return fmt.Errorf("%s answers another value than the one that it changes", v.name)
			}
			return nil
		}
		m.values = append(m.values, out)
		return nil
	}
	a, b := m.values[m.place(s.a)], m.values[m.place(s.b)]
	switch s.do {
	case taskReads, taskAsks:
		out := async.New[*tensor.Array](name(i))
		r, w := a.Read(), out.Write()
		async.Go(ctx, name(i), func(ctx context.Context) error {
			x, err := r.Await(ctx)
			if err != nil {
				return err
			}
			var y *tensor.Array
			if s.do == taskReads {
				y, err = tensor.Scale(ctx, 3, x)
			} else {
				y, err = flow.Scale(ctx, 3, async.Of(x)).Get(ctx)
			}
			if err != nil {
				return err
			}
			return w.Set(y)
		}, r, w)
		m.values = append(m.values, out)
	case taskChanges:
		r, w := b.Read(), a.Write()
		async.Go(ctx, name(i), func(ctx context.Context) error {
			y, err := r.Await(ctx)
			if err != nil {
				return err
			}
			x, err := w.Await(ctx)
			if err != nil {
				return err
			}
			if err := tensor.AddInto(ctx, 1, y, 2, x); err != nil {
				return err
			}
			return w.Set(x)
		}, r, w)
	case taskReplaces:
		r, w := b.Read(), a.Write()
		async.Go(ctx, name(i), func(ctx context.Context) error {
			y, err := r.Await(ctx)
			if err != nil {
				return err
			}
			x, err := tensor.Copy(ctx, y)
			if err != nil {
				return err
			}
			return w.Set(x)
		}, r, w)
	case taskFails:
		r, w := b.Read(), a.Write()
		async.Go(ctx, name(i), func(ctx context.Context) error {
			if _, err := r.Await(ctx); err != nil {
				return err
			}
			return endOf(i)
		}, r, w)
	case taskPanics:
		w := a.Write()
		async.Go(ctx, name(i), func(ctx context.Context) error { panic(endOf(i)) }, w)
	case taskLeaves:
		r, w := b.Read(), a.Write()
		async.Go(ctx, name(i), func(ctx context.Context) error {
			_, _ = r.Await(ctx) // its failure is handled
			return nil
		}, r, w)
	case holds:
		r := a.Read()
		m.later = append(m.later, func() error { r.Release(); return nil })
	case opens:
		w := a.Write()
		m.later = append(m.later, func() error {
			switch s.n % 3 {
			case 0:
				return w.Set(must(tensor.From(m.ctx, numbers(i, side*side), side, side)))
			case 1:
				return w.Fail(endOf(i))
			}
			w.Release()
			return nil
		})
	case letsGo:
		return m.letGo()
	case makes:
		m.values = append(m.values, async.New[*tensor.Array](name(i)))
	}
	return nil
}

// elements renders an array.
func elements(ctx context.Context, a *tensor.Array) (string, error) {
	if a.DType() == tensor.Int64 {
		x, err := tensor.Data[int64](ctx, a)
		return fmt.Sprint(a.DType(), a.Shape(), a.Device(), x), err
	}
	c, err := tensor.AsType(ctx, a, tensor.Complex128)
	if err != nil {
		return "", err
	}
	x, err := tensor.Data[complex128](ctx, c)
	return fmt.Sprint(a.DType(), a.Shape(), a.Device(), x), err
}

// first makes the arrays that a program begins with.
func first(ctx context.Context, dt tensor.DType) []*tensor.Array {
	var all []*tensor.Array
	for k := range 3 {
		x := must(tensor.From(ctx, numbers(k, side*side), side, side))
		all = append(all, must(tensor.AsType(ctx, x, dt)))
	}
	return all
}

// situation is where a program runs.
type situation struct {
	streams, lanes int
	debug, inline  bool
	seed           uint64
	scoped         bool
	lowering       runtime.Lowering
}

// inside calls do under a fresh runtime, and answers what closing it finds.
func inside(s situation, sched scheduler.Scheduler, do func(ctx context.Context) error) error {
	o := runtime.Options{Scheduler: sched, Tasks: scheduler.Options{Lanes: s.lanes}, ResourceOptions: runtime.ResourceOptions{Streams: s.streams, Lowering: s.lowering}}
	rt, err := runtime.StartFamilies(where.open(s.inline), o)
	if err != nil {
		return err
	}
	for _, r := range must(runtime.Enrolled()) {
		must(blas.Configure(r, 1))
		must(solver.Configure(r, 1))
	}
	ctx := context.Background()
	if sched != nil {
		ctx = scheduler.With(ctx, sched)
	}
	free := func() error { return nil }
	if s.scoped {
		ctx, free = tensor.Scope(ctx)
	}
	err = do(ctx)
	return errors.Join(err, free(), rt.Close())
}

// expect is what the program's values are to be. It marks the steps to skip.
func expect(program []step, dt tensor.DType, loose bool) (slots []slot, err error) {
	return slots, inside(situation{streams: 4, lanes: 1, scoped: true}, nil, func(ctx context.Context) error {
		m := &reference{ctx: ctx, owners: map[*buffer.Buffer]map[int]bool{}, loose: loose}
		for k, a := range first(ctx, dt) {
			m.set(k, slot{array: a})
		}
		for i := range program {
			m.step(i, &program[i])
		}
		for k := range m.slots {
			if x := &m.slots[k]; x.array != nil {
				text, err := elements(ctx, x.array)
				if err != nil { // it was freed, through another value
					text = err.Error()
				}
				x.text, x.array = text, nil
			}
		}
		slots = m.slots
		return nil
	})
}

// play runs a program, and answers how its values differ from slots, and, of a
// debug scheduler, the order of its tasks.
func play(program []step, dt tensor.DType, s situation, slots []slot) (trace []string, err error) {
	var sched scheduler.Scheduler
	if s.debug {
		sched = scheduler.NewDebug(scheduler.DebugOptions{Seed: s.seed, Trace: func(t scheduler.Info) {
			trace = append(trace, fmt.Sprint(t.Name, t.ID))
		}})
	}
	return trace, inside(s, sched, func(ctx context.Context) error {
		m := &asked{ctx: ctx}
		for _, a := range first(ctx, dt) {
			m.values = append(m.values, async.Of(a))
		}
		for i, s := range program {
			if s.skip {
				continue
			}
			if err := m.step(i, s); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		if err := m.letGo(); err != nil {
			return err
		}
		for _, v := range m.values {
			_ = v.Wait(ctx) // what views its memory may have been changed
		}
		var errs []error
		for k, v := range m.values {
			a, err := v.Get(ctx)
			if err := differs(ctx, a, err, slots[k]); err != nil {
				errs = append(errs, fmt.Errorf("value %d, %v: %w", k, v, err))
			}
		}
		return errors.Join(errs...)
	})
}

func differs(ctx context.Context, a *tensor.Array, err error, want slot) error {
	var p *async.Poison
	poisoned := errors.As(err, &p)
	switch {
	case want.fails != nil:
		if !poisoned || !slices.ContainsFunc(want.fails, func(f failure) bool { return f.of(p) }) {
			return fmt.Errorf("Get answers %v; want one of %v", err, want.fails)
		}
	case want.text == "":
		if poisoned || !errors.Is(err, weir.ErrUninitialized) {
			return fmt.Errorf("Get answers %v; want that it was never written", err)
		}
	case err != nil:
		return fmt.Errorf("Get answers %w; want %s", err, want.text)
	default:
		text, err := elements(ctx, a)
		if err != nil {
			text = err.Error()
		}
		if text != want.text {
			return fmt.Errorf("it is %s; want %s", text, want.text)
		}
	}
	return nil
}

// programs draws programs; loose ones have tasks, and operations of two logs. Half of
// the steps are some of often, if there are any.
func programs(t *rapid.T, loose bool, often []string) []step {
	var dos []string
	for do := range verbs {
		if loose || do != "svd" {
			dos = append(dos, do)
		}
	}
	slices.Sort(dos)
	if loose {
		for range 2 {
			dos = append(dos, taskVerbs...)
		}
	} else {
		dos = append(dos, makes)
	}
	one := rapid.Custom(func(t *rapid.T) step {
		n := rapid.IntRange(0, 11)
		of := dos
		if often != nil && rapid.Bool().Draw(t, "often") {
			of = often
		}
		s := step{do: rapid.SampledFrom(of).Draw(t, "do"), a: n.Draw(t, "a"), b: n.Draw(t, "b"), c: n.Draw(t, "c"), n: n.Draw(t, "n")}
		if loose {
			s.on = rapid.IntRange(0, 1).Draw(t, "on")
		}
		_, isVerb := verbs[s.do]
		s.cancelled = isVerb && rapid.IntRange(0, 11).Draw(t, "cancelled") == 0
		return s
	})
	return rapid.SliceOfN(one, 1, 24).Draw(t, "program")
}

// loweringsOfPrograms are the options that programs run with. None changes what they
// mean.
var loweringsOfPrograms = []runtime.Lowering{{}, {}, {MostTogether: 2}, {Separate: true}, {Reproducible: true}}

func testPrograms(t *testing.T, loose bool) { testProgramsOf(t, loose, nil) }

// testProgramsOf has half of the steps be some of these.
func testProgramsOf(t *testing.T, loose bool, often []string) {
	rapid.Check(t, func(t *rapid.T) {
		program := programs(t, loose, often)
		dt := rapid.SampledFrom(dtypes).Draw(t, "dtype")
		s := situation{
			streams: rapid.IntRange(1, 2).Draw(t, "streams"), lanes: rapid.IntRange(1, 2).Draw(t, "lanes"),
			debug: rapid.Bool().Draw(t, "debug"), inline: rapid.Bool().Draw(t, "inline"),
			seed: rapid.Uint64().Draw(t, "seed"), scoped: rapid.Bool().Draw(t, "scoped"),
			lowering: rapid.SampledFrom(loweringsOfPrograms).Draw(t, "lowering"),
		}
		slots, err := expect(program, dt, loose)
		if err != nil {
			t.Fatalf("the reference: %v", err)
		}
		trace, err := play(program, dt, s, slots)
		if err != nil {
			t.Fatal(err)
		}
		if !s.debug {
			return
		}
		if again, err := play(program, dt, s, slots); err != nil || !slices.Equal(trace, again) {
			t.Fatalf("seed %d ran %v once and %v again (%v)", s.seed, trace, again, err)
		}
	})
}

// TestOperationsMeanWhatTheirDirectFormsMean runs random programs of operations
// of one log, on values that share memory as they please.
func TestOperationsMeanWhatTheirDirectFormsMean(t *testing.T) { testPrograms(t, false) }

// TestOperationsAndTasksMeanTheOrderOfTheirCalls mixes operations of two logs with
// tasks on the same values, and with readers and writers that the program holds.
func TestOperationsAndTasksMeanTheOrderOfTheirCalls(t *testing.T) { testPrograms(t, true) }

// TestProgramsOfProductsMeanWhatTheirDirectFormsMean has many products, so that they
// are batched.
func TestProgramsOfProductsMeanWhatTheirDirectFormsMean(t *testing.T) {
	testProgramsOf(t, false, []string{"matmul", "matmul", "gemm into", "gemm into", "t", "slice", "free"})
}

func TestProgramsOfProductsAndTasksMeanTheOrderOfTheirCalls(t *testing.T) {
	testProgramsOf(t, true, []string{"matmul", "matmul", "gemm into", "gemm into", "t", taskChanges})
}
