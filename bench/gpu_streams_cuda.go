//go:build cuda

package bench

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
)

const (
	independentSize, quickIndependentSize = 1024, 64
	mostStreamsRatio                      = 1.02
)

func gpuStreamsCases(env Env) []Case {
	n := independentSize
	if env.Quick {
		n = quickIndependentSize
	}
	const count = stream.DefaultCount
	c := Case{Name: fmt.Sprintf("%d sgemm %d GemmInto / C loop over %d streams", count, n, count), Unit: Microseconds,
		Limits: []Limit{{Of: OfRatio, Max: mostStreamsRatio}}}
	return []Case{onGPU(env, c, count, func(x *rig) (*Trial, error) {
		made, err := twins[float32](x, n, 2+count, 1)
		if err != nil {
			return nil, err
		}
		s := &independent{x: x, n: n, a: made[0], b: made[1], results: made[2:]}
		return &Trial{Value: s.value, Floor: s.raw, Fixed: count, Check: s.check, Figures: s.figures}, nil
	})}
}

// independent is products that share operands and no result.
type independent struct {
	x       *rig
	n       int
	a, b    twin
	results []twin
	sent    samples // the host's time to submit, of value and floor
	floor   samples
}

func (s *independent) value(count int) (time.Duration, error) {
	start := time.Now()
	for _, c := range s.results[:count] {
		if err := tensor.GemmInto(s.x.ctx, 1, s.a.array, s.b.array, 0, c.array); err != nil {
			return 0, err
		}
	}
	s.sent.add(time.Since(start), count)
	for _, c := range s.results[:count] {
		if err := settle(c.array); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

func (s *independent) raw(count int) (time.Duration, error) {
	var results []floor.Address
	for _, c := range s.results {
		results = append(results, c.at)
	}
	t, err := s.x.gpu.Products(floor.Single, s.n, s.a.at, s.b.at, results, len(results), count, count)
	s.floor.add(t.Submit, count)
	return t.Done, err
}

func (s *independent) check() error {
	if _, err := s.value(len(s.results)); err != nil {
		return err
	}
	if _, err := s.raw(len(s.results)); err != nil {
		return err
	}
	s.sent, s.floor = samples{}, samples{} // the first use loads the library
	for _, c := range s.results {
		if err := same[float32](s.x, c.array, c.at, s.n); err != nil {
			return err
		}
	}
	return nil
}

func (s *independent) figures(r Result) []Figure {
	n := float64(s.n)
	return []Figure{{"rate", 2 * n * n * n / Unit(r.Unit).seconds(r.Value) / 1e12, "TFLOP/s"}, s.sent.figure("submit"), s.floor.figure("floor submit")}
}
