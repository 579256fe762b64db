package async_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/scheduler"
)

// box is what the values of a program hold. It notes who uses it: who changes it
// in place is to have it alone.
type box struct {
	mu               sync.Mutex
	readers, writers int
	n                int
}

// use enters and leaves a box.
func (b *box) use(readers, writers int) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers += readers
	b.writers += writers
	if b.writers > 1 || b.writers == 1 && b.readers > 0 {
		err = fmt.Errorf("a box has %d readers and %d who change it in place", b.readers, b.writers)
	}
	return b.n, err
}

// step is one call of a program.
type step struct {
	do      string // task, set, write, get, read, take, make, update, consume, settle
	on      int    // the value
	reads   []access
	writes  []access
	how     string // how it ends: of a task, an operation or a writer
	handles bool   // the failures of what it reads
	cancel  string // "", before, during: while it waits for what never comes

}

// access is a gate of a task, or an input of an operation.
type access struct {
	value int
	how   string // of reads: await, release, clone, early; of writes: set, update, drop, leave
}

const values = 3

func accesses(hows ...string) *rapid.Generator[[]access] {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) access {
		return access{rapid.IntRange(0, values-1).Draw(t, "value"), rapid.SampledFrom(hows).Draw(t, "how")}
	}), 0, values, func(a access) int { return a.value })
}

var steps = rapid.Custom(func(t *rapid.T) step {
	s := step{
		do: rapid.SampledFrom([]string{"task", "task", "task", "task", "task", "set", "write", "get", "read", "read",
			"take", "make", "make", "update", "update", "consume", "settle"}).Draw(t, "do"),
		on: rapid.IntRange(0, values-1).Draw(t, "on"),
	}
	switch s.do {
	case "task":
		s.reads = accesses("await", "await", "release", "clone", "early").Draw(t, "reads")
		s.writes = accesses("set", "set", "update", "update", "drop", "leave").Draw(t, "writes")
		s.how = rapid.SampledFrom([]string{"well", "well", "well", "well", "fails", "fails late", "panics", "panics late"}).Draw(t, "ends")
		s.handles = rapid.Bool().Draw(t, "handles")
		s.cancel = rapid.SampledFrom([]string{"", "", "", "", "", "before", "during"}).Draw(t, "cancel")
	case "make", "update", "consume":
		if s.do != "consume" {
			s.reads = accesses("await").Draw(t, "reads")
		}
		s.how = rapid.SampledFrom([]string{"well", "well", "well", "fails", "panics"}).Draw(t, "ends")
		s.cancel = rapid.SampledFrom([]string{"", "", "", "", "", "before", "during"}).Draw(t, "cancel")
		if s.do == "consume" && s.cancel == "during" { // it has no input to wait for
			s.cancel = ""
		}
	case "write":
		s.how = rapid.SampledFrom([]string{"set", "fail", "drop"}).Draw(t, "ends")
	}
	return s
})

// thing is what a value is, to the reference: never written, a number, or
// poisoned by the step that failed first.
type thing struct {
	what  string // "", "number", "poison"
	n     int
	cause *failure
}

// failure is how a step failed.
type failure struct {
	step int
	op   string
	is   []error
	not  []error
}

func (th thing) String() string {
	switch th.what {
	case "number":
		return fmt.Sprint(th.n)
	case "poison":
		return "poison of " + th.cause.op
	}
	return "never written"
}

func mix(a, b int) int { return (a*31 + b + 7) % 1000003 }

var (
	errFails = errors.New("the failure that the program asked for")
	errGone  = errors.New("the cause that the program cancelled with")
)

// failed is the failure of a step of a program.
func failed(i int, s step, op string) *failure {
	f := &failure{step: i, op: op}
	switch {
	case s.cancel != "":
		f.is, f.not = []error{weir.ErrCancelled, errGone}, []error{weir.ErrUninitialized, errFails, weir.ErrPanic}
	case strings.HasPrefix(s.how, "panic"):
		f.is, f.not = []error{weir.ErrPanic}, []error{weir.ErrUninitialized, weir.ErrCancelled, errGone}
	default:
		f.is, f.not = []error{errFails}, []error{weir.ErrUninitialized, weir.ErrCancelled, weir.ErrPanic}
	}
	return f
}

