//go:build cuda

package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/tensor"
)

const (
	smallChainLength = 64
	mostChainRatio   = 1.1
)

func gpuChainCases(env Env) []Case {
	return []Case{
		smallChainCase(env, "GemmInto / C loop", (*smallChain).direct),
		smallChainCase(env, "one lease / C loop", (*smallChain).leased),
	}
}

// smallChain is products of 64×64 of which each takes the one before, into two
// results alternately.
type smallChain struct {
	x     *rig
	a, b  twin
	turns [2]twin
	sent  samples // the host's time to submit, of value and floor
	floor samples
}

// smallChainCase is beside a loop on one stream, which records an event after each
// product, as Weir must for whoever asks for that product alone.
func smallChainCase(env Env, name string, submit func(*smallChain, int) (*tensor.Array, error)) Case {
	c := Case{Name: fmt.Sprintf("%d products of 64, %s", smallChainLength, name), Unit: Microseconds, Limits: []Limit{{Of: OfRatio, Max: mostChainRatio}}}
	return onGPU(env, c, 1, func(x *rig) (*Trial, error) {
		made, err := twins[float32](x, requiredSmall, 4, unitScale(requiredSmall))
		if err != nil {
			return nil, err
		}
		s := &smallChain{x: x, a: made[0], b: made[1], turns: [2]twin{made[2], made[3]}}
		return &Trial{
			Value: func(n int) (time.Duration, error) {
				start := time.Now()
				last, err := submit(s, n)
				if err != nil {
					return 0, err
				}
				s.sent.add(time.Since(start), n)
				err = settle(last)
				return time.Since(start), err
			},
			Floor: s.raw, Fixed: smallChainLength,
			Check: func() error {
				if _, err := s.raw(smallChainLength); err != nil {
					return err
				}
				s.floor = samples{} // the first use loads the library
				for range 2 {       // it has its events then
					last, err := submit(s, smallChainLength)
					if err != nil {
						return err
					}
					if err := same[float32](x, last, s.turns[(smallChainLength-1)%2].at, requiredSmall*smallChainLength); err != nil {
						return err
					}
				}
				return nil
			},
			Figures: func(Result) []Figure { return []Figure{s.sent.figure("submit"), s.floor.figure("floor submit")} },
		}, nil
	})
}

func (s *smallChain) raw(n int) (time.Duration, error) {
	t, err := s.x.gpu.Chain(floor.Single, requiredSmall, s.a.at, s.b.at, [2]floor.Address{s.turns[0].at, s.turns[1].at}, 1, n)
	s.floor.add(t.Submit, n)
	return t.Done, err
}

// direct is what a program writes.
func (s *smallChain) direct(n int) (*tensor.Array, error) {
	last := s.a.array
	for i := range n {
		next := s.turns[i%2].array
		if err := tensor.GemmInto(s.x.ctx, 1, last, s.b.array, 0, next); err != nil {
			return nil, err
		}
		last = next
	}
	return last, nil
}

// leased keeps one handle and one stream for all, as a lowered chain does.
func (s *smallChain) leased(n int) (_ *tensor.Array, err error) {
	l, err := blas.AcquireOn(s.x.ctx, s.x.r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	last := s.a.array
	for i := range n {
		next := s.turns[i%2].array
		if err := squareProduct(&l, last, s.b.array, next); err != nil {
			return nil, err
		}
		last = next
	}
	return last, nil
}

// squareProduct submits C = A·B of row-major square matrices of float32 on a
// lease. To a column-major BLAS they are transposed: Cᵀ = Bᵀ·Aᵀ.
func squareProduct(l *blas.Lease, a, b, c *tensor.Array) error {
	n := int64(a.Shape()[0])
	acc := buffer.Begin(l.Stream())
	p := blas.Product{DType: a.DType(), M: n, N: n, K: n, Alpha: 1, Batch: 1, LDA: n, LDB: n, LDC: n}
	p.A, p.B, p.C = acc.Read(b.Buffer()), acc.Read(a.Buffer()), acc.Write(c.Buffer())
	if acc.Err() != nil {
		return acc.End()
	}
	return errors.Join(blas.Gemm(l, &p), acc.End())
}
