package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/graph"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
)

// Program asks for operations on the values in, under the context that it is given,
// and answers the values that it is for.
type Program = func(ctx context.Context, in []*Value) ([]*Value, error)

// Graph is a program that was recorded: on a device that has graphs, Replay launches
// all its operations at once, at the cost of one. Where it cannot, each replay asks
// for the operations anew, and Reason says why.
//
// A graph owns the arrays that Replay answers, and all memory that the program uses
// in between, none of which is used twice in it: that stays until Close. It keeps
// the inputs of a few latest replays reachable.
//
// It is safe for concurrent use: replays are in the order of the calls, on the device
// too.
type Graph struct {
	program   Program
	resources *runtime.Resources
	memory    *buffer.Memory
	kinds     []kind // of the inputs
	name      string // where it was recorded
	stack     string // in debug mode
	reason    atomic.Pointer[error]

	turn // of whoever uses what follows

	closed  bool
	inputs  []*tensor.Array // of the latest replay
	lanes   *graph.Lanes
	arrays  tensor.Arrays
	settled int               // how many of them come after whoever used their memory before
	shown   []*buffer.Buffer  // those of them that results of any entry lie in
	entries []*entry          // the latest first
	last    stream.Completion // of the latest launch, or of what its memory was used for before
	results []*tensor.Array   // of replays that are no launches
}

// entry is a graph of the device, for inputs at certain places in memory.
type entry struct {
	inputs  []*tensor.Array
	graph   driver.Graph
	outside []tensor.Outside
	made    []*buffer.Buffer // what it writes of the graph's arrays
	open    []*buffer.Buffer // those of them that somebody else may use
	outs    []*tensor.Array
}

// mostEntries is how many of them a graph keeps: enough for inputs in two buffers
// that take turns, for each of two programs' states.
const mostEntries = 4

// kind is what inputs have in common.
type kind struct {
	dtype tensor.DType
	shape []int
}

func kindOf(a *tensor.Array) kind { return kind{a.DType(), a.Shape()} }

func (k kind) is(a *tensor.Array) bool {
	return a.DType() == k.dtype && slices.Equal(a.Shape(), k.shape)
}