func unwrittenBy(i int, op string) *failure {
	return &failure{step: i, op: op, is: []error{weir.ErrUninitialized}, not: []error{weir.ErrCancelled, errFails, weir.ErrPanic}}
}

// reference is the program executed in the order of its calls.
type reference [values]thing

func (ref *reference) task(i int, s step) {
	name := fmt.Sprintf("task %q", taskName(i))
	late := map[int]bool{}
	for _, a := range s.writes {
		late[a.value] = true // what is still open when the task fails
	}
	fail := func(f *failure) {
		for v := range late {
			ref[v] = thing{"poison", 0, f}
		}
	}
	if s.cancel != "" {
		fail(failed(i, s, name))
		return
	}
	sum, bad := i, (*failure)(nil)
	for _, a := range s.reads {
		if a.how == "release" {
			continue
		}
		switch th := ref[a.value]; th.what {
		case "number":
			sum = mix(sum, th.n)
		case "poison":
			bad = first(bad, th.cause)
			sum = mix(sum, 1)
		default:
			bad = first(bad, unwrittenBy(i, name))
			sum = mix(sum, 2)
		}
	}
	if s.how == "fails" || s.how == "panics" {
		fail(failed(i, s, name))
		return
	}
	if bad != nil && !s.handles {
		fail(bad)
		return
	}
	for _, a := range s.writes {
		switch th := ref[a.value]; a.how {
		case "set":
			ref[a.value] = thing{"number", mix(sum, a.value), nil}
		case "update":
			switch {
			case th.what == "number":
				ref[a.value] = thing{"number", mix(sum, th.n), nil}
			case th.what == "" || s.handles:
				ref[a.value] = thing{"number", mix(sum, 3), nil}
			default:
				fail(th.cause)
				return
			}
		case "leave":
			continue
		}
		delete(late, a.value)
	}
	if s.how == "fails late" || s.how == "panics late" {
		fail(failed(i, s, name))
	}
}

func first(a, b *failure) *failure {
	if a != nil {
		return a
	}
	return b
}

func (ref *reference) operation(i int, s step) {
	name := opName(i)
	var f *failure
	sum := i
	take := func(th thing) {
		switch {
		case f != nil:
		case th.what == "number":
			sum = mix(sum, th.n)
		case th.what == "poison":
			f = th.cause
		default:
			f = unwrittenBy(i, name)
		}
	}
	if s.cancel != "" { // it never gets to look at them
		f = failed(i, s, name)
	}
	for _, a := range s.reads {
		take(ref[a.value])
	}
	if s.do != "make" {
		take(ref[s.on])
	}
	if f == nil && s.how != "well" {
		f = failed(i, s, name)
	}
	switch {
	case f != nil:
		ref[s.on] = thing{"poison", 0, f}
	case s.do == "consume":
		ref[s.on] = thing{}
	default:
		ref[s.on] = thing{"number", sum, nil}
	}
}

func taskName(i int) string { return fmt.Sprintf("t%d", i) }
func opName(i int) string   { return fmt.Sprintf("model.Op%d", i) }

// play is a program that runs.
type play struct {
	ctx   context.Context
	s     scheduler.Scheduler
	log   *async.Log[*box]
	never *async.Value[*box] // until the end
	vals  [values]*async.Value[*box]
	ref   reference

	readers []heldReader
	finish  []func() // what the program itself has open: cancellations and writers
	poisons map[*failure]*async.Poison

	mu     sync.Mutex
	errors []string
}

type heldReader struct {
	r        *async.Reader[*box]
	expected thing
	what     string
}

func (p *play) errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

func (p *play) use(b *box, readers, writers int) int {
	n, err := b.use(readers, writers)
	if err != nil {
		p.errorf("%v", err)
	}
	return n
}

