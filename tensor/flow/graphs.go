package flow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
)

// graphs are those of one device that are not closed. That they are reachable here
// keeps the collector from memory that a launch may still use.
type graphs struct {
	mu  sync.Mutex
	all map[*Graph]struct{}
}

func newGraphs(*runtime.Resources) (*graphs, error) { return &graphs{all: map[*Graph]struct{}{}}, nil }

func (x *graphs) add(g *Graph) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[g] = struct{}{}
}

func (x *graphs) remove(g *Graph) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.all, g)
}

func (x *graphs) list() []*Graph {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.all))
}

// Drain has nothing to refuse: a replay needs a stream, of which there are none.
func (x *graphs) Drain() error { return nil }

// Close closes those that were not.
func (x *graphs) Close() error {
	var errs []error
	for _, g := range x.list() {
		errs = append(errs, g.Close())
	}
	return errors.Join(errs...)
}

// Live lists the graphs that were not closed.
func (x *graphs) Live() []runtime.Leak {
	var live []runtime.Leak
	for _, g := range x.list() {
		live = append(live, runtime.Leak{Kind: "graph", Name: "recorded at " + g.name, Device: g.resources.Device().Name(), Stack: g.stack})
	}
	return live
}

// turn is a mutex that tasks wait for without their lane, first come, first served.
type turn struct {
	mu      sync.Mutex // guards what follows
	taken   bool
	waiting scheduler.Queue[struct{}]
}

func (t *turn) take(ctx context.Context, op string) error {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return nil
	}
	w := t.waiting.Push(ctx)
	t.mu.Unlock()
	_, came, err := w.Wait(ctx, replaying{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !came && t.waiting.Remove(w) {
		return &weir.Error{Op: op, Kind: weir.KindLogic, Message: "gave up waiting for " + replaying{}.String(), Err: scheduler.GaveUp(ctx, err)}
	}
	return nil
}

func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.waiting.Pop(); w != nil {
		w.Deliver(struct{}{}, nil)
		return
	}
	t.taken = false
}

// replaying is the wait for the turn.
type replaying struct{}

func (replaying) String() string             { return "an earlier replay of the graph to be submitted" }
func (replaying) Ends() scheduler.Ending     { return scheduler.ByHolder }
func (replaying) Holders() []*scheduler.Task { return []*scheduler.Task{nil} }