func (k kind) String() string {
	if len(k.shape) == 0 {
		return fmt.Sprintf("%v ()", k.dtype)
	}
	extents := make([]string, len(k.shape))
	for i, n := range k.shape {
		extents[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("%v %s", k.dtype, strings.Join(extents, "×"))
}

// Record has program asked for once, with inputs that are written already, and
// answers the graph of its operations. They are recorded and not computed: so the
// program cannot wait for what it asked for, and what it decides by itself, such as
// how often a loop runs, is decided for all replays. Everything that it is to ask
// for it asks for under the context that it is given. The graph is of the inputs'
// device, or ctx's if there are none; arrays that the program finds elsewhere are
// used where they are, and are none that the graph itself made.
//
// What a graph cannot have, such as decompositions, Apply, tasks, waits, replays, copies
// from and to the host or another device, is no error: then Reason names it, and each
// replay runs the program. Errors are those of the program and of its operations,
// and ErrArgument of inputs that are nil or on several devices.
//
// Record waits as operations do, for memory. Close gives the graph back.
//
//go:noinline
func Record(ctx context.Context, program Program, inputs ...*tensor.Array) (*Graph, error) {
	const op = "flow.Record"
	site := callers.At(callers.PCs())
	if program == nil {
		return nil, weir.Argf(op, "the program is nil; expected a function")
	}
	r, err := deviceOf(ctx, op, inputs)
	if err != nil {
		return nil, err
	}
	m, err := buffer.Of(r)
	if err != nil {
		return nil, err
	}
	g := &Graph{program: program, resources: r, memory: m, name: site.String(), lanes: graph.NewLanes(r.Device().Driver())}
	if r.Options().Debug {
		g.stack = callers.Stack()
	}
	for i, a := range inputs {
		if err := g.usable(op, i, a); err != nil {
			return nil, err
		}
		g.kinds = append(g.kinds, kindOf(a))
	}
	live, err := runtime.Use(r, runtime.StageProvider, newGraphs)
	if err != nil {
		return nil, err
	}
	g.inputs = slices.Clone(inputs)
	switch err := g.record(ctx); {
	case errors.Is(err, weir.ErrNotRecordable):
		if err := g.giveBack(); err != nil {
			return nil, err
		}
		g.reason.Store(&err)
	case err != nil:
		return nil, cmp.Or(err, g.giveBack())
	}
	live.add(g)
	return g, nil
}

// deviceOf is where a graph of the inputs is.
func deviceOf(ctx context.Context, op string, inputs []*tensor.Array) (*runtime.Resources, error) {
	if len(inputs) == 0 || inputs[0].Device().IsZero() {
		return runtime.Here(ctx)
	}
	return runtime.For(inputs[0].Device())
}

// usable refuses an input that is no array, was freed, or is elsewhere: on another
// device, or on the same of another runtime.
func (g *Graph) usable(op string, i int, a *tensor.Array) error {
	switch {
	case a.Device().IsZero():
		return weir.Argf(op, "input %d is %s; expected an array that a constructor or an operation made", i, map[bool]string{true: "nil", false: "the zero Array"}[a == nil])
	case !a.Buffer().Live():
		return &weir.Error{Op: op, Device: a.Device().Name(), Kind: weir.KindLogic, Message: fmt.Sprintf("input %d was freed; expected a live array", i), Err: weir.ErrClosed}
	case a.Device().Name() == g.resources.Device().Name() && a.Buffer().Memory() != g.memory:
		return &weir.Error{Op: op, Kind: weir.KindLogic, Err: weir.ErrClosed,
			Message: fmt.Sprintf("input %d belongs to a runtime that was closed; expected an array of the one that runs", i)}
	case a.Buffer().Memory() != g.memory:
		return weir.Argf(op, "input %d is on %s; expected %s, where the graph is", i, a.Device(), g.resources.Device())
	}
	return nil
}

// Reason is nil of a graph of the device, else why each replay asks for the
// program's operations anew: an ErrNotRecordable that names the first that a graph
// cannot have.
func (g *Graph) Reason() error {
	if why := g.reason.Load(); why != nil {
		return *why
	}
	return nil
}

// Replay computes the program with inputs, or, without any, with those of the latest
// replay, and answers what it makes: the same arrays each time, written anew, or
// views of inputs where the program answers such. It returns when that is submitted;
// operations on the arrays that are asked for before and after see what was there
// before and after. An input may be a result of an earlier replay: then the results
// lie in other arrays than that one.
//
// Inputs are of the number, shapes, element types and device that were recorded, or
// it is an ErrArgument that says which is not; freed ones are an ErrClosed, and what
// another goroutine has open at the moment is an ErrBusy, as for operations. Where
// other inputs lie elsewhere in memory than before, the program is recorded for
// them, and a few of such recordings are kept. It waits, under ctx, as an operation
// does, and for replays before it to be submitted. A program may not replay its own
// graph, which is an ErrDeadlock.
//
// What is asked of tensor/flow counts from when it is launched: wait for the value of
// a change in place (async.Value.Wait) before a replay that is to see it.
func (g *Graph) Replay(ctx context.Context, inputs ...*tensor.Array) ([]*tensor.Array, error) {
	const op = "flow.Replay"
	if r := recorderOf(ctx); r != nil {
		return nil, r.Refuse(op, "it launches a graph, which none can have in it")
	}
	if ctx.Value(g) != nil {
		return nil, &weir.Error{Op: op, Device: g.resources.Device().Name(), Kind: weir.KindLogic, Err: weir.ErrDeadlock,
			Message: "the graph's own program asks for it, and it would wait for itself; expected another graph, or none"}
	}
	if err := g.take(ctx, op); err != nil {
		return nil, err
	}
	defer g.give()
	if g.closed {
		return nil, &weir.Error{Op: op, Device: g.resources.Device().Name(), Kind: weir.KindLogic, Message: "the graph was closed", Err: weir.ErrClosed}
	}
	if err := g.with(op, inputs); err != nil {
		return nil, err
	}
	if g.Reason() == nil && !g.found() {
		if err := g.record(ctx); errors.Is(err, weir.ErrNotRecordable) {
			g.reason.Store(&err)
		} else if err != nil {
			return nil, err
		}
	}
	if g.Reason() != nil {
		return g.run(ctx)
	}
	e := g.entries[0]
	if err := g.launch(ctx, e); err != nil {
		return nil, err
	}
	return slices.Clone(e.outs), nil
}

// with has inputs be those of the replay, if there are any.
func (g *Graph) with(op string, inputs []*tensor.Array) error {
	if len(inputs) == 0 {
		inputs = g.inputs
	}
	if len(inputs) != len(g.kinds) {
		return weir.Argf(op, "%d inputs; expected %d, as were recorded", len(inputs), len(g.kinds))
	}
	for i, a := range inputs {
		if err := g.usable(op, i, a); err != nil { // those of before may have been freed
			return err
		}
	}
	if slices.Equal(inputs, g.inputs) {
		return nil
	}
	for i, a := range inputs {
		if !g.kinds[i].is(a) {
			return weir.Argf(op, "input %d is %v; expected %v, as was recorded", i, kindOf(a), g.kinds[i])
		}
	}
	g.inputs = slices.Clone(inputs)
	return nil
}

// found puts the entry for the inputs first; false if there is none.
func (g *Graph) found() bool {
	i := slices.IndexFunc(g.entries, func(e *entry) bool { return slices.EqualFunc(e.inputs, g.inputs, samePlace) })
	if i > 0 {
		e := g.entries[i]
		copy(g.entries[1:i+1], g.entries[:i])
		g.entries[0] = e
	}
	return i >= 0
}

// samePlace says whether two arrays of one shape and type are the same elements.
func samePlace(a, b *tensor.Array) bool {
	return a == b || a.Buffer() == b.Buffer() && a.Offset() == b.Offset() && a.IsConj() == b.IsConj() && slices.Equal(a.Strides(), b.Strides())
}

// launch launches the graph: one access and one launch, behind the launch before.
func (g *Graph) launch(ctx context.Context, e *entry) error {
	s, err := g.resources.Streams().AcquireAfter(ctx, stream.After{g.last})
	if err != nil {
		return err
	}
	acc := buffer.Begin(s)
	for _, o := range e.outside {
		if o.Written {
			acc.Write(o.Buffer)
		} else {
			acc.Read(o.Buffer)
		}
	}
	for _, b := range e.open {
		acc.Write(b)
	}
	return g.submit(s, &acc, e.graph)
}

// submit submits work, or nothing, to s, behind all that the graph's memory was used
// for, ends the access and gives s back.
func (g *Graph) submit(s stream.Stream, acc *buffer.Access, work driver.Graph) error {
	var err error
	if acc.Err() == nil {
		err = g.submitTo(s, work)
	}
	ended := acc.End()
	last, failed := s.Tail() // which End recorded
	g.last = last
	return cmp.Or(err, ended, failed, s.Release())
}

func (g *Graph) submitTo(s stream.Stream, work driver.Graph) error {
	if err := s.Wait(g.last); err != nil {
		return err
	}
	if work == nil {
		return nil
	}
	d, err := s.Submit()
	if err != nil {
		return err
	}
	return work.Launch(d)
}

// run asks for the program's operations, has them launched and copies what they made
// to the graph's own arrays.
func (g *Graph) run(ctx context.Context) (outs []*tensor.Array, err error) {
	ctx, free := tensor.Scope(runtime.On(context.WithValue(ctx, g, true), g.resources.Device()))
	defer func() {
		if err = cmp.Or(err, free()); err != nil {
			outs = nil
		}
	}()
	values, err := g.program(ctx, valuesOf(g.inputs))
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if v == nil {
			return nil, noValue("flow.Replay", i)
		}
		a, err := v.Get(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(g.inputs, func(in *tensor.Array) bool { return in.Buffer() == a.Buffer() }) {
			if a, err = g.kept(ctx, i, a); err != nil {
				return nil, err
			}
		}
		outs = append(outs, a)
	}
	return outs, nil
}

// kept copies result i to the array that the graph keeps for it.
func (g *Graph) kept(ctx context.Context, i int, a *tensor.Array) (*tensor.Array, error) {
	for len(g.results) <= i {
		g.results = append(g.results, nil)
	}
	if k := g.results[i]; k == nil || !kindOf(k).is(a) || k.Device() != a.Device() {
		k, err := g.arrays.Like(a)
		if err != nil {
			return nil, err
		}
		g.results[i] = k
	}
	return g.results[i], tensor.CopyInto(ctx, g.results[i], a)
}

// Close gives back what the graph has, its arrays among it. It waits for the latest
// replay to be done, so it is not for the program itself to call. A second Close does
// nothing.
func (g *Graph) Close() error {
	if err := g.take(context.Background(), "flow.Close"); err != nil {
		return err
	}
	defer g.give()
	if g.closed {
		return nil
	}
	g.closed = true
	if live, err := runtime.Use(g.resources, runtime.StageProvider, newGraphs); err == nil {
		live.remove(g)
	}
	g.inputs, g.program = nil, nil // nobody is kept from being garbage by a closed graph
	return g.giveBack()
}

// giveBack gives everything back.
func (g *Graph) giveBack() error {
	errs := []error{g.last.Wait(context.Background())}
	for _, e := range g.entries {
		errs = append(errs, e.graph.Destroy())
	}
	errs = append(errs, g.lanes.Close(), g.arrays.Free())
	g.entries, g.results, g.shown, g.settled, g.last = nil, nil, nil, 0, stream.Completion{}
	if lost := g.resources.Device().Err(); lost != nil { // every call says so; once is enough
		return cmp.Or(errs...)
	}
	return errors.Join(errs...)
}