// check compares what was read with the reference.
func (p *play) check(what string, expected thing, b *box, err error) {
	var poison *async.Poison
	switch {
	case expected.what == "number" && err == nil:
		if n := p.use(b, 0, 0); n != expected.n {
			p.errorf("%s is %d; expected %d", what, n, expected.n)
		}
	case expected.what == "" && errors.Is(err, weir.ErrUninitialized) && !errors.As(err, &poison):
	case expected.what == "poison" && errors.As(err, &poison):
		f := expected.cause
		if was := p.poisons[f]; was != nil && was != poison {
			p.errorf("%s is poisoned by another object than others were by the same cause: %v and %v", what, poison, was)
		}
		p.poisons[f] = poison
		if !strings.HasPrefix(poison.Op, f.op) {
			p.errorf("%s is poisoned by %q; expected %q", what, poison.Op, f.op)
		}
		for _, is := range append(f.is, weir.ErrPoisoned) {
			if !errors.Is(err, is) {
				p.errorf("%s: %v does not match %v", what, err, is)
			}
		}
		for _, not := range f.not {
			if errors.Is(err, not) {
				p.errorf("%s: %v matches %v", what, err, not)
			}
		}
	default:
		p.errorf("%s is %v, %v; expected %v", what, b, err, expected)
	}
}

// settle ends what the program has open, which tasks wait for.
func (p *play) settle(but *async.Reader[*box]) {
	for _, f := range p.finish {
		f()
	}
	p.finish = nil
	for _, h := range p.readers {
		if h.r != but {
			h.r.Release()
		}
	}
	p.readers = nil
}

func (p *play) later(f func()) { p.finish = append(p.finish, f) }

