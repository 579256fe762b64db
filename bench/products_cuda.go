//go:build cuda

package bench

import (
	"errors"
	"time"

	"github.com/weirgo/weir/csrc/floor"
)

// bed is the floor's GPU with a place for each operand of products. Those of one
// shape lie one behind the other, as far as they are numbered so.
type bed struct {
	products
	gpu *floor.GPU
	at  []floor.Address // of sources and results
	end []func() error
}

// newBed puts the sources on the device of env, for a floor over so many streams.
func newBed(env Env, p products, streams int) (*bed, error) {
	gpu, err := floor.Open(env.Resources.Device().Ordinal(), streams)
	if err != nil {
		return nil, err
	}
	x := &bed{products: p, gpu: gpu, end: []func() error{gpu.Close}}
	if err := x.fill(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *bed) fill() error {
	sizes := make([]int64, 0, len(x.sources)+len(x.steps))
	for _, s := range x.sources {
		sizes = append(sizes, 4*int64(len(s.data)))
	}
	for _, s := range x.steps {
		sizes = append(sizes, 4*int64(s.m*s.n))
	}
	const alignment = 256
	total := int64(0)
	for _, n := range sizes {
		total += (n + alignment - 1) / alignment * alignment
	}
	base, err := x.gpu.Alloc(total)
	if err != nil {
		return err
	}
	x.end = append(x.end, func() error { return x.gpu.Free(base) })
	next := base
	for _, n := range sizes {
		x.at = append(x.at, next)
		next += floor.Address((n + alignment - 1) / alignment * alignment)
	}
	for i, s := range x.sources {
		if _, err := x.gpu.CopyIn(x.at[i], bytesOf(s.data)); err != nil {
			return err
		}
	}
	return nil
}

func (x *bed) result(i int) ([]float32, error) {
	data := make([]float32, x.steps[i].m*x.steps[i].n)
	_, err := x.gpu.CopyOut(bytesOf(data), x.at[len(x.sources)+i])
	return data, err
}

func (x *bed) close() error {
	var errs []error
	for i := len(x.end) - 1; i >= 0; i-- {
		errs = append(errs, x.end[i]())
	}
	return errors.Join(errs...)
}

// loopReference submits the products one by one over so many streams, or replays what
// was captured of that; the other way is a figure.
func loopReference(env Env, p products, streams int, replayed bool) (*reference, error) {
	x, err := newBed(env, p, streams)
	if err != nil {
		return nil, err
	}
	var steps []floor.Step
	for i, s := range p.steps {
		t := floor.Step{A: x.at[s.a], B: x.at[s.b], C: x.at[len(p.sources)+i], M: s.m, N: s.n, K: s.k}
		for _, operand := range [2]int{s.a, s.b} {
			if operand >= len(p.sources) {
				t.After = append(t.After, operand-len(p.sources))
			}
		}
		steps = append(steps, t)
	}
	program, err := x.gpu.Program(steps, streams)
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	x.end = append(x.end, program.Close)
	var sent samples
	return &reference{
		run: func() (time.Duration, error) {
			once := program.Run
			if replayed {
				once = func() (floor.Times, error) { return program.Replay(1) }
			}
			t, err := once()
			sent.add(t.Submit, len(steps))
			return t.Done, err
		},
		result: x.result,
		figures: func() ([]Figure, error) {
			if replayed {
				eager, err := attempts(len(steps), program.Run)
				return []Figure{sent.figure("floor submit"), eager.figure("floor one by one")}, err
			}
			replay, err := attempts(len(steps), func() (floor.Times, error) { return program.Replay(1) })
			return []Figure{sent.figure("floor submit"), replay.figure("floor as a graph")}, err
		},
		close: x.close,
	}, nil
}

// batchReference gives all products, which are independent and of one shape whose
// bytes are a multiple of the bed's alignment, to cuBLAS at once, in the way that is
// the fastest here; all are figures.
func batchReference(env Env, p products) (*reference, error) {
	x, err := newBed(env, p, 1)
	if err != nil {
		return nil, err
	}
	count := len(p.steps)
	batch, err := x.gpu.Batch(p.steps[0].n, x.at[0], x.at[count], x.at[2*count], count)
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	x.end = append(x.end, batch.Close)
	var figures []Figure
	fastest, least := floor.Strided, 0.0
	for _, w := range []struct {
		way  floor.Way
		name string
	}{{floor.Strided, "floor by strides"}, {floor.Pointers, "floor by addresses"}, {floor.CopiedPointers, "floor by copied addresses"}} {
		s, err := attempts(count, func() (floor.Times, error) { return batch.Run(w.way) })
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		f := s.figure(w.name)
		if figures = append(figures, f); len(figures) == 1 || f.Value < least {
			fastest, least = w.way, f.Value
		}
	}
	return &reference{
		run: func() (time.Duration, error) {
			t, err := batch.Run(fastest)
			return t.Done, err
		},
		result: x.result, figures: func() ([]Figure, error) { return figures, nil }, close: x.close,
	}, nil
}

// attempts times something of n operations several times, once more before to warm
// up.
func attempts(n int, run func() (floor.Times, error)) (s samples, err error) {
	for k := range 10 {
		t, err := run()
		if err != nil {
			return s, err
		}
		if k > 0 {
			s.add(t.Done, n)
		}
	}
	return s, nil
}
