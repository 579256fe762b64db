package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

const (
	chainLength       = 1000
	mostFlowChain     = 1.05
	leastMixed        = 16
	mostMixed         = 128
	mixedCount        = 1000
	mostMixedRatio    = 1.0 / 3
	smallAmongLarge   = 1000
	largeAmongSmall   = 8192
	mostDelay         = 1.2
	quickLargeInFlow  = 64
	quickChainInFlow  = 12
	quickMixedProduct = 24
)

var flowChain = Scenario{
	Name: "flow-chain",
	About: "1000 products of 64×64 of float32, each of the one before, through flow.MatMul, which allocates, and flow.Free, until the last is done;" +
		" on a GPU beside a loop of cuBLAS in C on one stream, which records no events; on the host device beside the same BLAS",
	Need: "on a GPU 1.05 of the loop in C",
	Cases: func(env Env) []Case {
		count := chainLength
		if env.Quick {
			count = quickChainInFlow
		}
		return []Case{loopCase(env, "64 in a chain", chainProducts, requiredSmall, count, 1, mostFlowChain)}
	},
}

var flowMixed = Scenario{
	Name: "flow-mixed",
	About: "1000 independent products of float32 whose three extents are random, from 16 to 128 each, through flow.MatMul until all are done; on a GPU" +
		" beside a loop of cuBLAS in C on one stream; on the host device beside the same BLAS",
	Need: "on a GPU at most a third of the loop in C",
	Cases: func(env Env) []Case {
		count := mixedCount
		if env.Quick {
			count = quickMixedProduct
		}
		mixed := func(most, count int) products { return mixedProducts(leastMixed, most, count) }
		return []Case{loopCase(env, fmt.Sprintf("of %d to %d", leastMixed, mostMixed), mixed, mostMixed, count, 1, mostMixedRatio)}
	},
}

var flowStreams = Scenario{
	Name:  "flow-streams",
	About: "8 independent products of 1024 of float32 through flow.MatMul until all are done, beside a loop of cuBLAS in C over 8 streams",
	Need:  "1.02 of the loop in C",
	On:    GPUOnly,
	Cases: func(env Env) []Case {
		n := 1024
		if env.Quick {
			n = quickLargeInFlow
		}
		return []Case{loopCase(env, fmt.Sprint(n), independentProducts, n, stream.DefaultCount, stream.DefaultCount, 1.02)}
	},
}

// loopCase is beside a loop in C over so many streams, on the host device beside the
// BLAS.
func loopCase(env Env, what string, of func(n, count int) products, n, count, streams int, most float64) Case {
	c := Case{Name: fmt.Sprintf("%d sgemm %s flow.MatMul / BLAS", count, what), Unit: Microseconds}
	if env.Resources.Device().IsHost() {
		return flowCase(env, c, of, n, count, nil)
	}
	c.Name = fmt.Sprintf("%d sgemm %s flow.MatMul / C loop over %d streams", count, what, streams)
	c.Limits = []Limit{{Of: OfRatio, Max: most}}
	return flowCase(env, c, of, n, count, func(env Env, p products) (*reference, error) { return loopReference(env, p, streams, false) })
}

var flowLargeAmongSmall = Scenario{
	Name: "flow-large-among-small",
	About: "1000 independent products of 64×64 through flow.MatMul until they are done, among which, in the middle, one of 8192 is asked for, which is" +
		" waited for later; beside the same without the large one",
	Need: "at most 1.2 times as long",
	On:   GPUOnly,
	Cases: func(env Env) []Case {
		n, count := largeAmongSmall, smallAmongLarge
		if env.Quick {
			n, count = 2*quickLargeInFlow, quickCount
		}
		c := Case{Name: fmt.Sprintf("%d sgemm %d with one of %d / without", count, requiredSmall, n), Unit: Microseconds,
			Limits: []Limit{{Of: OfRatio, Max: mostDelay}}}
		c.Open = func(ctx context.Context) (*Trial, error) {
			x, err := openFlow(ctx, env, independentProducts(requiredSmall, count), batchReference)
			if err != nil {
				return nil, err
			}
			large, err := tensor.Full(x.ctx, 1, tensor.Float32, n, n)
			if err != nil {
				return nil, errors.Join(err, x.close())
			}
			among := &largeAmong{flowing: x, large: large, n: n}
			t := x.trial()
			t.Value, t.Floor = among.round, t.Value
			t.Figures, t.Peers = nil, nil // both are through flow
			t.Check = func() error {
				if err := x.check(); err != nil {
					return err
				}
				return among.check()
			}
			t.Close = func() error { return errors.Join(large.Free(), x.close()) }
			return t, nil
		}
		return []Case{c}
	},
}

// largeAmong asks for the square of a large matrix of ones among small products.
type largeAmong struct {
	*flowing
	large *tensor.Array
	n     int
}

func (x *largeAmong) round(int) (time.Duration, error) {
	return x.with(nil, func(*tensor.Array) error { return nil })
}

// with is a round; looks see the small results and the large one.
func (x *largeAmong) with(small func(i int, a *tensor.Array) error, large func(a *tensor.Array) error) (done time.Duration, err error) {
	v := async.Of(x.large)
	var square *flow.Value
	start, before := time.Now(), cpuTime()
	for i := range x.steps {
		if i == len(x.steps)/2 {
			square = flow.MatMul(x.ctx, v, v)
		}
		x.ask(i)
	}
	defer func() {
		a, failure := square.Get(x.ctx)
		if failure == nil {
			failure = errors.Join(settle(a), large(a))
		}
		flow.Free(x.ctx, square)
		err = errors.Join(err, failure, x.flush())
	}()
	return x.finish(start, before, time.Since(start), small)
}

// check compares small results among which the large one runs, and looks at that.
func (x *largeAmong) check() error {
	_, err := x.with(func(i int, a *tensor.Array) error {
		if i%max(1, len(x.steps)/mostCompared) != 0 {
			return nil
		}
		want, err := x.ref.result(i)
		if err != nil {
			return err
		}
		return compare(a, want, x.terms(i))
	}, func(a *tensor.Array) error {
		corner, err := a.Slice(tensor.Span(0, 1), tensor.Span(x.n-8, x.n))
		if err != nil {
			return err
		}
		data, err := tensor.Data[float32](x.ctx, corner)
		if err != nil {
			return err
		}
		for i, v := range data {
			if v != float32(x.n) {
				return wrong("element %d of a row of the large product of ones is %v; expected %d", i, v, x.n)
			}
		}
		return nil
	})
	x.sent, x.cpu = samples{}, samples{}
	return err
}
