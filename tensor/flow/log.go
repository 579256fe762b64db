package flow

import (
	"context"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// Value is an array that is written in the future.
type Value = async.Value[*tensor.Array]

// operation is what a log launches.
type operation = async.Operation[*tensor.Array]

// log is the operations of one device that were asked for and not launched yet.
type log struct {
	*async.Log[*tensor.Array]
	base context.Context
	held bool // it is a recorder's
	counts
}

func newLog(r *runtime.Resources) (*log, error) {
	base := runtime.On(context.Background(), r.Device())
	l := &log{base: base}
	with, err := newLauncher(r, &l.counts)
	if err != nil {
		return nil, err
	}
	l.Log = async.NewLog(base, r.Device().Name(), async.Launcher[*tensor.Array](with))
	return l, nil
}

// Drain fails what can no longer be launched.
func (l *log) Drain() error { return l.Log.Close() }

// Close has nothing to give back.
func (l *log) Close() error { return nil }

// Live is nothing: a log holds values, not memory.
func (l *log) Live() []runtime.Leak { return nil }

// Flush waits until what was asked for so far is launched, or stepped aside.
func (l *log) Flush(ctx context.Context) uint64 {
	if l.held { // there is nothing to free in a scope of a program that is recorded
		return 0
	}
	n := l.Returned() // before the turn below: they are launched then
	if s, err := runtime.Scheduler(ctx); err == nil {
		_ = l.Turn(l.base, s, nothing{}).Wait(ctx)
	}
	return n
}

// nothing is an operation that only takes its turn.
type nothing struct{}

func (nothing) Name() string                                                   { return "flow.Flush" }
func (nothing) Launch(context.Context, []*tensor.Array) (*tensor.Array, error) { return nil, nil }

// here answers the log of ctx's device, or of the program that is recorded under ctx.
func here(ctx context.Context) (*log, error) {
	if r := recorderOf(ctx); r != nil {
		return r.log, nil
	}
	r, err := runtime.Here(ctx)
	if err != nil {
		return nil, err
	}
	return runtime.Use(r, runtime.StageLog, newLog)
}

// ask asks for a new value. It is called by the function that the user calls,
// which is where the site is.
//
//go:noinline
func ask(ctx context.Context, op operation, in ...*Value) *Value {
	return askAt(ctx, callers.At(callers.PCs()), op, in...)
}

// askAt is ask at a site that is known.
func askAt(ctx context.Context, at callers.Site, op operation, in ...*Value) *Value {
	l, err := here(ctx)
	if err == nil {
		err = present(op.Name(), in)
	}
	if err != nil {
		return async.Poisoned[*tensor.Array](op.Name(), at, err)
	}
	s, err := runtime.Scheduler(ctx)
	if err != nil {
		return async.Poisoned[*tensor.Array](op.Name(), at, err)
	}
	keep := tensor.BeforeFree(ctx, l)
	if m, ok := op.(*made); ok && m.views && len(in) > 0 {
		return l.View(ctx, s, at, keep, m, in...)
	}
	return l.Make(ctx, s, at, keep, op, in...)
}

// change asks for target to be changed in place, and answers it.
//
//go:noinline
func change(ctx context.Context, op operation, target *Value, in ...*Value) *Value {
	at := callers.At(callers.PCs())
	l, err := here(ctx)
	if err == nil {
		err = present(op.Name(), in)
	}
	if target == nil {
		if err == nil {
			err = weir.Argf(op.Name(), "the value to change is nil; expected a value")
		}
		return async.Poisoned[*tensor.Array](op.Name(), at, err)
	}
	s, none := runtime.Scheduler(ctx)
	if err == nil {
		err = none
	}
	if err != nil {
		_ = target.Write().Fail(async.PoisonAt(op.Name(), at, err)) // a fresh writer is open
		return target
	}
	l.Update(ctx, s, at, tensor.BeforeFree(ctx, l), op, target, in...)
	return target
}

// take asks for op to be done with what target is, which is then nothing, though ctx
// has ended or ends: to give back is what one does then.
//
//go:noinline
func take(ctx context.Context, op operation, target *Value) {
	at := callers.At(callers.PCs())
	if target == nil {
		return
	}
	l, err := here(ctx)
	if err != nil { // without a runtime there is no memory either
		return
	}
	if s, err := runtime.Scheduler(ctx); err == nil {
		l.Take(context.WithoutCancel(ctx), s, at, op, target)
	}
}

// present refuses operands that are nil.
func present(op string, in []*Value) error {
	for k, v := range in {
		if v == nil {
			return weir.Argf(op, "operand %d is nil; expected a value", k)
		}
	}
	return nil
}

// made is an operation given by a function, which keeps what else it needs.
type made struct {
	name   string
	views  bool // what it makes may share the memory of the first input
	launch func(ctx context.Context, in []*tensor.Array) (*tensor.Array, error)
}

func (m *made) Name() string { return m.name }

// Shares says whether what it made lies in the first input's memory.
func (m *made) Shares(result, first *tensor.Array) bool { return result.Buffer() == first.Buffer() }

func (m *made) Launch(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
	if err := arrays(m.name, in); err != nil {
		return nil, err
	}
	return m.launch(ctx, in)
}

// arrays refuses inputs that are nil.
func arrays(op string, in []*tensor.Array) error {
	for k, a := range in {
		if a == nil {
			return weir.Argf(op, "operand %d is a nil array; expected an array", k)
		}
	}
	return nil
}