// cancelled is the context of a step that is cancelled.
func (p *play) context(s step) context.Context {
	if s.cancel == "" {
		return p.ctx
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	if s.cancel == "before" {
		cancel(errGone)
	} else {
		p.later(func() { cancel(errGone) })
	}
	return ctx
}

func (p *play) task(i int, s step) {
	readers := make([]*async.Reader[*box], len(s.reads))
	writers := make([]*async.Writer[*box], len(s.writes))
	var gates []async.Gate
	for k, a := range s.reads {
		readers[k] = p.vals[a.value].Read()
		gates = append(gates, readers[k])
	}
	for k, a := range s.writes {
		writers[k] = p.vals[a.value].Write()
		gates = append(gates, writers[k])
	}
	async.Go(p.context(s), taskName(i), func(ctx context.Context) error {
		if s.cancel != "" {
			_, err := p.never.Get(ctx)
			return err
		}
		sum, bad := i, error(nil)
		held := map[int]func(){}
		defer func() {
			for _, a := range s.reads { // in an order, for the trace
				if leave := held[a.value]; leave != nil {
					leave()
				}
			}
		}()
		for k, a := range s.reads {
			r := readers[k]
			if a.how == "release" {
				r.Release()
				continue
			}
			var c *async.Reader[*box]
			if a.how == "clone" {
				c = r.Clone()
			}
			b, err := r.Await(ctx)
			if c != nil {
				r.Release()
				again, errAgain := c.Await(ctx)
				if b != again || fmt.Sprint(errAgain) != fmt.Sprint(err) {
					p.errorf("a clone reads %v, %v; its reader %v, %v", again, errAgain, b, err)
				}
				r = c
			}
			switch {
			case err == nil:
				sum = mix(sum, p.use(b, 1, 0))
				scheduler.Breathe(ctx)
				held[a.value] = func() { p.use(b, -1, 0); r.Release() }
			case errors.Is(err, weir.ErrPoisoned):
				sum = mix(sum, 1)
				held[a.value] = r.Release
			default:
				sum = mix(sum, 2)
				held[a.value] = r.Release
			}
			if a.how == "early" {
				held[a.value]()
				delete(held, a.value)
			}
			if bad == nil {
				bad = err
			}
		}
		switch {
		case s.how == "fails":
			return errFails
		case s.how == "panics":
			panic("as the program asked for")
		case bad != nil && !s.handles:
			return bad
		}
		for k, a := range s.writes {
			w := writers[k]
			switch a.how {
			case "set":
				if err := w.Set(&box{n: mix(sum, a.value)}); err != nil {
					p.errorf("Set: %v", err)
				}
			case "update":
				if leave := held[a.value]; leave != nil {
					leave()
					delete(held, a.value)
				}
				b, err := w.Await(ctx)
				switch {
				case err == nil:
					n := p.use(b, 0, 1)
					scheduler.Breathe(ctx)
					b.n = mix(sum, n)
					p.use(b, 0, -1)
				case errors.Is(err, weir.ErrUninitialized) && !errors.Is(err, weir.ErrPoisoned) || s.handles:
					b = &box{n: mix(sum, 3)}
				default:
					return err
				}
				if err := w.Set(b); err != nil {
					p.errorf("Set: %v", err)
				}
			case "drop":
				w.Release()
			}
		}
		switch s.how {
		case "fails late":
			return errFails
		case "panics late":
			panic("as the program asked for")
		}
		return nil
	}, gates...)
}

// op is an operation of a program.
type op struct {
	p *play
	i int
	s step
}

func (o op) Name() string { return opName(o.i) }

func (o op) Launch(ctx context.Context, in []*box) (*box, error) {
	end := o.begin(in)
	scheduler.Breathe(ctx)
	return end()
}

// begin enters what the operation uses; end leaves it and answers what was made.
func (o op) begin(in []*box) (end func() (*box, error)) {
	var target *box
	reads := in
	if o.s.do != "make" {
		target, reads = in[len(in)-1], in[:len(in)-1]
	}
	if target != nil {
		o.p.use(target, 0, 1)
	}
	for _, b := range reads {
		if b != target {
			o.p.use(b, 1, 0)
		}
	}
	return func() (*box, error) {
		sum := o.i
		for _, b := range reads {
			sum = mix(sum, b.n)
			if b != target {
				o.p.use(b, -1, 0)
			}
		}
		if target != nil {
			sum = mix(sum, target.n)
			o.p.use(target, 0, -1)
		}
		switch {
		case o.s.how == "fails":
			return nil, errFails
		case o.s.how == "panics":
			panic("as the program asked for")
		case target == nil:
			return &box{n: sum}, nil
		}
		target.n = sum
		return target, nil
	}
}

// atRandom launches the operations of a level in any order, some of them together:
// all of those are begun before one ends.
type atRandom struct{ random *rand.Rand }

func (l atRandom) LaunchAll(ctx context.Context, level []async.Launch[*box]) {
	type member struct {
		*async.Launch[*box]
		end func() (*box, error)
	}
	var together []member
	end := func() {
		for _, m := range together {
			if b, err := m.end(); err != nil {
				m.Fail(err)
			} else {
				m.Made(b)
			}
		}
		together = nil
	}
	for _, i := range l.random.Perm(len(level)) {
		x := &level[i]
		if o := x.Op.(op); o.s.how != "panics" && l.random.IntN(3) > 0 {
			if _, err := x.Context(ctx); err != nil {
				x.Fail(err)
			} else {
				together = append(together, member{x, o.begin(x.In)})
			}
		} else {
			x.Alone(ctx)
		}
		if l.random.IntN(4) == 0 {
			end()
		}
	}
	end()
}

func (p *play) operation(i int, s step) {
	o := op{p: p, i: i, s: s}
	ctx := p.context(s)
	var in []*async.Value[*box]
	for _, a := range s.reads {
		in = append(in, p.vals[a.value])
	}
	if s.cancel == "during" {
		in = append(in, p.never)
	}
	switch s.do {
	case "make":
		p.vals[s.on] = p.log.Make(ctx, p.s, callers.Site{}, false, o, in...)
	case "update":
		p.log.Update(ctx, p.s, callers.Site{}, false, o, p.vals[s.on], in...)
	case "consume":
		p.log.Take(ctx, p.s, callers.Site{}, o, p.vals[s.on])
	}
}

// calls makes the calls of the program, in order, and looks at what values end up
// as.
func (p *play) calls(program []step) {
	for i, s := range program {
		v := p.vals[s.on]
		what := fmt.Sprintf("v%d at step %d", s.on, i)
		switch s.do {
		case "task":
			p.ref.task(i, s)
			p.task(i, s)
		case "make", "update", "consume":
			p.ref.operation(i, s)
			p.operation(i, s)
		case "set":
			p.ref[s.on] = thing{"number", i, nil}
			if err := v.Set(&box{n: i}); err != nil {
				p.errorf("Set: %v", err)
			}
		case "write":
			w := v.Write()
			end := func() { w.Release() }
			switch s.how {
			case "set":
				p.ref[s.on] = thing{"number", i, nil}
				end = func() { _ = w.Set(&box{n: i}) }
			case "fail":
				p.ref[s.on] = thing{"poison", 0, failed(i, step{}, "the write of value")}
				end = func() { _ = w.Fail(errFails) }
			}
			p.later(end)
		case "read":
			h := heldReader{v.Read(), p.ref[s.on], what}
			if i%2 == 1 {
				c := h.r.Clone()
				h.r.Release()
				h.r = c
			}
			p.readers = append(p.readers, h)
		case "settle":
			var but heldReader
			if n := len(p.readers); n > 0 {
				but = p.readers[i%n]
			}
			p.settle(but.r)
			if but.r != nil {
				b, err := but.r.Await(p.ctx)
				p.check("a reader of "+but.what, but.expected, b, err)
				but.r.Release()
			}
		case "get":
			p.settle(nil)
			b, err := v.Get(p.ctx)
			p.check(what, p.ref[s.on], b, err)
		case "take":
			p.settle(nil)
			b, err := v.Take(p.ctx)
			p.check("what is taken of "+what, p.ref[s.on], b, err)
			if err == nil {
				p.ref[s.on] = thing{}
			}
		}
	}
	p.settle(nil)
	for k, v := range p.vals {
		b, err := v.Get(p.ctx)
		p.check(fmt.Sprintf("v%d in the end", k), p.ref[k], b, err)
	}
}

// run plays a program on a scheduler, with a launcher that launches together what
// the seed says, or nothing if that is 0, and answers what is wrong.
func run(s scheduler.Scheduler, seed uint64, program []step) []string {
	p := &play{ctx: scheduler.With(context.Background(), s), s: s, poisons: map[*failure]*async.Poison{}}
	var with async.Launcher[*box]
	if seed > 0 {
		with = atRandom{rand.New(rand.NewPCG(seed, 1))}
	}
	p.log = async.NewLog(context.Background(), "", with)
	p.never = async.New[*box]("never")
	w := p.never.Write()
	for k := range p.vals {
		p.vals[k] = async.New[*box](fmt.Sprintf("v%d", k))
	}
	p.calls(program)
	w.Release()
	if err := s.Close(); err != nil {
		p.errorf("Close: %v", err)
	}
	if err := p.log.Close(); err != nil {
		p.errorf("the log's Close: %v", err)
	}
	if c := s.Counts(); c.Live != 0 {
		p.errorf("%d tasks live in the end", c.Live)
	}
	return p.errors
}

func programs(rt *rapid.T) []step {
	return rapid.SliceOfN(steps, 1, 24).Draw(rt, "program")
}

func TestUnderTheDebugSchedulerProgramsComeOutAsIfExecutedInCallOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		program := programs(rt)
		for seed := range uint64(6) {
			var traces [2][]string
			for k := range traces {
				s := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed, Trace: func(i scheduler.Info) { traces[k] = append(traces[k], i.String()) }})
				if errs := run(s, seed, program); errs != nil {
					rt.Fatalf("seed %d: %s", seed, strings.Join(errs, "\n"))
				}
			}
			for k, turn := range traces[0] {
				if len(traces[1]) != len(traces[0]) || turn != traces[1][k] {
					rt.Fatalf("seed %d has two traces, of %d and %d turns; the first has at turn %d\n%s", seed, len(traces[0]), len(traces[1]), k, turn)
				}
			}
		}
	})
}

// An operation that stepped aside is cancelled by a goroutine of the context's,
// so these are for a scheduler that expects goroutines.
func TestUnderThePoolProgramsComeOutAsIfExecutedInCallOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		program := programs(rt)
		for _, lanes := range []int{1, 2, 4} {
			for seed := range uint64(2) {
				s, err := scheduler.NewPool(scheduler.Options{Lanes: lanes})
				if err != nil {
					rt.Fatal(err)
				}
				if errs := run(s, seed, program); errs != nil {
					rt.Fatalf("%d lanes, launcher %d: %s", lanes, seed, strings.Join(errs, "\n"))
				}
			}
		}
	})
}

func (l atRandom) Scarce(error) bool { return false }

func (l atRandom) Together() bool { return true }

func (l atRandom) Window() {}
