package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/lease"
)

// Options configures a pool.
type Options struct {
	// Count is the number of streams; 0 is DefaultCount. About twice the
	// device's useful concurrency is enough.
	Count int
	// Priority is one of the device's range, in which smaller is more urgent.
	Priority int
	// Debug remembers where each stream was acquired.
	Debug bool
}

// DefaultCount is how many streams a pool has if nothing says otherwise.
const DefaultCount = 8

// MaxCount bounds Options.Count.
const MaxCount = 4096

// Pool is a device's streams. It is safe for concurrent use.
type Pool struct {
	dev   driver.Device
	lines []*line
	slots *lease.Pool[*line, Completion]
}

// NewPool makes a pool of streams of dev. It is closed by Close.
func NewPool(dev driver.Device, o Options) (*Pool, error) {
	if o.Count == 0 {
		o.Count = DefaultCount
	}
	if o.Count < 0 || o.Count > MaxCount {
		return nil, weir.Argf("stream.NewPool", "count %d; expected 1 to %d", o.Count, MaxCount)
	}
	p := &Pool{dev: dev}
	for i := range o.Count {
		s, err := dev.NewStream(o.Priority)
		if err != nil {
			return nil, errors.Join(err, p.destroy())
		}
		l := &line{}
		l.timeline = timeline{name: fmt.Sprintf("%s/%d", dev.Name(), i), dev: dev, stream: s, first: 1}
		p.lines = append(p.lines, l)
	}
	p.slots = lease.New[*line, Completion](lease.Config[*line]{Name: "stream", Device: dev, Stacks: o.Debug}, p.lines)
	return p, nil
}

// Size is the number of streams.
func (p *Pool) Size() int { return len(p.lines) }

// TryAcquire leases an idle stream; ok is false when none is, or when others
// wait for one.
func (p *Pool) TryAcquire() (s Stream, ok bool, err error) {
	h, ok, err := p.slots.TryAcquire()
	return Stream{h}, ok, err
}

// Acquire leases an idle stream, waiting first come, first served. The context
// of a task gives the task's lane back meanwhile. It ends with ctx, with
// ErrClosed, or with the device's death.
func (p *Pool) Acquire(ctx context.Context) (Stream, error) {
	h, err := p.slots.Acquire(ctx)
	return Stream{h}, err
}

// After is what an operation follows in any case: the latest writes of its
// operands. Zero completions say nothing.
type After [3]Completion

// AcquireAfter is Acquire for work that follows all of the completions. If one of
// them is the last work of a stream that nobody holds, it leases that stream, done
// or not: work follows it there without a wait, and nothing is held up that could
// have run sooner elsewhere.
func (p *Pool) AcquireAfter(ctx context.Context, after After) (Stream, error) {
	for _, c := range after {
		if ctx.Err() != nil {
			break // Acquire answers the cause
		}
		if s, ok := p.Follow(c); ok {
			return s, nil
		}
	}
	return p.Acquire(ctx)
}

// Follow leases the stream whose last work is c, if nobody holds it or waits for
// one. It does not when c is known to be done, since then any stream will do; nor
// behind more work than a stream may have; nor when c waited for another device,
// which is looked at for c's own lease alone.
func (p *Pool) Follow(c Completion) (Stream, bool) {
	if c.Known() || c.line.dev != p.dev || !c.line.takesMore(c.seq) {
		return Stream{}, false
	}
	h, ok := p.slots.Continue(c)
	return Stream{h}, ok
}

// Counts answers how many streams are idle, leased and pending, as far as is
// known without asking the device, and how many callers wait.
func (p *Pool) Counts() (idle, leased, pending, waiting int) { return p.slots.Counts() }

// Leased lists the streams that are leased now, with the stack that acquired
// each if the pool was made with Debug.
func (p *Pool) Leased() []lease.Held { return p.slots.Leased() }

// Drain refuses further leases, wakes every waiter with ErrClosed, and waits
// for all submitted work. Errors of streams are joined.
func (p *Pool) Drain() error {
	p.slots.Close()
	var errs []error
	for _, l := range p.lines {
		if l.closed.Load() {
			continue
		}
		if err := l.stream.Synchronize(); err != nil {
			errs = append(errs, l.wrap("stream.Synchronize", err))
		}
	}
	return errors.Join(errs...)
}

// Close drains the pool and destroys its streams and events. Handles that are
// still held answer ErrClosed from then on. A second Close does nothing.
func (p *Pool) Close() error { return errors.Join(p.Drain(), p.destroy()) }

func (p *Pool) destroy() error {
	var errs []error
	for _, l := range p.lines {
		if l.closed.Swap(true) {
			continue
		}
		errs = append(errs, l.destroy())
		if err := l.stream.Destroy(); err != nil {
			errs = append(errs, l.wrap("stream.Close", err))
		}
	}
	return errors.Join(errs...)
}
