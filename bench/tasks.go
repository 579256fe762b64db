package bench

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

var tasks = Scenario{
	Name: "task",
	About: "starting a task that awaits a value which is ready and sets another one, and getting that, beside a goroutine that" +
		" sends through a channel; a chain of 100,000 tasks, each of which awaits what the one before sets, beside a chain of" +
		" goroutines and channels",
	Need: "a task: at most 1500 ns and 4 heap allocations; the chain: the heap grows by at most 4 MiB",
	Cases: func(env Env) []Case {
		count := 100_000
		if env.Quick {
			count = 10_000
		}
		ctx := runtime.On(context.Background(), env.Resources.Device())
		return []Case{
			{Name: "a task / a goroutine", Unit: Nanoseconds, Limits: []Limit{{Of: OfValue, Max: 1500}, {Of: OfAllocs, Max: 4}},
				Open: func(context.Context) (*Trial, error) {
					return &Trial{Value: each(oneTask(ctx)), Floor: each(oneGoroutine()), Allocs: true, Check: oneTask(ctx)}, nil
				}},
			{Name: fmt.Sprintf("%d dependent tasks / goroutines", count), Unit: Nanoseconds,
				Open: func(context.Context) (*Trial, error) { return chainTrial(ctx, count), nil }},
		}
	},
}

func oneTask(ctx context.Context) func() error {
	in := async.Of(1)
	return func() error {
		out := async.New[int]("out")
		r, w := in.Read(), out.Write()
		async.Go(ctx, "copy", func(ctx context.Context) error {
			x, err := r.Await(ctx)
			if err != nil {
				return err
			}
			return w.Set(x)
		}, r, w)
		if x, err := out.Get(ctx); err != nil || x != 1 {
			return wrong("the task set %d, %v; expected 1", x, err)
		}
		return nil
	}
}

func oneGoroutine() func() error {
	return func() error {
		out := make(chan int, 1)
		go func() { out <- 1 }()
		if x := <-out; x != 1 {
			return wrong("the goroutine sent %d; expected 1", x)
		}
		return nil
	}
}

// mostChainGrowth is a tenth of what the values and tasks of a chain of 100,000
// take: what the heap may grow by over one, which leaves some of the runtime's own
// records of goroutines.
const mostChainGrowth = 4 << 20

func chainTrial(ctx context.Context, count int) *Trial {
	growth := int64(0)
	return &Trial{
		Value: taskChain(ctx), Floor: goroutineChain, Fixed: count,
		Check: func() error {
			if _, err := taskChain(ctx)(count); err != nil { // the goroutines that it takes stay for the next
				return err
			}
			before := heap()
			if _, err := taskChain(ctx)(count); err != nil {
				return err
			}
			if growth = heap() - before; growth > mostChainGrowth {
				return wrong("a chain of %d tasks grew the heap by %d bytes; expected at most %d", count, growth, mostChainGrowth)
			}
			return nil
		},
		Figures: func(Result) []Figure { return []Figure{{"heap growth", float64(growth), "bytes"}} },
	}
}

// taskChain makes n values, each one more than the one before, all tasks being
// started before the first can go on.
func taskChain(ctx context.Context) Loop {
	return func(n int) (time.Duration, error) {
		start := time.Now()
		v := async.New[int]("0")
		first := v.Write()
		for range n {
			next := async.New[int]("next")
			r, w := v.Read(), next.Write()
			async.Go(ctx, "increment", func(ctx context.Context) error {
				x, err := r.Await(ctx)
				if err != nil {
					return err
				}
				return w.Set(x + 1)
			}, r, w)
			v = next
		}
		if err := first.Set(0); err != nil {
			return 0, err
		}
		x, err := v.Get(ctx)
		if err != nil || x != n {
			return 0, wrong("a chain of %d increments made %d, %v", n, x, err)
		}
		return time.Since(start), nil
	}
}

func goroutineChain(n int) (time.Duration, error) {
	start := time.Now()
	v := make(chan int, 1)
	first := v
	for range n {
		r, w := v, make(chan int, 1)
		go func() { w <- <-r + 1 }()
		v = w
	}
	first <- 0
	if x := <-v; x != n {
		return 0, wrong("a chain of %d goroutines made %d", n, x)
	}
	return time.Since(start), nil
}

