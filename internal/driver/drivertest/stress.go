package drivertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync/atomic"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

const (
	stressGoroutines = 4
	stressRounds     = 40
)

// stressTests share what may be shared between goroutines. They are for the
// race detector as much as for their own checks.
var stressTests = []test{
	{"goroutines share a pool", func(f *fixture) {
		d := f.device(0)
		p := f.pool(d, driver.PoolConfig{})
		f.together(d, func(g int, s driver.Stream, rng *rand.Rand) error {
			const n = 64
			got := make([]int64, n)
			for range stressRounds {
				at, err := p.Alloc(s, 8*n)
				if err != nil {
					return err
				}
				value := rng.Int64N(1000)
				err = errors.Join(
					s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(at, dtype.Int64, n), Alpha: complex(float64(value), 0)}),
					s.CopyOut(bytesOf(got), at),
					p.Free(s, at))
				if err != nil {
					return err
				}
				if !slices.Equal(got, slices.Repeat([]int64{value}, n)) {
					return fmt.Errorf("goroutine %d: a block was written by another stream", g)
				}
				if rng.IntN(8) == 0 {
					if _, err := p.Stats(); err != nil {
						return err
					}
					if err := p.Trim(0); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if st := f.stats(p); st.Used != 0 {
			f.t.Errorf("%d bytes are used after every free", st.Used)
		}
	}},
	{"goroutines pass an event around", func(f *fixture) {
		d := f.device(0)
		source := f.stream(d)
		e := f.event(d)
		f.together(d, func(_ int, s driver.Stream, rng *rand.Rand) error {
			for range stressRounds {
				var err error
				switch rng.IntN(4) {
				case 0:
					err = source.Record(e)
				case 1:
					err = s.Wait(e)
				case 2:
					_, err = e.Query()
				case 3:
					err = e.Synchronize()
				}
				if err != nil {
					return err
				}
			}
			return s.Synchronize()
		})
		f.sync("the event", e)
		f.finished("the event", e)
	}},
	{"a wait beside a record is not lost", func(f *fixture) {
		d := f.device(0)
		a, b, e := f.stream(d), f.stream(d), f.event(d)
		var stop atomic.Bool
		records := f.start("Record again and again", func() error {
			for !stop.Load() {
				if err := a.Record(e); err != nil {
					return err
				}
			}
			return nil
		})
		waits := f.start("Wait and Synchronize again and again", func() error {
			defer stop.Store(true)
			for range 20_000 {
				if err := errors.Join(b.Wait(e), b.Synchronize()); err != nil {
					return err
				}
			}
			return nil
		})
		f.ok(waits.join())
		f.ok(records.join())
	}},
	{"later work of a stream does not hold what it has released", func(f *fixture) {
		d := f.device(0)
		a, b, e := f.stream(d), f.stream(d), f.event(d)
		for range 2000 {
			first := f.stall(a)
			f.ok(a.Record(e))
			f.ok(b.Wait(e))
			first()
			for done := false; !done; {
				var err error
				done, err = e.Query()
				f.ok(err)
				goruntime.Gosched() // on one processor, the stream's goroutine comes at once
			}
			second := f.stall(a)
			f.sync("the released stream", b)
			second()
			f.sync("the stream that released it", a)
		}
	}},
	{"goroutines ask one stream for notifications", func(f *fixture) {
		d := f.device(0)
		shared := f.stream(d)
		var count atomic.Int32
		all := make(chan struct{})
		f.together(d, func(int, driver.Stream, *rand.Rand) error {
			for range stressRounds {
				if err := shared.Notify(wakerFunc(func(error) {
					if count.Add(1) == stressGoroutines*stressRounds {
						close(all)
					}
				})); err != nil {
					return err
				}
			}
			return nil
		})
		receive(f, "the last notification", all)
	}},
	{"goroutines order their streams in a ring", func(f *fixture) {
		d := f.device(0)
		one, sum := f.alloc(d, 8), f.alloc(d, 8)
		first := f.stream(d)
		write(f, first, one, int64(1))
		f.ok(first.Zero(sum, 8))
		turn := make([]chan driver.Event, stressGoroutines)
		for i := range turn {
			turn[i] = make(chan driver.Event, 1)
		}
		turn[0] <- f.record(d, first)
		f.together(d, func(g int, s driver.Stream, _ *rand.Rand) error {
			for range stressRounds {
				before := <-turn[g]
				e, err := d.NewEvent()
				if err != nil {
					return err
				}
				err = errors.Join(s.Wait(before), s.Launch(addOne(sum, one)), s.Record(e), before.Destroy())
				turn[(g+1)%stressGoroutines] <- e
				if err != nil {
					return err
				}
			}
			return nil
		})
		last := receive(f, "the last event", turn[0])
		f.ok(first.Wait(last))
		f.ok(last.Destroy())
		if got := read[int64](f, first, sum, 1); got[0] != stressGoroutines*stressRounds {
			f.t.Errorf("counted to %d; expected %d", got[0], stressGoroutines*stressRounds)
		}
	}},
	{"goroutines allocate and free", func(f *fixture) {
		d := f.device(0)
		f.together(d, func(_ int, s driver.Stream, rng *rand.Rand) error {
			for range stressRounds {
				n := 1 + rng.Int64N(1<<14)
				p, err := d.Alloc(n)
				if err != nil {
					return err
				}
				h, err := d.AllocHost(n)
				if err != nil {
					return err
				}
				err = errors.Join(s.Zero(p, n), s.Copy(h, p, n), s.Synchronize(), d.Free(p), d.FreeHost(h))
				if err != nil {
					return err
				}
				if _, _, err := d.Memory(); err != nil {
					return err
				}
			}
			return nil
		})
	}},
}

// together runs work on several goroutines, each with a stream of its own.
func (f *fixture) together(d driver.Device, work func(g int, s driver.Stream, rng *rand.Rand) error) {
	f.t.Helper()
	var tasks []*task
	for g := range stressGoroutines {
		s := f.stream(d)
		tasks = append(tasks, f.start("a goroutine of the stress test", func() error {
			return work(g, s, rand.New(rand.NewPCG(1, uint64(g))))
		}))
	}
	f.all(tasks)
}

type wakerFunc func(err error)

func (w wakerFunc) Wake(err error) { w(err) }
