package async_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/scheduler"
)

// operation is a step of a log that a test makes of a function.
type operation struct {
	name   string
	launch func(ctx context.Context, in []int) (int, error)
}

func (o *operation) Name() string { return o.name }
func (o *operation) Launch(ctx context.Context, in []int) (int, error) {
	return o.launch(ctx, in)
}

// sum adds its inputs and one.
var sum = &operation{"test.Sum", func(_ context.Context, in []int) (int, error) {
	n := 1
	for _, x := range in {
		n += x
	}
	return n, nil
}}

// logger asks a log for operations.
type logger struct {
	*async.Log[int]
	ctx context.Context
	s   scheduler.Scheduler
}

func newLogger(ctx context.Context) *logger {
	return &logger{async.NewLog[int](context.Background(), "arena", nil), ctx, scheduler.Of(ctx)}
}

//go:noinline
func (l *logger) make(ctx context.Context, o *operation, in ...*async.Value[int]) *async.Value[int] {
	return l.Make(ctx, l.s, callers.At(callers.PCs()), false, o, in...)
}

//go:noinline
func (l *logger) update(ctx context.Context, o *operation, target *async.Value[int], in ...*async.Value[int]) {
	l.Update(ctx, l.s, callers.At(callers.PCs()), false, o, target, in...)
}

//go:noinline
func (l *logger) take(ctx context.Context, o *operation, target *async.Value[int]) {
	l.Take(ctx, l.s, callers.At(callers.PCs()), o, target)
}

// expect checks what a value is.
func (l *logger) expect(t *testing.T, v *async.Value[int], expected int) {
	t.Helper()
	if n, err := v.Get(l.ctx); n != expected || err != nil {
		t.Errorf("%v is %d, %v; expected %d", v, n, err, expected)
	}
}

// logs runs a test of a log under both schedulers.
func logs(t *testing.T, f func(t *testing.T, l *logger)) {
	t.Helper()
	under(t, func(t *testing.T, ctx context.Context) {
		l := newLogger(ctx)
		f(t, l)
		if err := l.s.Close(); err != nil {
			t.Errorf("the scheduler's Close: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestOperationsMakeUpdateAndTake(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		a, b := async.Named("a", 1), async.Named("b", 10)
		c := l.make(l.ctx, sum, a, b)
		if c.Name() != "test.Sum" {
			t.Errorf("what an operation makes is called %s", c.Name())
		}
		l.update(l.ctx, sum, c, a) // 1 + 12 + 1
		taken := 0
		l.take(l.ctx, &operation{"test.Free", func(_ context.Context, in []int) (int, error) { taken = in[0]; return 0, nil }}, a)
		l.expect(t, c, 14)
		if _, err := a.Get(l.ctx); !errors.Is(err, weir.ErrUninitialized) || errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("what was taken is %v", err)
		}
		if taken != 1 {
			t.Errorf("%d was taken", taken)
		}
		l.expect(t, l.make(l.ctx, sum, b, b, c, b, c), 1+30+28)
	})
}

func TestAnOperationMayReadWhatItUpdates(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		x, y := async.Named("x", 5), async.New[int]("y")
		l.update(l.ctx, sum, x, x)
		l.expect(t, x, 11)
		w := x.Write()
		l.update(l.ctx, sum, x, x, x, x, x) // steps aside
		async.Go(l.ctx, "sets", func(context.Context) error { return w.Set(1) }, w)
		l.expect(t, x, 6)
		l.update(l.ctx, sum, y, y)
		if err := y.Wait(l.ctx); !errors.Is(err, weir.ErrUninitialized) || !errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("y is %v", err)
		}
	})
}

