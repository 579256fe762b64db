package bench

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// mostGrowth is how many bytes the heap may grow over all reads of a case: a
// sixth of what a ledger that kept each reader would need for 100,000.
const mostGrowth = 256 << 10

var reads = Scenario{
	Name: "reads",
	About: "a million reads of one buffer with no write between, on all streams in turn, each one's completion recorded and" +
		" published, beside recording alone; the growth of the heap is checked",
	Need: "a ledger that stays bounded: the heap grows by at most 256 KiB",
	Cases: func(env Env) []Case {
		count := 1_000_000
		if env.Quick {
			count = 100_000
		}
		return []Case{readsCase(env.Resources, count)}
	},
}

func readsCase(r *runtime.Resources, count int) Case {
	return Case{Name: fmt.Sprintf("%d reads of one buffer / record", count), Unit: Nanoseconds, Open: func(ctx context.Context) (*Trial, error) {
		x := &reader{}
		if err := x.open(ctx, r); err != nil {
			return nil, errors.Join(err, x.close())
		}
		growth := int64(0)
		return &Trial{
			Value: each(x.read), Floor: each(x.record), Allocs: true,
			Check: func() (err error) {
				growth, err = bounded(x.keepingUp, count)
				return err
			},
			Figures: func(Result) []Figure { return []Figure{{"heap growth", float64(growth), "bytes"}} },
			Close:   x.close,
		}, nil
	}}
}

// reader reads one buffer on all streams of a pool in turn.
type reader struct {
	streams []stream.Stream
	buf     *buffer.Buffer
	turn    int
}

func (x *reader) open(ctx context.Context, r *runtime.Resources) error {
	m, err := buffer.Of(r)
	if err != nil {
		return err
	}
	if x.buf, err = m.New(256); err != nil {
		return err
	}
	for range r.Streams().Size() {
		s, err := r.Streams().Acquire(ctx)
		if err != nil {
			return err
		}
		x.streams = append(x.streams, s)
	}
	return nil
}

func (x *reader) close() error {
	var errs []error
	if x.buf != nil {
		errs = append(errs, x.buf.Free())
	}
	for _, s := range x.streams {
		errs = append(errs, s.Release())
	}
	return errors.Join(errs...)
}

func (x *reader) next() stream.Stream {
	x.turn++
	return x.streams[x.turn%len(x.streams)]
}

// read is the scope of an operation that reads; Submit stands for what it
// submits.
func (x *reader) read() error {
	s := x.next()
	acc := buffer.Begin(s)
	acc.Read(x.buf)
	if _, err := s.Submit(); err != nil {
		return err
	}
	return acc.End()
}

// keepingUp is read, but now and then the device's work is waited for: what is
// unfinished is remembered, and has nothing to do with how many reads there were.
func (x *reader) keepingUp() error {
	if err := x.read(); err != nil || x.turn%500 != 0 {
		return err
	}
	for _, s := range x.streams {
		if err := s.Synchronize(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func (x *reader) record() error {
	_, err := x.next().Record()
	return err
}

// bounded checks that count operations leave the heap as large as it was, and
// answers by how many bytes it grew. A few come before, which fill pools.
func bounded(op func() error, count int) (growth int64, err error) {
	if _, err := each(op)(1000); err != nil {
		return 0, err
	}
	before := heap()
	if _, err := each(op)(count); err != nil {
		return 0, err
	}
	growth = heap() - before
	if growth > mostGrowth {
		return growth, wrong("%d operations grew the heap by %d bytes; expected at most %d", count, growth, mostGrowth)
	}
	return growth, nil
}

// heap is the number of bytes that are reachable.
func heap() int64 {
	goruntime.GC()
	goruntime.GC() // the second ends the sweep of the first
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
