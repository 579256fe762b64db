package bench

import (
	"context"
	"sync"

	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

var leases = Scenario{
	Name: "lease",
	About: "acquiring and releasing a stream, or a BLAS handle and a stream, that nobody else wants, beside an uncontended mutex" +
		" and beside naive pools, which are buffered channels",
	Need: "a stream: at most 150 ns and no heap allocation; a handle and a stream: no heap allocation",
	Cases: func(env Env) []Case {
		r := env.Resources
		required := []Limit{{Of: OfValue, Max: 150}, {Of: OfAllocs, Max: 0}}
		return []Case{
			leaseCase("stream / mutex", r, streamLease, mutexPair, required...),
			leaseCase("stream / channel", r, streamLease, channelPair, required...),
			leaseCase("stream, TryAcquire / channel", r, tryStreamLease, channelPair, required...),
			leaseCase("handle and stream / two channels", r, executionLease, twoChannelPairs, Limit{Of: OfAllocs, Max: 0}),
		}
	},
}

// leaseCase puts one acquire and release beside another.
func leaseCase(name string, r *runtime.Resources, value func(*runtime.Resources) func() error, floor func() func() error, limits ...Limit) Case {
	return Case{Name: name, Unit: Nanoseconds, Limits: limits, Open: func(context.Context) (*Trial, error) {
		return &Trial{Value: each(value(r)), Floor: each(floor()), Allocs: true, Check: func() error { return exclusive(r) }}, nil
	}}
}

// exclusive checks that the pool leases each of its streams once, and then
// none.
func exclusive(r *runtime.Resources) (err error) {
	p := r.Streams()
	names := map[string]bool{}
	var held []stream.Stream
	defer func() {
		for _, s := range held {
			if rerr := s.Release(); err == nil {
				err = rerr
			}
		}
	}()
	for range p.Size() {
		s, ok, err := p.TryAcquire()
		if err != nil {
			return err
		}
		if !ok {
			return wrong("%d of %d idle streams were leased and no more", len(held), p.Size())
		}
		held = append(held, s)
		names[s.String()] = true
	}
	if len(names) != p.Size() {
		return wrong("%d leases are of %d streams; expected one each", p.Size(), len(names))
	}
	s, ok, err := p.TryAcquire()
	if ok {
		held = append(held, s)
		return wrong("a pool of %d streams leased one more", p.Size())
	}
	return err
}

func streamLease(r *runtime.Resources) func() error {
	p, ctx := r.Streams(), context.Background()
	return func() error {
		s, err := p.Acquire(ctx)
		if err != nil {
			return err
		}
		return s.Release()
	}
}

func tryStreamLease(r *runtime.Resources) func() error {
	p := r.Streams()
	return func() error {
		s, _, err := p.TryAcquire()
		if err != nil {
			return err
		}
		return s.Release()
	}
}

func executionLease(r *runtime.Resources) func() error {
	ctx := context.Background()
	return func() error {
		l, err := blas.AcquireOn(ctx, r)
		if err != nil {
			return err
		}
		return l.Release()
	}
}

func mutexPair() func() error {
	var mu sync.Mutex
	shared := 0
	return func() error {
		mu.Lock()
		shared++
		mu.Unlock()
		return nil
	}
}

// naivePool is the pool that Weir's replaces: nothing but the right to one of
// its things.
func naivePool() chan int {
	p := make(chan int, stream.DefaultCount)
	for i := range cap(p) {
		p <- i
	}
	return p
}

func channelPair() func() error {
	p := naivePool()
	return func() error {
		p <- <-p
		return nil
	}
}

func twoChannelPairs() func() error {
	handles, streams := naivePool(), naivePool()
	return func() error {
		h, s := <-handles, <-streams
		handles <- h
		streams <- s
		return nil
	}
}
