package bench

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

var ledger = Scenario{
	Name: "ledger",
	About: "opening and closing an access of two buffers for reading and one for writing, whose completion is recorded and" +
		" published, beside recording a completion alone; and the same by several goroutines on buffers of their own, beside one",
	Need: "at most 300 ns and no heap allocation",
	Cases: func(env Env) []Case {
		r := env.Resources
		required := []Limit{{Of: OfValue, Max: 300}, {Of: OfAllocs, Max: 0}}
		return []Case{
			accessCase("3 buffers, one stream / record", r, 1, required...),
			accessCase("3 buffers, streams in turn / record", r, 2, required...),
			independentCase(r),
		}
	},
}

// accessor opens accesses of three buffers of its own, on its streams in turn.
type accessor struct {
	streams []stream.Stream
	buffers [3]*buffer.Buffer
	turn    int
}

func newAccessor(ctx context.Context, r *runtime.Resources, streams int) (*accessor, error) {
	x := &accessor{}
	m, err := buffer.Of(r)
	if err != nil {
		return nil, err
	}
	for range streams {
		s, err := r.Streams().Acquire(ctx)
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		x.streams = append(x.streams, s)
	}
	for i := range x.buffers {
		b, err := m.New(256)
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		x.buffers[i] = b
	}
	return x, nil
}

func (x *accessor) close() error {
	var errs []error
	for _, b := range x.buffers {
		if b != nil {
			errs = append(errs, b.Free())
		}
	}
	for _, s := range x.streams {
		errs = append(errs, s.Release())
	}
	return errors.Join(errs...)
}

// access is the scope of one operation. Submit stands for its submission, so
// that End has something to record.
func (x *accessor) access() error {
	x.turn++
	s := x.streams[x.turn%len(x.streams)]
	acc := buffer.Begin(s)
	acc.Read(x.buffers[0])
	acc.Read(x.buffers[1])
	acc.Write(x.buffers[2])
	if _, err := s.Submit(); err != nil {
		return err
	}
	return acc.End()
}

// record is what an operation needs without a ledger: a completion.
func (x *accessor) record() error {
	_, err := x.streams[0].Record()
	return err
}

// excludes checks that a buffer under an open write access is refused to
// others, and granted again afterwards.
func (x *accessor) excludes() error {
	s := x.streams[0]
	open := buffer.Begin(s)
	open.Write(x.buffers[2])
	second := buffer.Begin(s)
	second.Read(x.buffers[2])
	if refused := second.End(); !errors.Is(refused, weir.ErrBusy) {
		return errors.Join(wrong("a read under an open write answered %v; expected a conflict", refused), open.End())
	}
	if err := open.End(); err != nil {
		return err
	}
	return x.access()
}

func accessCase(name string, r *runtime.Resources, streams int, limits ...Limit) Case {
	return Case{Name: name, Unit: Nanoseconds, Limits: limits, Open: func(ctx context.Context) (*Trial, error) {
		x, err := newAccessor(ctx, r, streams)
		if err != nil {
			return nil, err
		}
		return &Trial{Value: each(x.access), Floor: each(x.record), Allocs: true, Check: x.excludes, Close: x.close}, nil
	}}
}

// independentCase puts accesses by as many goroutines as there are processors
// beside those of one: they share no buffer, and so must not wait for each
// other.
func independentCase(r *runtime.Resources) Case {
	const operations = 50_000 // far more than starting goroutines costs
	workers := min(goruntime.GOMAXPROCS(0), r.Streams().Size())
	name := fmt.Sprintf("3 buffers each, %d goroutines / 1 goroutine", workers)
	return Case{Name: name, Unit: Nanoseconds, Open: func(ctx context.Context) (*Trial, error) {
		var all []*accessor
		closeAll := func() error {
			var errs []error
			for _, x := range all {
				errs = append(errs, x.close())
			}
			return errors.Join(errs...)
		}
		for range workers {
			x, err := newAccessor(ctx, r, 1)
			if err != nil {
				return nil, errors.Join(err, closeAll())
			}
			all = append(all, x)
		}
		return &Trial{Value: together(all), Floor: each(all[0].access), Fixed: operations, Check: all[0].excludes, Close: closeAll}, nil
	}}
}

// together has every accessor do n accesses at the same time.
func together(all []*accessor) Loop {
	return func(n int) (time.Duration, error) {
		errs := make([]error, len(all))
		var done sync.WaitGroup
		start := time.Now()
		for i, x := range all {
			done.Go(func() { _, errs[i] = each(x.access)(n) })
		}
		done.Wait()
		return time.Since(start), errors.Join(errs...)
	}
}