func TestAnOperationOnWhatWasNeverWrittenNamesIt(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		x := async.New[int]("x")
		site := here(1)
		y := l.make(l.ctx, sum, async.Of(1), x)
		z := l.make(l.ctx, sum, y)
		for _, v := range []*async.Value[int]{y, z} {
			wrong(t, v.Wait(l.ctx), weir.ErrUninitialized, `poisoned: test.Sum (`+site+`) failed: test.Sum: value "x" was never written`)
		}
		for what, ask := range map[string]func(v *async.Value[int]){
			"Update": func(v *async.Value[int]) { l.update(l.ctx, sum, v) },
			"Take":   func(v *async.Value[int]) { l.take(l.ctx, sum, v) },
		} {
			v := async.New[int]("v")
			ask(v)
			if err := v.Wait(l.ctx); !errors.Is(err, weir.ErrUninitialized) || !errors.Is(err, weir.ErrPoisoned) || errors.Is(err, weir.ErrCancelled) {
				t.Errorf("after %s of nothing: %v", what, err)
			}
		}
	})
}

func TestFailuresOfOperationsPoisonWithTheirFirstCause(t *testing.T) {
	for how, c := range map[string]struct {
		launch  func(context.Context, []int) (int, error)
		is      error
		message string
	}{
		"fails":            {func(context.Context, []int) (int, error) { return 0, errFails }, errFails, "failed: " + errFails.Error()},
		"panics":           {func(context.Context, []int) (int, error) { panic("boom") }, weir.ErrPanic, "failed: test.Bad: panic: boom"},
		"panics with":      {func(context.Context, []int) (int, error) { panic(errFails) }, errFails, "failed: test.Bad: panic: "},
		"ends its thread":  {func(context.Context, []int) (int, error) { goruntime.Goexit(); return 0, nil }, weir.ErrPanic, "failed: test.Bad: it ended its goroutine (runtime.Goexit)"},
		"answers a poison": {func(context.Context, []int) (int, error) { return 0, &async.Poison{Op: "earlier", Cause: errFails} }, errFails, "earlier"},
	} {
		t.Run(how, func(t *testing.T) {
			logs(t, func(t *testing.T, l *logger) {
				bad := l.make(l.ctx, &operation{"test.Bad", c.launch}, async.Of(1))
				good := l.make(l.ctx, sum, async.Of(1))
				next := l.make(l.ctx, sum, good, bad)
				target := async.Of(3)
				l.update(l.ctx, sum, target, next)
				l.expect(t, good, 2)
				err := target.Wait(l.ctx)
				if p := poison(t, err); p != poison(t, bad.Wait(l.ctx)) || p != poison(t, next.Wait(l.ctx)) {
					t.Errorf("there are several poisons: %v", err)
				}
				if !errors.Is(err, c.is) || !errors.Is(err, weir.ErrPoisoned) || !strings.Contains(err.Error(), c.message) {
					t.Errorf("the poison is %v; expected %v, %s", err, c.is, c.message)
				}
				if err := target.Set(1); err != nil { // a full overwrite
					t.Error(err)
				}
				l.expect(t, l.make(l.ctx, sum, target), 2)
			})
		})
	}
}

func TestAnOperationThatWaitsForATaskLetsLaterOnesGoOn(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		x, gate := async.Named("x", 1), async.New[int]("gate")
		w, wg := x.Write(), gate.Write()
		rg := gate.Read()
		waits := l.make(l.ctx, sum, x)
		after := l.make(l.ctx, sum, waits)
		r := after.Read()
		independent := l.make(l.ctx, sum, async.Of(10))
		async.Go(l.ctx, "sets", func(ctx context.Context) error {
			n, err := rg.Await(ctx)
			if err != nil {
				return err
			}
			return w.Set(n)
		}, w, rg)
		l.expect(t, independent, 11)
		if _, ok, _ := r.TryAwait(); ok {
			t.Error("what depends on an operation that waits is there")
		}
		if err := wg.Set(100); err != nil {
			t.Error(err)
		}
		l.expect(t, after, 102)
		r.Release()
	})
}