var parked = Scenario{
	Name: "parked",
	About: "100,000 tasks that wait for a pool of one stream: the time of a hand-over from one to the next, beside goroutines in a" +
		" plain FIFO of channels; the order is checked, also when one in seven gives up, and the memory of a task that waits",
	Need: "first come, first served, exactly; at most 4096 bytes a task beyond its goroutine; to cancel a task of many takes at most three times as long as to cancel one of a tenth as many",
	Cases: func(env Env) []Case {
		count := 100_000
		if env.Quick {
			count = 5_000
		}
		return []Case{parkedCase(env.Resources, count), cancelCase(env.Resources, count)}
	},
}

const mostParked = 4096 // bytes of a parked task

func parkedCase(r *runtime.Resources, count int) Case {
	return Case{Name: fmt.Sprintf("%d tasks, pool of 1 / goroutines, FIFO of channels", count), Unit: Nanoseconds, Open: func(context.Context) (*Trial, error) {
		p, err := stream.NewPool(r.Device().Driver(), stream.Options{Count: 1})
		if err != nil {
			return nil, err
		}
		s, err := runtime.Scheduler(context.Background())
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		one, latency, floor := &streamOfOne{pool: p}, newLatency(), newLatency()
		each := 0.0
		return &Trial{
			Value: handOvers(one, asTask(s), latency), Floor: handOvers(&naiveQueue{}, asGoroutine, floor), Fixed: count,
			Check: func() (err error) {
				if err := firstComeFirstServed(one, asTask(s), count); err != nil {
					return err
				}
				if each, _, err = cancelAll(one, asTask(s), count); err == nil && each > mostParked {
					err = wrong("a task that waits takes %.0f bytes beside its stack; expected at most %d", each, mostParked)
				}
				return err
			},
			Figures: func(Result) []Figure {
				return append(latencyFigures(latency, floor), Figure{"of a task that waits", each, "bytes"})
			},
			Close: p.Close,
		}, nil
	}}
}

func cancelCase(r *runtime.Resources, count int) Case {
	return Case{Name: fmt.Sprintf("cancel %d tasks / ten times %d", count, count/10), Unit: Nanoseconds, Limits: []Limit{{Of: OfRatio, Max: 3}},
		Open: func(context.Context) (*Trial, error) {
			p, err := stream.NewPool(r.Device().Driver(), stream.Options{Count: 1})
			if err != nil {
				return nil, err
			}
			s, err := runtime.Scheduler(context.Background())
			if err != nil {
				return nil, errors.Join(err, p.Close())
			}
			one := &streamOfOne{pool: p}
			cancels := func(times int) Loop {
				return func(n int) (total time.Duration, err error) {
					for range times {
						_, d, err := cancelAll(one, asTask(s), n/times)
						if err != nil {
							return 0, err
						}
						total += d
					}
					return total, nil
				}
			}
			return &Trial{Value: cancels(1), Floor: cancels(10), Fixed: count, Check: func() error {
				_, err := cancels(1)(count)
				return err
			}, Close: p.Close}, nil
		}}
}

// asTask starts tasks of s.
func asTask(s scheduler.Scheduler) starter {
	return func(ctx context.Context, do func(ctx context.Context)) {
		s.Start(scheduler.New(ctx, scheduler.Spec{Name: "waits", Run: func(ctx context.Context) error {
			do(ctx)
			return nil
		}}))
	}
}

// cancelAll has n wait for q and cancels all at once.
func cancelAll(q queue, start starter, n int) (each float64, d time.Duration, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := heap()
	c, err := gather(q, start, n, newLatency(), func(int) context.Context { return ctx })
	if err != nil {
		return 0, 0, err
	}
	each = float64(heap()-before) / float64(n)
	begin := time.Now()
	cancel()
	c.done.Wait()
	d = time.Since(begin)
	for i, err := range c.errs {
		if !errors.Is(err, context.Canceled) {
			return each, d, wrong("waiter %d of %d was cancelled and answers %v", i, n, err)
		}
	}
	goruntime.KeepAlive(c)
	return each, d, q.release()
}
