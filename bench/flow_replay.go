package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

const (
	replayedSteps  = 64
	replayedWidth  = 8
	mostReplay     = 0.8 // us an operation
	mostReplayLoss = 1.05
)

var flowReplay = Scenario{
	Name: "flow-replay",
	About: "64 products of 64×64 of float32, recorded by flow.Record and replayed, until the last is done: in 8 layers of 8, each of two of the layer" +
		" before, and as a chain; beside the same captured in C over 8 streams, or one, and replayed",
	Need: "0.8 us an operation in layers, 1.05 of the captured graph as a chain",
	On:   GPUOnly,
	Cases: func(env Env) []Case {
		return []Case{
			replayCase(env, "in layers", layeredProducts(requiredSmall, replayedWidth, replayedSteps/replayedWidth), stream.DefaultCount, Limit{Of: OfValue, Max: mostReplay}),
			replayCase(env, "in a chain", chainProducts(requiredSmall, replayedSteps), 1, Limit{Of: OfRatio, Max: mostReplayLoss}),
		}
	},
}

// layeredProducts are products of rotations, which are rotations: each of two of the
// layer before, the first layer of sources. No two are alike, or a compiler would
// compute one for all.
func layeredProducts(n, width, layers int) products {
	var p products
	for i := range width {
		p.sources = append(p.sources, rotation(n, i))
	}
	for l := range layers {
		for i := range width {
			p.steps = append(p.steps, step{l*width + i, l*width + (i+1)%width, n, n, n})
		}
	}
	return p
}

func replayCase(env Env, what string, p products, streams int, limit Limit) Case {
	c := Case{Name: fmt.Sprintf("%d sgemm %d %s, replayed / captured in C over %d streams", len(p.steps), requiredSmall, what, streams),
		Unit: Microseconds, Limits: []Limit{limit}}
	c.Open = func(ctx context.Context) (*Trial, error) {
		x, err := openFlow(ctx, env, p, func(env Env, p products) (*reference, error) { return loopReference(env, p, streams, true) })
		if err != nil {
			return nil, err
		}
		g, err := flow.Record(x.ctx, x.program, x.arrays...)
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		r := &replaying{flowing: x, graph: g}
		t := x.trial()
		t.Value = func(int) (time.Duration, error) { return r.replay(nil) }
		t.Check = r.check
		t.Close = func() error { return errors.Join(g.Close(), x.close()) }
		return t, nil
	}
	return c
}

// program is what is recorded: all products, of which the final ones are kept.
func (x *flowing) program(ctx context.Context, in []*flow.Value) (finals []*flow.Value, err error) {
	values := in
	for _, s := range x.steps {
		values = append(values, flow.MatMul(ctx, values[s.a], values[s.b]))
	}
	for _, i := range x.finals {
		finals = append(finals, values[len(x.sources)+i])
	}
	return finals, nil
}

// replaying replays products.
type replaying struct {
	*flowing
	graph *flow.Graph
}

// replay is a round; look sees what is left of it.
func (x *replaying) replay(look func(i int, a *tensor.Array) error) (done time.Duration, err error) {
	start, before := time.Now(), cpuTime()
	outs, err := x.graph.Replay(x.ctx)
	if err != nil {
		return 0, err
	}
	asked := time.Since(start)
	for _, a := range outs {
		if err := settle(a); err != nil {
			return 0, err
		}
	}
	done = time.Since(start)
	x.sent.add(asked, len(x.steps))
	x.cpu.add(cpuTime()-before, len(x.steps))
	for k, a := range outs {
		if look == nil {
			break
		}
		if err := look(x.finals[k], a); err != nil {
			return 0, err
		}
	}
	return done, nil
}

// check wants a graph of the device, with the reference's results.
func (x *replaying) check() error {
	if err := x.graph.Reason(); err != nil {
		return err
	}
	if _, err := x.ref.run(); err != nil {
		return err
	}
	_, err := x.replay(func(i int, a *tensor.Array) error {
		want, err := x.ref.result(i)
		if err != nil {
			return err
		}
		return compare(a, want, x.terms(i))
	})
	x.sent, x.cpu = samples{}, samples{}
	if err == nil {
		x.further, err = x.ref.figures()
	}
	return err
}