func TestAnOperationWaitsForAllThatItNeeds(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		x, y, z := async.Named("x", 1), async.Named("y", 1), async.Named("z", 1)
		wx, wy, hold := x.Write(), y.Write(), z.Read()
		l.update(l.ctx, sum, z, x, y, async.Of(1), x)
		r := z.Read()
		for k, arrives := range []func(){func() { _ = wy.Set(10) }, hold.Release, func() { _ = wx.Set(100) }} {
			l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2)
			if _, ok, _ := r.TryAwait(); ok {
				t.Errorf("it is launched though only %d of what it needs are there", k)
			}
			arrives()
		}
		l.expect(t, z, 213)
		r.Release()
	})
}

func TestAClosedLogTakesNoOperations(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		l := newLogger(ctx)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		err := l.make(ctx, sum, async.Of(1)).Wait(ctx)
		wrong(t, poison(t, err).Cause, weir.ErrClosed, "test.Sum: the runtime is closed")
	})
}

func TestAnUpdateWaitsForATasksReader(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		x := async.Named("x", 1)
		hold := x.Read()
		clone := hold.Clone()
		hold.Release()
		launched := false
		l.update(l.ctx, &operation{"test.Update", func(_ context.Context, in []int) (int, error) { launched = true; return in[0] + 1, nil }}, x)
		after := x.Read()
		independent := l.make(l.ctx, sum, async.Of(10))
		l.expect(t, independent, 11)
		if _, ok, _ := after.TryAwait(); ok || launched {
			t.Error("an update is launched though a task reads")
		}
		after.Release()
		async.Go(l.ctx, "reads", func(ctx context.Context) error {
			if n, err := clone.Await(ctx); n != 1 {
				t.Errorf("the reader reads %d, %v", n, err)
			}
			return nil
		}, clone)
		l.expect(t, x, 2)
	})
}

func TestAnOperationIsCancelledBeforeAndWhileLaunched(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		ctx, cancel := context.WithCancelCause(l.ctx)
		never, out := async.New[int]("never"), async.New[int]("out")
		w := never.Write()
		during := l.make(ctx, &operation{"test.Waits", func(ctx context.Context, _ []int) (int, error) {
			if scheduler.TaskOf(ctx) == nil {
				t.Error("the context of Launch is no task's")
			}
			cancel(errGone)
			n, err := never.Get(ctx)
			return n, err
		}}, async.Of(1))
		l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2) // it is no matter of others
		before := l.make(ctx, sum, out, never)          // waits for neither
		own, end := context.WithCancelCause(l.ctx)
		plain := l.make(own, &operation{"test.Plain", func(ctx context.Context, _ []int) (int, error) {
			end(errGone)
			return 0, context.Cause(ctx)
		}})
		for _, v := range []*async.Value[int]{during, before, plain, l.make(l.ctx, sum, before)} {
			err := v.Wait(l.ctx)
			if p := poison(t, err); !p.Cancelled || !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errGone) || errors.Is(err, weir.ErrUninitialized) {
				t.Errorf("the value is %v", err)
			}
		}
		w.Release()
	})
}

func TestAnOperationIsCancelledWhileItWaitsForATask(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		for range 50 {
			ctx, cancel := context.WithCancelCause(l.ctx)
			x, y := async.Named("x", 1), async.Named("y", 1)
			w, hold := x.Write(), y.Read()
			other := x.Read()
			launched := func(context.Context, []int) (int, error) { t.Error("it is launched"); return 0, nil }
			waits := l.make(ctx, &operation{"test.Make", launched}, x)
			l.update(ctx, &operation{"test.Update", launched}, y)
			next := l.make(l.ctx, sum, waits)
			l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2) // they stepped aside
			cancel(errGone)
			for _, v := range []*async.Value[int]{next, y} {
				err := v.Wait(l.ctx)
				if p := poison(t, err); !p.Cancelled || !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errGone) {
					t.Fatalf("%v is %v", v, err)
				}
			}
			if err := w.Set(1); err != nil {
				t.Error(err)
			}
			hold.Release()
			l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2)
			ended, end := context.WithCancel(l.ctx)
			end()
			if _, err := x.Take(ended); !errors.Is(err, weir.ErrCancelled) { // it lets go once
				t.Errorf("a reader is not waited for: %v", err)
			}
			other.Release()
			if n, err := x.Take(l.ctx); n != 1 || err != nil { // an operation that is no more does not hold it
				t.Errorf("x is %d, %v", n, err)
			}
		}
	})
}

