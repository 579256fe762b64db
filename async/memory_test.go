package async_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/scheduler"
)

// many is how many things there are of whatever there may be many.
var many = 100_000

func init() {
	if raceDetector { // which is slow
		many = 20_000
	}
}

// heap is the bytes that are in use once garbage is collected.
func heap() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// shallow has stacks be small enough that a recursion over many things would
// overflow them.
func shallow(t *testing.T) {
	t.Helper()
	was := debug.SetMaxStack(256 << 10)
	t.Cleanup(func() { debug.SetMaxStack(was) })
}

// flat runs f many times and fails if what is in use grows meanwhile by more than
// a few bytes each.
func flat(t *testing.T, f func(i int)) {
	t.Helper()
	for i := range many / 10 {
		f(i)
	}
	before := heap()
	for i := many / 10; i < many; i++ {
		f(i)
	}
	var grown int64
	for range 100 { // what garbage leaves to do takes a while on a busy machine
		if grown = heap() - before; grown <= 10*int64(many) {
			return
		}
		goruntime.Gosched()
	}
	t.Errorf("%d more take %d KB more; expected what is done to be given back", many*9/10, grown>>10)
}

// result is what is to be given back. It has a pointer, so that it has a
// collector's block of its own.
type result struct {
	n    int
	more *int
}

// counted makes results and counts those that are garbage.
type counted struct{ made, dropped atomic.Int64 }

func (c *counted) result(n int) *result {
	r := &result{n: n, more: new(int)}
	c.made.Add(1)
	goruntime.AddCleanup(r, func(struct{}) { c.dropped.Add(1) }, struct{}{})
	return r
}

// expect waits until all results but kept are garbage.
func (c *counted) expect(t *testing.T, kept int64) {
	t.Helper()
	for range 1000 {
		goruntime.GC()
		if c.made.Load()-c.dropped.Load() <= kept {
			return
		}
		goruntime.Gosched()
	}
	t.Errorf("%d results of %d are kept; expected at most %d", c.made.Load()-c.dropped.Load(), c.made.Load(), kept)
}

// TestManyWritesOfOneValueKeepOnlyTheLast looks at the value as those see it who
// hold something of its first epoch.
func TestManyWritesOfOneValueKeepOnlyTheLast(t *testing.T) {
	ctx := context.Background()
	shallow(t)
	for name, c := range map[string]struct {
		hold func(v *async.Value[*result], results *counted) (any, func())
		kept int64
	}{
		"nobody": {func(*async.Value[*result], *counted) (any, func()) { return nil, func() {} }, 1},
		"a reader": {func(v *async.Value[*result], _ *counted) (any, func()) {
			r := v.Read()
			return r, r.Release
		}, 2},
		"a reader that was released": {func(v *async.Value[*result], _ *counted) (any, func()) {
			r := v.Read()
			r.Release()
			return r, func() {}
		}, 1},
		"a writer that was set": {func(v *async.Value[*result], results *counted) (any, func()) {
			w := v.Write()
			_ = w.Set(results.result(0))
			return w, func() {}
		}, 1},
	} {
		for _, how := range []string{"set", "in place", "dropped", "failed"} {
			if how == "in place" && name == "a reader" { // it waits for that
				continue
			}
			t.Run(how+" with "+name, func(t *testing.T) {
				var results counted
				v := async.Named("x", results.result(-1))
				held, release := c.hold(v, &results)
				flat(t, func(i int) {
					switch how {
					case "set":
						if err := v.Set(results.result(i)); err != nil {
							t.Fatal(err)
						}
					case "in place":
						w := v.Write()
						r, err := w.Await(ctx)
						if err != nil {
							t.Fatal(err)
						}
						if err := w.Set(r); err != nil {
							t.Fatal(err)
						}
					case "dropped": // two, one that passes
						a, b := v.Write(), v.Write()
						c := v.Write()
						c.Release()
						b.Release()
						if err := a.Set(results.result(i)); err != nil {
							t.Fatal(err)
						}
					case "failed":
						if err := v.Write().Fail(errFails); err != nil {
							t.Fatal(err)
						}
					}
				})
				results.expect(t, c.kept)
				goruntime.KeepAlive(held)
				release()
				if how == "set" || how == "dropped" {
					if r, err := v.Get(ctx); r == nil || r.n != many-1 || err != nil {
						t.Errorf("in the end the value is %v, %v", r, err)
					}
				}
				w := v.Write() // all before it is quiet
				ended, cancel := context.WithCancel(ctx)
				cancel()
				if _, err := w.Await(ended); errors.Is(err, weir.ErrCancelled) {
					t.Errorf("a writer still waits: %v", err)
				}
				w.Release()
			})
		}
	}
}

