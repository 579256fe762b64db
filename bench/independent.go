package bench

import (
	"context"
	"fmt"

	"github.com/weirgo/weir/runtime"
)

const (
	// The extents of independent products, and how few and how many there are.
	requiredMedium           = 256
	fewProducts, allProducts = 64, 4096
	// The extent and number of those of a quick run.
	quickSize, quickCount = 16, 24
	// Those on the host device that have a requirement.
	hostProductSize, hostProducts = 32, 1000
)

var flowIndependent = Scenario{
	Name: "flow-independent",
	About: "independent products of float32 through flow.MatMul, each of two matrices of its own, from the first call until all results," +
		" which are allocated meanwhile, are done; on a GPU beside one batch in C, the fastest of three: by strides, by arrays of" +
		" addresses that are there, by arrays that are built and copied; on the host device beside the same BLAS in a loop",
	Need: "on a GPU, for each product: of 64, 0.5 us in 4096 and 0.9 us in 64; of 256, 1.3 us; and at most 0.5 us of the process's CPU time in" +
		" 4096 of 64",
	Cases: func(env Env) []Case {
		host := env.Resources.Device().IsHost()
		if env.Quick {
			return []Case{independentFlowCase(env, quickSize, quickCount, nil)}
		}
		var cases []Case
		for _, c := range []struct {
			n, count int
			most     float64
		}{{requiredSmall, fewProducts, 0.9}, {requiredSmall, allProducts, 0.5}, {requiredMedium, fewProducts, 1.3}, {requiredMedium, allProducts, 1.3}} {
			limits := []Limit{{Of: OfValue, Max: c.most}}
			if c.n == requiredSmall && c.count == allProducts {
				limits = append(limits, Limit{Of: OfFigure, Figure: processCPU, Max: 0.5})
			}
			if host {
				limits = nil
			}
			if host && c.n*c.count > requiredSmall*allProducts { // gibibytes, and seconds a round
				continue
			}
			cases = append(cases, independentFlowCase(env, c.n, c.count, limits))
		}
		return cases
	},
}

var flowHost = Scenario{
	Name:  "flow-host",
	About: "1000 independent products of 32×32 of float32 through flow.MatMul until all are done, beside the same BLAS in a loop, on plain memory",
	Need:  "not slower than the loop on one core; faster on several",
	On:    HostOnly,
	Cases: func(env Env) []Case {
		count := hostProducts
		if env.Quick {
			count = quickCount
		}
		return []Case{independentFlowCase(env, hostProductSize, count, []Limit{{Of: OfRatio, Max: 1}})}
	},
}

func independentFlowCase(env Env, n, count int, limits []Limit) Case {
	floor, beside := "batch in C", batchReference
	if env.Resources.Device().IsHost() {
		floor, beside = "BLAS", nil
	}
	return flowCase(env, Case{
		Name: fmt.Sprintf("%d sgemm %d flow.MatMul / %s", count, n, floor), Unit: Microseconds, Limits: limits,
		At: Point{Series: "independent sgemm flow.MatMul / " + floor, Size: n, Count: count},
	}, independentProducts, n, count, beside)
}

// flowCase opens products on env's device, beside the host's BLAS where beside is
// nil.
func flowCase(env Env, c Case, of func(n, count int) products, n, count int, beside func(Env, products) (*reference, error)) Case {
	c.Open = func(ctx context.Context) (*Trial, error) {
		x, err := openFlow(ctx, env, of(n, count), beside)
		if err != nil {
			return nil, err
		}
		return x.trial(), nil
	}
	return c
}

func openFlow(ctx context.Context, env Env, p products, beside func(Env, products) (*reference, error)) (*flowing, error) {
	if beside == nil {
		beside = func(_ Env, p products) (*reference, error) { return hostReference(p) }
	}
	ref, err := beside(env, p)
	if err != nil {
		return nil, err
	}
	return newFlowing(runtime.On(ctx, env.Resources.Device()), p, ref)
}
