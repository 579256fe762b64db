package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
)

// recorder is the log of a program that is recorded. It holds what is asked for
// until the program has returned, so that all of it is one set: what can be launched
// together then is. The operations themselves are recorded by package tensor.
type recorder struct {
	*tensor.Recording
	log *log
}

type recorderKey struct{}

// recorderOf is the recorder of what is asked for under ctx, or nil.
func recorderOf(ctx context.Context) *recorder {
	r, _ := ctx.Value(recorderKey{}).(*recorder)
	return r
}

// record records the program for the inputs, as the first of the entries.
func (g *Graph) record(ctx context.Context) error {
	in := make([]*buffer.Buffer, len(g.inputs))
	for i, a := range g.inputs {
		in[i] = a.Buffer()
	}
	r := &recorder{Recording: tensor.NewRecording(g.memory, &g.arrays, in...)}
	e := &entry{inputs: g.inputs}
	outs, err := r.program(ctx, g)
	if err != nil {
		return err
	}
	e.outs, e.outside = outs, r.Outside()
	if err := g.settle(ctx); err != nil {
		return err
	}
	e.graph, err = g.lanes.Capture(r.Nodes())
	if errors.Is(err, weir.ErrNotSupported) {
		return &weir.Error{Op: "flow.Record", Kind: weir.KindLogic, Err: fmt.Errorf("%w: %w", weir.ErrNotRecordable, err)}
	}
	if err != nil {
		return err
	}
	g.entries = slices.Insert(g.entries, 0, e)
	for _, a := range g.arrays.All() {
		if b := a.Buffer(); r.Made(b) {
			e.made = append(e.made, b)
		}
	}
	for _, a := range outs {
		if b := a.Buffer(); r.Made(b) && !slices.Contains(g.shown, b) {
			g.shown = append(g.shown, b)
		}
	}
	for _, e := range g.entries {
		e.open = slices.DeleteFunc(slices.Clone(e.made), func(b *buffer.Buffer) bool { return !slices.Contains(g.shown, b) })
	}
	if len(g.entries) <= mostEntries {
		return nil
	}
	oldest := g.entries[mostEntries]
	g.entries = slices.Delete(g.entries, mostEntries, mostEntries+1)
	if err := g.last.Wait(context.WithoutCancel(ctx)); err != nil { // it may be the one that runs
		return err
	}
	return oldest.graph.Destroy()
}

// program has the program of g recorded and answers what it makes.
func (r *recorder) program(ctx context.Context, g *Graph) ([]*tensor.Array, error) {
	device := g.resources.Device()
	base := context.WithValue(r.Under(runtime.On(ctx, device)), recorderKey{}, r)
	r.log = &log{base: base, held: true}
	with, err := newLauncher(g.resources, &r.log.counts)
	if err != nil {
		return nil, err
	}
	r.log.Log = async.NewHeldLog(base, device.Name(), async.Launcher[*tensor.Array](with))
	values, err := g.program(r.log.Under(base), valuesOf(g.inputs))
	waited := r.log.Launch(ctx)
	switch refused := r.End(); {
	case refused != nil:
		return nil, refused
	case waited != nil:
		return nil, waited
	case err != nil:
		return nil, err
	}
	outs := make([]*tensor.Array, len(values))
	for i, v := range values {
		if v == nil {
			return nil, noValue("flow.Record", i)
		}
		read := v.Read()
		a, known, err := read.TryAwait()
		read.Release()
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, &weir.Error{Op: "flow.Record", Kind: weir.KindLogic, Err: weir.ErrNotRecordable,
				Message: fmt.Sprintf("%v, which the program answers, is not written yet", v)}
		}
		outs[i] = a
	}
	return outs, nil
}

func noValue(op string, i int) error {
	return weir.Argf(op, "value %d of the program is nil; expected a value", i)
}

// settle has the graph come after whoever used the memory of its arrays before.
func (g *Graph) settle(ctx context.Context) error {
	fresh := g.arrays.All()[g.settled:]
	if len(fresh) == 0 {
		return nil
	}
	s, err := g.resources.Streams().AcquireAfter(ctx, stream.After{g.last})
	if err != nil {
		return err
	}
	acc := buffer.Begin(s)
	for _, a := range fresh {
		acc.Write(a.Buffer())
	}
	if err := g.submit(s, &acc, nil); err != nil {
		return err
	}
	g.settled += len(fresh)
	return nil
}

// valuesOf are values that are written.
func valuesOf(arrays []*tensor.Array) []*Value {
	values := make([]*Value, len(arrays))
	for i, a := range arrays {
		values[i] = async.Of(a)
	}
	return values
}
