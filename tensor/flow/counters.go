package flow

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
)

// Counters say how the operations of a device became launches since the runtime
// started. What was never launched, since what it needs failed or its context had ended
// when it was asked for, is in none of them, nor are replays.
type Counters struct {
	ByOperation map[string]OperationCounters // by name: "flow.MatMul"
	Batches     uint64                       // of several operations each
	Streams     stream.Counters              // of the device's pool, by whomever they were used
}

// OperationCounters are those of the operations of one name.
type OperationCounters struct {
	Launched uint64 // or failed at it
	Batched  uint64 // of those, how many shared a batch
	Failed   uint64
}

// Operations is the sum over all names.
func (c *Counters) Operations() (sum OperationCounters) {
	for _, o := range c.ByOperation {
		sum.Launched += o.Launched
		sum.Batched += o.Batched
		sum.Failed += o.Failed
	}
	return sum
}

// Count answers the counters of ctx's device now. What was asked for and not
// launched yet is not in them.
func Count(ctx context.Context) (Counters, error) {
	l, err := here(ctx)
	if err != nil {
		return Counters{}, err
	}
	r, err := runtime.Here(ctx)
	if err != nil {
		return Counters{}, err
	}
	c := Counters{Batches: l.batches.Load(), Streams: r.Streams().Counters()}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.ByOperation = make(map[string]OperationCounters, len(l.byName))
	for name, o := range maps.All(l.byName) {
		c.ByOperation[name] = *o
	}
	return c, nil
}

// counts are what a log counts.
type counts struct {
	batches atomic.Uint64

	mu     sync.Mutex // guards what follows
	byName map[string]*OperationCounters
	name   string // the last one
	last   *OperationCounters
}

// launched counts an operation whose launch is over.
func (c *counts) launched(x *async.Launch[*tensor.Array], batched, failed bool) {
	if _, ok := x.Op.(nothing); ok {
		return
	}
	name := x.Op.Name()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || c.name != name {
		if c.byName == nil {
			c.byName = map[string]*OperationCounters{}
		}
		if c.byName[name] == nil {
			c.byName[name] = &OperationCounters{}
		}
		c.name, c.last = name, c.byName[name]
	}
	c.last.Launched++
	if batched {
		c.last.Batched++
	}
	if failed {
		c.last.Failed++
	}
}
