//go:build cuda

package bench

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/profile"
	"github.com/weirgo/weir/tensor"
)

const (
	// gpuLargeSize is the extent of large products, and quickLargeSize that of a
	// quick run.
	gpuLargeSize, quickLargeSize = 8192, 96
	// leastGPUFraction is what they must reach of raw cuBLAS.
	leastGPUFraction = 0.99
	// gpuChainLength is how many of them follow each other: the first hides what
	// the host needs to submit the others, and with the stream that times them
	// they need no more streams than a pool has.
	gpuChainLength = 6
)

func gpuGemmCases(env Env) []Case {
	return []Case{
		largeChainCase[float32](env, "sgemm", floor.Single),
		largeChainCase[float64](env, "dgemm", floor.Double),
		largeChainCase[float32](env, "sgemm in TF32", floor.TF32),
	}
}

func largeChainCase[T element](env Env, name string, k floor.Kind) Case {
	n := gpuLargeSize
	if env.Quick {
		n = quickLargeSize
	}
	c := Case{Name: fmt.Sprintf("%s %d MatMul / cuBLAS, on the device", name, n), Unit: Microseconds,
		Limits: []Limit{{Of: OfRatio, Max: 1 / leastGPUFraction}}}
	return onGPU(env, c, 1, func(x *rig) (*Trial, error) {
		l, err := newLargeChain[T](x, n, k)
		if err != nil {
			return nil, err
		}
		return &Trial{Value: l.value, Floor: l.floor, Fixed: gpuChainLength, Check: l.check, Figures: l.figures}, nil
	})
}

// largeChain is products of which each takes the one before.
type largeChain[T element] struct {
	x           *rig
	kind        floor.Kind
	n           int
	a, b        twin
	turns       [2]floor.Address
	here, there samples // the host's times
}

func newLargeChain[T element](x *rig, n int, k floor.Kind) (*largeChain[T], error) {
	l := &largeChain[T]{x: x, kind: k, n: n}
	made, err := twins[T](x, n, 2, unitScale(n))
	if err != nil {
		return nil, err
	}
	l.a, l.b = made[0], made[1]
	for i := range l.turns {
		if l.turns[i], err = x.alloc(l.a.array.Bytes()); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// unitScale makes a random n×n matrix neither grow nor shrink what it multiplies:
// uniform elements in [-s, s) have variance s²/3, and rows of variance 1/n length 1.
func unitScale(n int) float64 { return math.Sqrt(3 / float64(n)) }

// submit makes count products, and answers the last one.
func (l *largeChain[T]) submit(count int) (*tensor.Array, error) {
	last := l.a.array
	for range count {
		next, err := l.product(last)
		if last != l.a.array {
			err = errors.Join(err, last.Free())
		}
		if err != nil {
			return nil, err
		}
		last = next
	}
	return last, nil
}

func (l *largeChain[T]) product(a *tensor.Array) (*tensor.Array, error) {
	if l.kind == floor.TF32 {
		return tensor.MatMul(l.x.ctx, a, l.b.array, tensor.FastTF32)
	}
	return tensor.MatMul(l.x.ctx, a, l.b.array)
}

// value is the device's time, taken on a stream that waits for the last product.
func (l *largeChain[T]) value(count int) (took time.Duration, err error) {
	s, err := l.x.r.Streams().Acquire(l.x.ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Release()) }()
	timer, err := profile.Begin(s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, timer.Release()) }()
	start := time.Now()
	last, err := l.submit(count)
	if err != nil {
		return 0, err
	}
	l.here.add(time.Since(start), count)
	acc := buffer.Begin(s)
	acc.Read(last.Buffer())
	if err := errors.Join(timer.End(), acc.End()); err != nil {
		return 0, err
	}
	took, err = timer.Elapsed(l.x.ctx)
	return took, errors.Join(err, last.Free())
}

func (l *largeChain[T]) floor(count int) (time.Duration, error) {
	t, err := l.x.gpu.Chain(l.kind, l.n, l.a.at, l.b.at, l.turns, 1, count)
	l.there.add(t.Submit, count)
	return t.Device, err
}

// check compares one product, in which rounding cannot hide another precision
// where n is small, and a chain of them.
func (l *largeChain[T]) check() error {
	for _, count := range []int{1, gpuChainLength} {
		if _, err := l.floor(count); err != nil {
			return err
		}
		last, err := l.submit(count)
		if err != nil {
			return err
		}
		err = same[T](l.x, last, l.turns[(count-1)%2], l.n*count)
		if err := errors.Join(err, last.Free()); err != nil {
			return err
		}
	}
	l.here, l.there = samples{}, samples{} // the first use loads the library
	return nil
}

func (l *largeChain[T]) figures(r Result) []Figure {
	seconds := Unit(r.Unit).seconds(r.Value)
	n := float64(l.n)
	return []Figure{
		{"fraction", 1 / r.Ratio, ""}, {"rate", 2 * n * n * n / seconds / 1e12, "TFLOP/s"},
		l.here.figure("submit"), l.there.figure("floor submit"),
	}
}