// TestAMessageOfAnOperationThatWasCancelledSaysWhatItWaitedFor is for the pool.
func TestAMessageOfAnOperationThatWasCancelledSaysWhatItWaitedFor(t *testing.T) {
	l := newLogger(scheduler.With(context.Background(), pool(t, scheduler.Options{})))
	ctx, cancel := context.WithCancel(l.ctx)
	x := async.New[int]("x")
	w := x.Write()
	site := here(1)
	waits := l.make(ctx, sum, async.Of(1), x)
	l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2)
	cancel()
	wrong(t, waits.Wait(l.ctx), context.Canceled,
		`poisoned: test.Sum (`+site+`) was cancelled: test.Sum: gave up waiting for value "x", to be written (write 0): context canceled`)
	w.Release()
	if err := errors.Join(l.s.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

func TestALogWhoseContextEndedPoisonsAndGoesOn(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		base, cancel := context.WithCancelCause(context.Background())
		l := &logger{async.NewLog[int](base, "arena", nil), ctx, scheduler.Of(ctx)}
		l.expect(t, l.make(ctx, sum, async.Of(1)), 2)
		cancel(errGone)
		for range 2 {
			if err := l.make(ctx, sum, async.Of(1)).Wait(ctx); !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errGone) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestWhoWaitsInLaunchGivesTheLaneBack(t *testing.T) {
	logs(t, func(t *testing.T, l *logger) {
		x := async.New[int]("x")
		w := x.Write()
		type key struct{}
		ctx := context.WithValue(l.ctx, key{}, 7)
		waits := &operation{"test.Waits", func(ctx context.Context, in []int) (int, error) {
			n, err := x.Get(ctx)
			if k, _ := ctx.Value(key{}).(int); k != 0 {
				n += k
			}
			return n, err
		}}
		plain := l.make(ctx, waits)
		kept := l.Make(ctx, l.s, callers.Site{}, true, waits)
		async.Go(l.ctx, "sets", func(context.Context) error { return w.Set(1) }, w)
		l.expect(t, plain, 1)
		l.expect(t, kept, 8)
	})
}

func TestALongChainOfOperationsNeedsNoRecursion(t *testing.T) {
	shallow(t)
	logs(t, func(t *testing.T, l *logger) {
		x := async.New[int]("x")
		w := x.Write()
		last := x
		for range many / 2 { // all step aside
			last = l.make(l.ctx, sum, last)
		}
		async.Go(l.ctx, "sets", func(context.Context) error { return w.Set(0) }, w)
		for range many / 2 { // in place
			l.update(l.ctx, sum, last)
		}
		l.expect(t, last, many)
		for range many {
			last = l.make(l.ctx, sum, last)
		}
		l.expect(t, last, 2*many)
	})
}

func TestWhatOperationsMadeIsGivenBack(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		var results counted
		l := async.NewLog[*result](context.Background(), "arena", nil)
		s := scheduler.Of(ctx)
		last := async.Named("first", results.result(-1))
		const chunk = 1000
		// The log keeps room for as many as were ever asked for at once: a chunk.
		if _, debug := s.(*scheduler.Debug); !debug { // which runs nothing before somebody waits
			h := heldUp{make(chan struct{}), make(chan struct{})}
			first := l.Make(ctx, s, callers.Site{}, false, h, last)
			<-h.began
			for range chunk {
				first = l.Make(ctx, s, callers.Site{}, false, resultOf{&results}, first)
			}
			close(h.end)
			if _, err := first.Get(ctx); err != nil {
				t.Fatal(err)
			}
		}
		flat(t, func(i int) {
			last = l.Make(ctx, s, callers.Site{}, false, resultOf{&results}, last)
			if i%chunk == chunk-1 {
				if x, err := last.Get(ctx); x == nil || x.n != i || err != nil {
					t.Fatalf("operation %d made %v, %v", i, x, err)
				}
			}
		})
		results.expect(t, 2)
		goruntime.KeepAlive(last)
		goruntime.KeepAlive(l)
	})
}