func TestWritesThatWereDroppedBeforeAReaderLetGoKeepNothing(t *testing.T) {
	var results counted
	v := async.Named("x", results.result(0))
	r := v.Read()
	w := v.Write()
	a, b, c := v.Write(), v.Write(), v.Write()
	a.Release()
	b.Release()
	c.Release()
	if err := w.Set(results.result(1)); err != nil {
		t.Fatal(err)
	}
	if err := v.Set(results.result(2)); err != nil {
		t.Fatal(err)
	}
	results.expect(t, 2)
	r.Release()
	goruntime.KeepAlive(v)
}

// TestOperationsThatGaveUpKeepNothing: a value is awaited for long, by operations
// that were cancelled meanwhile.
func TestOperationsThatGaveUpKeepNothing(t *testing.T) {
	p, err := scheduler.NewPool(scheduler.Options{Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := newLogger(scheduler.With(context.Background(), p))
	x := async.New[int]("x")
	w := x.Write()
	flat(t, func(int) {
		ctx, cancel := context.WithCancel(l.ctx)
		v, turn := l.make(ctx, sum, x), l.make(l.ctx, sum)
		l.expect(t, turn, 1) // v's stepped aside
		cancel()
		if _, err := v.Get(l.ctx); !errors.Is(err, weir.ErrCancelled) {
			t.Fatalf("a cancelled operation makes %v", err)
		}
	})
	kept := l.make(l.ctx, sum, x)
	if err := errors.Join(w.Set(1), l.s.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	l.expect(t, kept, 2)
}

func TestWhatWasReadOutlivesItsValue(t *testing.T) {
	var results counted
	read := func() *async.Reader[*result] {
		v := async.Named("x", results.result(7))
		return v.Read()
	}
	r := read()
	goruntime.GC()
	if x, err := r.Await(context.Background()); x == nil || x.n != 7 || err != nil {
		t.Errorf("got %v, %v", x, err)
	}
	r.Release()
	r = nil
	results.expect(t, 0)
}

func TestManyDroppedWritersInARowNeedNoRecursion(t *testing.T) {
	shallow(t)
	v := async.New[int]("x")
	w := v.Write()
	for range many {
		v.Write().Release()
	}
	r := v.Read()
	if err := w.Set(3); err != nil {
		t.Fatal(err)
	}
	if n, ok, err := r.TryAwait(); n != 3 || !ok || err != nil {
		t.Errorf("the last reads %d, %v, %v", n, ok, err)
	}
	hold := v.Read() // and many of which none can be given back
	for i := range many {
		r := v.Read()
		_ = v.Set(i)
		defer r.Release()
	}
	r.Release()
	hold.Release()
}

func TestALongChainOfTasksNeedsNoRecursionAndGivesBackWhatIsDone(t *testing.T) {
	shallow(t)
	for name, s := range map[string]scheduler.Scheduler{"debug": scheduler.NewDebug(scheduler.DebugOptions{}), "pool": pool(t, scheduler.Options{Lanes: 2})} {
		t.Run(name, func(t *testing.T) {
			ctx := scheduler.With(context.Background(), s)
			var results counted
			last := async.Named("first", results.result(-1))
			flat(t, func(i int) {
				v := async.New[*result]("x")
				r, w := last.Read(), v.Write()
				async.Go(ctx, "link", func(ctx context.Context) error {
					x, err := r.Await(ctx)
					if err != nil {
						return err
					}
					return w.Set(results.result(x.n + 1))
				}, r, w)
				last = v
				if i%1000 == 999 {
					if x, err := v.Get(ctx); x == nil || x.n != i || err != nil {
						t.Fatalf("link %d is %v, %v", i, x, err)
					}
				}
			})
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			results.expect(t, 2)
			goruntime.KeepAlive(last)
		})
	}
}

// crowd parks n tasks on one value and answers how long it took to cancel them.
func crowd(t *testing.T, n int, start func(ctx context.Context, x *async.Value[int])) (parked, cancelled time.Duration, each int64) {
	t.Helper()
	p := pool(t, scheduler.Options{Lanes: 2})
	ctx, cancel := context.WithCancelCause(scheduler.With(context.Background(), p))
	x := async.Named("x", 1)
	hold, w := x.Read(), x.Write()
	before := heap()
	began := time.Now()
	for range n {
		start(ctx, x)
	}
	for c := p.Counts(); c.Running+c.Queued > 0; c = p.Counts() {
		goruntime.Gosched()
	}
	parked = time.Since(began)
	each = (heap() - before) / int64(n)
	if c := p.Counts(); c.Live != n {
		t.Fatalf("%d tasks live; expected %d", c.Live, n)
	}
	began = time.Now()
	cancel(errGone)
	for c := p.Counts(); c.Live > 0; c = p.Counts() {
		goruntime.Gosched()
	}
	cancelled = time.Since(began)
	hold.Release()
	w.Release()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	return parked, cancelled, each
}

// reading and updating start a task that parks on x.
func reading(ctx context.Context, x *async.Value[int]) {
	r, w := x.Read(), async.New[int]("out").Write()
	async.Go(ctx, "reads", func(ctx context.Context) error { _, err := r.Await(ctx); return err }, r, w)
}

func updating(ctx context.Context, x *async.Value[int]) {
	w := x.Write()
	async.Go(ctx, "updates", func(ctx context.Context) error { _, err := w.Await(ctx); return err }, w)
}

// best is the least of some crowds, of which the first makes the stacks.
func best(t *testing.T, n int, start func(ctx context.Context, x *async.Value[int])) (parked, cancelled time.Duration, each int64) {
	t.Helper()
	parked, cancelled = time.Hour, time.Hour
	for range 3 {
		p, c, e := crowd(t, n, start)
		parked, cancelled, each = min(parked, p), min(cancelled, c), e
	}
	return parked, cancelled, each
}

func TestATaskThatIsParkedIsSmallAndCancellingManyIsLinear(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, x *async.Value[int]){"readers": reading, "writers in place": updating} {
		t.Run(name, func(t *testing.T) {
			n := many
			if raceDetector { // which bounds how many goroutines there may be
				n = 5000
			}
			_, cancelled, each := best(t, n, start)
			_, few, _ := best(t, n/10, start)
			if cancelled > 40*max(few, time.Millisecond) {
				t.Errorf("cancelling %d takes %v, %d take %v; expected ten times that", n/10, few, n, cancelled)
			}
			if each > 4<<10 {
				t.Errorf("a parked task takes %d bytes beyond its stack; expected at most 4 KB", each)
			}
			t.Logf("%d parked tasks take %d bytes each and are cancelled in %v; a tenth in %v", n, each, cancelled, few)
		})
	}
}

// TestAWriterInPlaceDoesNotLookAtAllThatWaitBeforeIt compares with readers, each of
// which looks at what it reads only.
func TestAWriterInPlaceDoesNotLookAtAllThatWaitBeforeIt(t *testing.T) {
	n := many / 2
	if raceDetector {
		n = 5000
	}
	few, _, _ := best(t, n, reading)
	parked, _, _ := best(t, n, updating)
	if parked > 4*few {
		t.Errorf("%d tasks that update take %v to park; as many that read take %v", n, parked, few)
	}
}

func TestCeilingsOnAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	ctx := context.Background()
	x := async.Named("x", 1)
	for what, c := range map[string]struct {
		most float64
		f    func()
	}{
		"Get of a ready value":     {0, func() { _, _ = x.Get(ctx) }},
		"Read, Await and Release":  {1, func() { r := x.Read(); _, _ = r.Await(ctx); r.Release() }},
		"Write and Set":            {1, func() { _ = x.Write().Set(2) }},
		"New, Write and Set":       {1, func() { _ = async.New[int]("y").Write().Set(2) }},
		"Write, Await and Set":     {1, func() { w := x.Write(); n, _ := w.Await(ctx); _ = w.Set(n) }},
		"Take of a value and Of":   {2, func() { _, _ = async.Of(1).Take(ctx) }},
		"Clone and Release":        {2, func() { r := x.Read(); r.Clone().Release(); r.Release() }},
		"TryAwait and its Release": {1, func() { r := x.Read(); _, _, _ = r.TryAwait(); r.Release() }},
	} {
		if n := testing.AllocsPerRun(1000, c.f); n > c.most {
			t.Errorf("%s: %v allocations; expected at most %v", what, n, c.most)
		}
	}
}
