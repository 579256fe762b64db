package devicetest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/stream"
)

var decisionTests = []test{
	{"results do not depend on which stream was given", func(f *fixture) {
		const n, length = 6, 40
		random := rand.New(rand.NewPCG(2, 2))
		var contents [][]float64
		for range 4 {
			m := make([]float64, n*n)
			for i := range m {
				m[i] = random.Float64()*0.6 - 0.3
			}
			contents = append(contents, m)
		}
		var results [][]float64
		used := map[string]bool{}
		for _, streams := range []int{1, 5} {
			w := f.memory(pool(streams))
			s := w.lease(w.r)
			var m []*buffer.Buffer
			for _, c := range contents {
				m = append(m, w.matrix(s, c))
			}
			w.sync(s)
			w.ok(s.Release())
			for i := range length {
				var held []stream.Stream // so that any of the others is left
				for range random.IntN(streams) {
					held = append(held, w.lease(w.r))
				}
				l := w.take()
				used[l.Stream().String()] = true
				w.ok(errors.Join(product(l, n, m[1+(i+1)%3], m[0], m[1+i%3], 0.5), l.Release()))
				for _, s := range held {
					w.ok(s.Release())
				}
			}
			s = w.lease(w.r)
			var all []float64
			for _, b := range m {
				all = append(all, w.values(s, b)...)
			}
			if slices.ContainsFunc(all, func(x float64) bool { return x != x || math.Abs(x) > 1e6 }) || !slices.ContainsFunc(all[n*n:], func(x float64) bool { return math.Abs(x) > 1e-12 }) {
				w.t.Fatal("the chain left the range in which it shows anything")
			}
			results = append(results, all)
			w.ok(s.Release())
			w.free(m...)
			w.within("Close", w.rt.Close)
		}
		if !slices.EqualFunc(results[0], results[1], func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
			f.t.Error("the results differ in some bit")
		}
		if len(used) < 3 {
			f.t.Errorf("only %d streams were used; nothing is shown", len(used))
		}
	}},
	{"operations on plain goroutines over few streams agree with their program order", func(f *fixture) {
		// Each goroutine's steps are in its own order, whichever streams they get.
		const goroutines, steps = 4, 30
		w := f.memory(pool(3))
		one := w.new(words)
		w.ok(w.once(func(s stream.Stream) error { return fill(s, one, 1) }))
		var tasks []*task
		for g := range goroutines {
			b := w.new(words)
			tasks = append(tasks, w.start("a goroutine", func() error {
				random := rand.New(rand.NewPCG(uint64(g), 7))
				want := int64(g)
				err := w.once(func(s stream.Stream) error { return fill(s, b, want) })
				for i := 0; i < steps && err == nil; i++ {
					factor := random.Int64N(5) + 2
					want = factor*want + 1 // wraps, as the device does
					err = w.once(func(s stream.Stream) error { return step(s, b, one, factor) })
				}
				if err != nil {
					return err
				}
				return w.once(func(s stream.Stream) error { return holds(s, b, want) })
			}))
		}
		w.all(tasks)
	}},
	{"in-place use is one write access", func(f *fixture) {
		w := f.memory(options{})
		s, b, one := w.streams(2), w.new(words), w.new(words)
		w.fill(s[0], b, 2)
		w.fill(s[0], one, 1)
		w.sync(s[0])
		release := w.stall(s[0])
		for i := range 4 {
			w.ok(operate(s[i%2], b, nil, func(d driver.Stream, at []driver.Ptr) error { // b = b + b
				return d.Launch(&driver.Kernel{Op: driver.KernelAxpby, Out: line(at[0], words), A: line(at[0], words), Alpha: 1, Beta: 1})
			}))
		}
		release()
		w.expect("four doublings", s[0], b, 32)
	}},
	{"a stream serves products and other work in one chain", func(f *fixture) {
		const n = 4
		w, _ := f.handles(2, 1)
		s := w.lease(w.r)
		a, b := whole(rand.New(rand.NewPCG(1, 1)), n), whole(rand.New(rand.NewPCG(1, 2)), n)
		x, y, z, copied := w.matrix(s, a), w.matrix(s, b), w.matrix(s, a), w.matrix(s, a)
		l := w.take()
		w.ok(errors.Join(product(l, n, z, x, y, 0), product(l, n, z, x, y, 1))) // a first use loads code
		w.sync(l.Stream())
		release := w.stall(l.Stream())
		w.within("submitting behind a stall", func() error {
			return errors.Join(product(l, n, z, x, y, 0), move(l.Stream(), copied, z), product(l, n, z, copied, y, 1))
		})
		w.move(s, x, z) // another stream waits for it
		w.pending("what waits for the chain", w.tail(s))
		release()
		first := multiplied(n, a, b, nil, 0)
		if got, want := w.values(s, x), multiplied(n, first, b, first, 1); !slices.Equal(got, want) {
			w.t.Errorf("got %v; expected %v", got, want)
		}
		w.ok(l.Stream().Synchronize(context.Background()))
	}},
}