// heldUp says when it is launched, waits, and makes what it is given.
type heldUp struct{ began, end chan struct{} }

func (heldUp) Name() string { return "test.HeldUp" }
func (h heldUp) Launch(_ context.Context, in []*result) (*result, error) {
	close(h.began)
	<-h.end
	return in[0], nil
}

type resultOf struct{ of *counted }

func (resultOf) Name() string { return "test.Next" }
func (r resultOf) Launch(_ context.Context, in []*result) (*result, error) {
	return r.of.result(in[0].n + 1), nil
}

// blocked has a log's task wait until open is called.
func blocked(l *logger) (open func()) {
	gate := async.New[int]("gate")
	w, started := gate.Write(), make(chan struct{})
	l.make(context.Background(), &operation{"test.Block", func(ctx context.Context, _ []int) (int, error) {
		close(started)
		return gate.Get(ctx)
	}})
	<-started
	return func() { _ = w.Set(1) }
}

func TestWhoAsksForMoreThanALogHoldsWaits(t *testing.T) {
	l := newLogger(scheduler.With(context.Background(), pool(t, scheduler.Options{Lanes: 1})))
	open := blocked(l)
	one := async.Of(1)
	var last *async.Value[int]
	for range async.MaxQueued {
		last = l.make(context.Background(), sum, one)
	}
	values := make([]*async.Value[int], 3)
	var got []<-chan error
	for i := range values {
		got = append(got, waiting(func(ctx context.Context) error { values[i] = l.make(ctx, sum, one); return nil }))
	}
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(errGone)
	out := l.make(ended, sum, one) // before it waits
	later, end := context.WithCancelCause(context.Background())
	var mid *async.Value[int]
	cancelled := waiting(func(ctx context.Context) error { mid = l.make(scheduler.As(later, ctx), sum, one); return nil })
	end(errGone)
	<-cancelled // it goes on though nothing was launched
	for k, g := range got {
		select {
		case <-g:
			t.Errorf("asker %d goes on though the log is full", k)
		default:
		}
	}
	task := async.Go(l.ctx, "asks", func(ctx context.Context) error { // a task gives its lane back
		v := l.make(ctx, sum, one)
		_, err := v.Get(ctx)
		return err
	})
	open()
	for k, g := range got {
		<-g
		l.expect(t, values[k], 2)
	}
	l.expect(t, last, 2)
	if err := task.Wait(l.ctx); err != nil {
		t.Error(err)
	}
	if err := out.Wait(l.ctx); !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errGone) {
		t.Errorf("who was cancelled before: %v", err)
	}
	if err := mid.Wait(l.ctx); !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errGone) ||
		!strings.Contains(err.Error(), "gave up waiting for room among the operations of arena") {
		t.Errorf("who was cancelled while waiting for room: %v", err)
	}
	if err := errors.Join(l.s.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

func TestUnderTheDebugSchedulerAFullLogIsDrainedByWhoAsks(t *testing.T) {
	l := newLogger(scheduler.With(context.Background(), scheduler.NewDebug(scheduler.DebugOptions{})))
	x := async.Of(0)
	for range async.MaxQueued + 10 {
		l.update(l.ctx, sum, x)
	}
	l.expect(t, x, async.MaxQueued+10)
	if err := errors.Join(l.s.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

func TestCloseNamesTheOperationsThatWereNeverLaunched(t *testing.T) {
	for _, s := range []scheduler.Scheduler{scheduler.NewDebug(scheduler.DebugOptions{}), pool(t, scheduler.Options{})} {
		l := newLogger(scheduler.With(context.Background(), s))
		x, y := async.New[int]("x"), async.Named("y", 1)
		w, r := x.Write(), y.Read()
		first := l.make(l.ctx, &operation{"test.First", sum.launch}, x)
		next := l.make(l.ctx, &operation{"test.Next", sum.launch}, first)
		l.update(l.ctx, &operation{"test.Update", sum.launch}, y, next)
		l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		err := l.Close()
		wrong(t, err, weir.ErrLeak, strings.Join([]string{
			`test.First: the operation was never launched: it waits for value "x", to be written (write 0)`,
			`test.Next: the operation was never launched: it waits for value "test.First", to be written (write 0)`,
			`test.Update: the operation was never launched: it waits for value "test.Next", to be written (write 0)`,
		}, "\n"))
		var e *weir.Error
		if !errors.As(err, &e) || !strings.Contains(e.Site, "log_test.go:") {
			t.Errorf("the site is %q", e.Site)
		}
		err = first.Wait(context.Background())
		if !errors.Is(err, weir.ErrClosed) || !errors.Is(err, weir.ErrPoisoned) || errors.Is(err, weir.ErrCancelled) {
			t.Errorf("what was never made is %v", err)
		}
		p := poison(t, err)
		if p.Op != "test.First" || p.Cause.Error() != "test.First: the runtime is closed" {
			t.Errorf("the poison is of %s by %v", p.Op, p.Cause)
		}
		if err := l.make(context.Background(), sum, async.Of(1)).Wait(context.Background()); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("what is asked for afterwards is %v", err)
		}
		if err := y.Wait(context.Background()); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("y is %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		w.Release()
		r.Release()
	}
}

// TestASchedulerThatRefusesPoisons asks on a closed one, with and without waiting
// operations that the end of a wait would launch.
func TestASchedulerThatRefusesPoisons(t *testing.T) {
	for _, s := range []scheduler.Scheduler{scheduler.NewDebug(scheduler.DebugOptions{}), pool(t, scheduler.Options{})} {
		ctx := context.Background()
		l := newLogger(scheduler.With(ctx, s))
		x, y := async.Named("x", 1), async.New[int]("y")
		w := x.Write()
		waits := l.make(ctx, sum, x)
		dropped := x.Write()
		next := l.make(ctx, sum, waits)
		passed := x.Write()
		l.take(ctx, sum, x) // waits for all of these
		wy := y.Write()
		poisoned := l.make(ctx, sum, y)
		l.expect(t, l.make(ctx, sum, async.Of(1)), 2)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		out := l.make(ctx, sum, async.Of(1))
		target := async.Of(1)
		l.update(ctx, sum, target, out)
		if p := poison(t, out.Wait(ctx)); !errors.Is(p, weir.ErrClosed) || poison(t, target.Wait(ctx)) != p {
			t.Errorf("what is asked for is %v, and then %v", p, target.Wait(ctx))
		}
		passed.Release()
		dropped.Release()
		if err := w.Set(3); err != nil {
			t.Error(err)
		}
		if p := poison(t, waits.Wait(ctx)); !errors.Is(p, weir.ErrClosed) || poison(t, next.Wait(ctx)) != p {
			t.Errorf("what waited is %v, and then %v", p, next.Wait(ctx))
		}
		if err := x.Wait(ctx); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("what was to be taken is %v", err)
		}
		if err := wy.Fail(errFails); err != nil {
			t.Error(err)
		}
		if err := poisoned.Wait(ctx); !errors.Is(err, errFails) || errors.Is(err, weir.ErrClosed) {
			t.Errorf("what came of a failure is %v; expected the first cause", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestPoisonedCarriesTheFailureOfWhatCouldNotBeAskedFor(t *testing.T) {
	ctx := context.Background()
	v := async.Poisoned[int]("flow.MatMul", callers.Site{}, errFails)
	wrong(t, v.Wait(ctx), errFails, "poisoned: flow.MatMul failed: "+errFails.Error())
	if p := poison(t, async.Poisoned[int]("x", callers.Site{}, weir.Cancelled(errGone)).Wait(ctx)); !p.Cancelled || !errors.Is(p, errGone) {
		t.Errorf("the poison is %v", p)
	}
	if err := v.Set(1); err != nil || v.Wait(ctx) != nil {
		t.Errorf("after an overwrite it is %v, %v", err, v.Wait(ctx))
	}
}

// TestTheBatonIsNeverLost has goroutines and tasks ask at once, on values of their
// own and on one that they share; some operations wait, fail or end their
// goroutine.
func TestTheBatonIsNeverLost(t *testing.T) {
	for _, lanes := range []int{1, 4} {
		l := newLogger(scheduler.With(context.Background(), pool(t, scheduler.Options{Lanes: lanes})))
		const askers, rounds = 8, 400
		shared := async.Of(0)
		add := &operation{"test.Add", func(_ context.Context, in []int) (int, error) { return in[0] + 1, nil }}
		var wg sync.WaitGroup
		errs := make([]error, askers)
		for a := range askers {
			ask := func(ctx context.Context) error {
				own := async.Of(0)
				for i := range rounds {
					l.update(ctx, add, shared)
					l.update(ctx, add, own)
					switch i % 5 {
					case 0: // a task's writer
						x := async.New[int]("x")
						w := x.Write()
						out := l.make(ctx, sum, x)
						async.Go(ctx, "sets", func(context.Context) error { return w.Set(i) }, w)
						if n, err := out.Get(ctx); n != i+1 || err != nil {
							return fmt.Errorf("an operation that waited made %d, %w", n, err)
						}
					case 1:
						bad := l.make(ctx, &operation{"test.Gone", func(context.Context, []int) (int, error) { goruntime.Goexit(); return 0, nil }})
						if err := bad.Wait(ctx); !errors.Is(err, weir.ErrPanic) {
							return fmt.Errorf("an operation that ended its goroutine made %w", err)
						}
					case 2:
						cancelled, cancel := context.WithCancel(ctx)
						x := async.New[int]("x")
						w := x.Write()
						out := l.make(cancelled, sum, x)
						cancel()
						if err := out.Wait(ctx); !errors.Is(err, weir.ErrCancelled) {
							return fmt.Errorf("an operation that was cancelled made %w", err)
						}
						w.Release()
					case 3: // a task's reader
						r := own.Read()
						async.Go(ctx, "reads", func(ctx context.Context) error { _, err := r.Await(ctx); return err }, r)
					}
				}
				if n, err := own.Get(ctx); n != rounds || err != nil {
					return fmt.Errorf("%d operations of %d came out, %w", n, rounds, err)
				}
				return nil
			}
			if a%2 == 0 {
				wg.Go(func() { errs[a] = ask(l.ctx) })
			} else {
				wg.Go(func() { errs[a] = async.Go(l.ctx, "asks", ask).Wait(l.ctx) })
			}
		}
		wg.Wait()
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			t.Errorf("asker %d: %v", i, errs[i])
		}
		l.expect(t, shared, askers*rounds)
		if err := errors.Join(l.s.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestToAskForAnOperationAllocatesOnlyWhatItMakes(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	l := newLogger(scheduler.With(context.Background(), pool(t, scheduler.Options{Lanes: 1})))
	ctx := context.Background()
	a, b, c := async.Of(1), async.Of(2), async.Of(3)
	for range 5000 { // the log's own room
		l.make(ctx, sum, a)
	}
	l.expect(t, l.make(ctx, sum, a), 2)
	open := blocked(l)
	for range 2000 {
		l.make(ctx, sum, a)
	}
	if n := testing.AllocsPerRun(1000, func() { l.Make(ctx, l.s, callers.Site{}, false, sum, a, b, c) }); n > 1 {
		t.Errorf("Make: %v allocations; expected 1", n)
	}
	open()
	if err := errors.Join(l.s.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

// TestAnOperationAsideThatNobodyCanCancelFails: the scheduler takes no task that
// would see its context end.
func TestAnOperationAsideThatNobodyCanCancelFails(t *testing.T) {
	p, err := scheduler.NewPool(scheduler.Options{Lanes: 1, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	l := newLogger(scheduler.With(context.Background(), p))
	x := async.New[int]("x")
	w := x.Write()
	ctx, cancel := context.WithCancel(l.ctx)
	first, second := l.make(ctx, sum, x), l.make(ctx, sum, x)
	if _, err := second.Get(l.ctx); !errors.Is(err, weir.ErrLimit) { // the log's task and the first's are two
		t.Errorf("an operation that no task can watch makes %v; expected ErrLimit", err)
	}
	cancel()
	if _, err := first.Get(l.ctx); !errors.Is(err, weir.ErrCancelled) {
		t.Errorf("a cancelled operation makes %v", err)
	}
	w.Release()
	if err := errors.Join(l.s.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

// TestATaskThatWaitsForWhatIsMadeOfItsOwnOutputIsNamed: through operations that
// stepped aside, in a line, and at once or, while they are still queued, by those who
// look for circles.
func TestATaskThatWaitsForWhatIsMadeOfItsOwnOutputIsNamed(t *testing.T) {
	for _, s := range []scheduler.Scheduler{scheduler.NewDebug(scheduler.DebugOptions{}),
		pool(t, scheduler.Options{Lanes: 1, Watchdog: time.Millisecond}), pool(t, scheduler.Options{Lanes: 2, Watchdog: time.Millisecond})} {
		l := newLogger(scheduler.With(context.Background(), s))
		for _, early := range []bool{false, true} {
			x := async.New[int]("x")
			w := x.Write()
			v := l.make(l.ctx, sum, x)
			for range 3 {
				v = l.make(l.ctx, sum, v)
			}
			if early {
				l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2) // they have stepped aside
			}
			task := async.Go(l.ctx, "writes x", func(ctx context.Context) error {
				_, err := v.Get(ctx)
				return err
			}, w)
			if err := task.Wait(l.ctx); !errors.Is(err, weir.ErrDeadlock) || !strings.Contains(err.Error(), "writes x") {
				t.Errorf("%T, early %v: the task answers %v; expected a deadlock that names it", s, early, err)
			}
			if err := v.Wait(l.ctx); !errors.Is(err, weir.ErrPoisoned) || !errors.Is(err, weir.ErrDeadlock) {
				t.Errorf("%T: what it was to write makes %v", s, err)
			}
		}
		if err := errors.Join(l.s.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestOperationsAsideAreListedWhileOthersCome is for the race detector.
func TestOperationsAsideAreListedWhileOthersCome(t *testing.T) {
	p := pool(t, scheduler.Options{Lanes: 2})
	l := newLogger(scheduler.With(context.Background(), p))
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var seen atomic.Bool
	var lists sync.WaitGroup
	stop := make(chan struct{})
	lists.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, i := range p.Tasks() {
				if i.Name == "test.Make" && strings.Contains(i.Waits, `value "x"`) {
					seen.Store(true)
				}
			}
		}
	})
	for round := 0; round < 200 || !seen.Load(); round++ {
		x := async.New[int]("x")
		w := x.Write()
		v := l.make(ctx, &operation{"test.Make", func(_ context.Context, in []int) (int, error) { return in[0], nil }}, x)
		l.expect(t, l.make(l.ctx, sum, async.Of(1)), 2) // it stepped aside
		if err := w.Set(1); err != nil {
			t.Error(err)
		}
		if n, err := v.Get(l.ctx); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	close(stop)
	lists.Wait()
	if err := errors.Join(p.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}
