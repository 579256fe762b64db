//go:build cuda

package bench

import (
	"time"

	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/tensor"
)

// mostSubmission is how many microseconds a submission may take beyond the
// floor's.
const mostSubmission = 1.5

func gpuSmallCases(env Env) []Case {
	required := []Limit{{Of: OfExcess, Max: mostSubmission}, {Of: OfAllocs, Max: 0}}
	return []Case{
		smallProductCase(env, "sgemm 64 GemmInto, submission / C loop", 1, (*smallProducts).submission, required...),
		smallProductCase(env, "sgemm 64 GemmInto, submission, 8 in a row / C loop over 8 streams", 8, (*smallProducts).submission, required...),
		smallProductCase(env, "sgemm 64 GemmInto, until done / C loop", 1, (*smallProducts).untilDone),
	}
}

// smallProducts are products of 64×64 into one result, in bursts that find the
// device idle.
type smallProducts struct {
	x       *rig
	a, b, c twin
	burst   int // which has as many streams
}

// smallProductCase takes from the floor what part does: submission or untilDone.
func smallProductCase(env Env, name string, burst int, part func(*smallProducts) (value, floor Loop), limits ...Limit) Case {
	c := Case{Name: name, Unit: Microseconds, Limits: limits}
	return onGPU(env, c, burst, func(x *rig) (*Trial, error) {
		made, err := twins[float32](x, requiredSmall, 3, 1)
		if err != nil {
			return nil, err
		}
		p := &smallProducts{x: x, a: made[0], b: made[1], c: made[2], burst: burst}
		t := &Trial{Allocs: true, Check: p.check, Figures: func(r Result) []Figure { return gemmFigures(r, requiredSmall) }}
		t.Value, t.Floor = part(p)
		return t, nil
	})
}

// submission waits for the result between bursts, as programs do, and that is not
// measured: only the submission of work to streams that are idle is.
func (p *smallProducts) submission() (value, floor Loop) {
	return func(n int) (took time.Duration, err error) {
			for ; n > 0; n -= p.burst {
				start := time.Now()
				for range min(n, p.burst) {
					if err := tensor.GemmInto(p.x.ctx, 1, p.a.array, p.b.array, 0, p.c.array); err != nil {
						return 0, err
					}
				}
				took += time.Since(start)
				if err := settle(p.c.array); err != nil {
					return 0, err
				}
			}
			return took, nil
		}, func(n int) (time.Duration, error) {
			t, err := p.floor(n)
			return t.Submit, err
		}
}

func (p *smallProducts) untilDone() (value, floor Loop) {
	return each(func() error {
			if err := tensor.GemmInto(p.x.ctx, 1, p.a.array, p.b.array, 0, p.c.array); err != nil {
				return err
			}
			return settle(p.c.array)
		}), func(n int) (time.Duration, error) {
			t, err := p.floor(n)
			return t.Done, err
		}
}

func (p *smallProducts) floor(n int) (floor.Times, error) {
	return p.x.gpu.Products(floor.Single, requiredSmall, p.a.at, p.b.at, []floor.Address{p.c.at}, p.burst, n, p.burst)
}

func (p *smallProducts) check() error {
	if _, err := p.floor(p.burst); err != nil {
		return err
	}
	if err := tensor.GemmInto(p.x.ctx, 1, p.a.array, p.b.array, 0, p.c.array); err != nil {
		return err
	}
	return same[float32](p.x, p.c.array, p.c.at, requiredSmall)
}
