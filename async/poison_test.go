package async_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/scheduler"
)

// here is "file.go:12" of the line that calls it, plus n.
func here(n int) string {
	_, file, line, _ := goruntime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line+n)
}

// under runs a test under both schedulers.
func under(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Helper()
	for name, s := range map[string]scheduler.Scheduler{
		"debug":   scheduler.NewDebug(scheduler.DebugOptions{Seed: 1}),
		"1 lane":  pool(t, scheduler.Options{Lanes: 1}),
		"3 lanes": pool(t, scheduler.Options{Lanes: 3}),
	} {
		t.Run(name, func(t *testing.T) {
			f(t, scheduler.With(context.Background(), s))
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// poison is the poison that an error carries.
func poison(t *testing.T, err error) *async.Poison {
	t.Helper()
	var p *async.Poison
	if !errors.As(err, &p) {
		t.Fatalf("%v carries no poison", err)
	}
	return p
}

// TestEveryValueThatAFailureReachesCarriesThePoisonOfTheFirstCause computes values
// of others at random; some of the tasks fail. The first cause of a value is that
// of the first of its inputs, in order, that has one.
func TestEveryValueThatAFailureReachesCarriesThePoisonOfTheFirstCause(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s scheduler.Scheduler = scheduler.NewDebug(scheduler.DebugOptions{Seed: rapid.Uint64().Draw(rt, "seed")})
		if rapid.Bool().Draw(rt, "pool") {
			p, err := scheduler.NewPool(scheduler.Options{Lanes: 2})
			if err != nil {
				rt.Fatal(err)
			}
			s = p
		}
		ctx := scheduler.With(context.Background(), s)
		n := rapid.IntRange(1, 12).Draw(rt, "tasks")
		vals := []*async.Value[int]{async.Named("v", 1)}
		causes := []int{-1} // of each value: the task that failed first
		for i := range n {
			var inputs []*async.Reader[int]
			cause := -1
			for range rapid.IntRange(0, 3).Draw(rt, "inputs") {
				k := rapid.IntRange(0, len(vals)-1).Draw(rt, "input")
				inputs = append(inputs, vals[k].Read())
				if cause < 0 {
					cause = causes[k]
				}
			}
			fails, handles := rapid.IntRange(0, 3).Draw(rt, "fails") == 0, rapid.IntRange(0, 4).Draw(rt, "handles") == 0
			switch {
			case handles && !fails:
				cause = -1
			case fails && (cause < 0 || handles):
				cause = i
			}
			target := len(vals)
			if target > 1 && rapid.Bool().Draw(rt, "overwrites") {
				target = rapid.IntRange(1, len(vals)-1).Draw(rt, "target")
			} else {
				vals, causes = append(vals, async.New[int]("v")), append(causes, 0)
			}
			causes[target] = cause
			w := vals[target].Write()
			gates := []async.Gate{w}
			for _, r := range inputs {
				gates = append(gates, r)
			}
			async.Go(ctx, fmt.Sprint("task", i), func(ctx context.Context) error {
				_, err := async.All(ctx, inputs...)
				switch {
				case err != nil && !handles:
					return fmt.Errorf("in a wrapper: %w", err)
				case fails:
					return fmt.Errorf("task%d: %w", i, errFails)
				}
				return w.Set(i)
			}, gates...)
		}
		seen := map[int]*async.Poison{}
		for k, v := range vals {
			_, err := v.Get(ctx)
			if causes[k] < 0 {
				if err != nil {
					rt.Errorf("value %d: %v", k, err)
				}
				continue
			}
			var p *async.Poison
			if !errors.As(err, &p) || !errors.Is(err, errFails) || !errors.Is(err, weir.ErrPoisoned) || errors.Is(err, weir.ErrCancelled) {
				rt.Errorf("value %d is %v; expected poison", k, err)
				continue
			}
			if was := seen[causes[k]]; was != nil && was != p {
				rt.Errorf("value %d is poisoned by %p; another by the same task is by %p", k, p, was)
			}
			seen[causes[k]] = p
			if expected := fmt.Sprintf("task \"task%d\" ", causes[k]); !strings.HasPrefix(p.Op, expected) {
				rt.Errorf("value %d is poisoned by %s; expected %s", k, p.Op, expected)
			}
		}
		if err := s.Close(); err != nil {
			rt.Error(err)
		}
	})
}

func TestPoisonNamesTheTaskAndTheLineThatAskedForIt(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x, y := async.New[int]("x"), async.New[int]("y")
		wx, wy := x.Write(), y.Write()
		r := x.Read()
		site := here(1)
		async.Go(ctx, "bad", func(context.Context) error { return errFails }, wx)
		async.Go(ctx, "next", func(ctx context.Context) error {
			_, err := r.Await(ctx)
			return err
		}, r, wy)
		_, err := y.Get(ctx)
		if p := poison(t, err); p.Op != `task "bad" (#1)` || p.Site() != site || p.Cause != errFails || p.Cancelled {
			t.Errorf("the poison is of %s at %s by %v; expected task bad at %s", p.Op, p.Site(), p.Cause, site)
		}
		if expected := `poisoned: task "bad" (#1) (` + site + `) failed: ` + errFails.Error(); err.Error() != expected {
			t.Errorf("the message is\n%s\nexpected\n%s", err, expected)
		}
	})
}

func TestAllOutputsOfATaskThatFailsCarryOnePoison(t *testing.T) {
	for how, f := range map[string]func(context.Context) error{
		"fails":   func(context.Context) error { return errFails },
		"panics":  func(context.Context) error { panic("boom") },
		"is gone": func(context.Context) error { goruntime.Goexit(); return nil },
	} {
		under(t, func(t *testing.T, ctx context.Context) {
			x, y, z := async.New[int]("x"), async.New[string]("y"), async.New[int]("z")
			async.Go(ctx, how, f, x.Write(), y.Write(), z.Write())
			_, err := x.Get(ctx)
			p := poison(t, err)
			for _, err := range []error{y.Wait(ctx), z.Wait(ctx)} {
				if poison(t, err) != p {
					t.Errorf("a task that %s poisons one with %v and one with %v", how, p, err)
				}
			}
		})
	}
}

func TestAWritersOwnFailureIsNotThatOfItsTask(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x, y := async.New[int]("x"), async.New[int]("y")
		wx, wy := x.Write(), y.Write()
		other := errors.New("other")
		async.Go(ctx, "bad", func(context.Context) error {
			if err := wx.Fail(other); err != nil {
				t.Error(err)
			}
			return errFails
		}, wx, wy)
		if err := x.Wait(ctx); !errors.Is(err, other) || errors.Is(err, errFails) {
			t.Errorf("x is %v", err)
		}
		if err := y.Wait(ctx); errors.Is(err, other) || !errors.Is(err, errFails) {
			t.Errorf("y is %v", err)
		}
	})
}

func TestWhatACancelledTaskWasToWriteSaysSo(t *testing.T) {
	custom := errors.New("the user's cause")
	past, end := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer end()
	for name, c := range map[string]struct {
		cancel func(context.Context) (context.Context, func())
		cause  error
		not    []error
	}{
		"cancel": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, context.Canceled, []error{context.DeadlineExceeded, custom}},
		"cause": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(custom) }
		}, custom, []error{context.DeadlineExceeded}},
		"deadline": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(past.Err()) }
		}, context.DeadlineExceeded, []error{context.Canceled, custom}},
	} {
		for _, when := range []string{"before", "during"} {
			t.Run(name+" "+when, func(t *testing.T) {
				under(t, func(t *testing.T, ctx context.Context) {
					never, x, y := async.New[int]("never"), async.New[int]("x"), async.New[int]("y")
					wn, w := never.Write(), x.Write()
					r, wy := x.Read(), y.Write()
					task, cancel := c.cancel(ctx)
					if when == "before" {
						cancel()
					}
					async.Go(task, "waits", func(ctx context.Context) error {
						_, err := never.Get(ctx)
						return err
					}, w)
					async.Go(ctx, "next", func(ctx context.Context) error {
						_, err := r.Await(ctx)
						return err
					}, r, wy)
					cancel()
					err := y.Wait(ctx)
					p := poison(t, err)
					if !p.Cancelled || !strings.Contains(err.Error(), `task "waits" (#1)`) || !strings.Contains(err.Error(), " was cancelled: ") {
						t.Errorf("the poison is %v, Cancelled %v", p, p.Cancelled)
					}
					for _, is := range []error{weir.ErrCancelled, weir.ErrPoisoned, c.cause} {
						if !errors.Is(err, is) {
							t.Errorf("%v does not match %v", err, is)
						}
					}
					for _, not := range append(c.not, weir.ErrUninitialized, weir.ErrDeadlock) {
						if errors.Is(err, not) {
							t.Errorf("%v matches %v", err, not)
						}
					}
					wn.Release()
				})
			})
		}
	}
}

func TestAWaitFromOutsideEndsWithItsContextAndPoisonsNothing(t *testing.T) {
	x := async.New[int]("x")
	w := x.Write()
	r := x.Read()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errGone)
	for name, wait := range map[string]func() error{
		"Get":          func() error { _, err := x.Get(ctx); return err },
		"reader.Await": func() error { _, err := r.Await(ctx); return err },
		"writer.Await": func() error { w := x.Write(); defer w.Release(); _, err := w.Await(ctx); return err },
		"Take":         func() error { _, err := x.Take(ctx); return err },
		"Wait":         func() error { return x.Wait(ctx) },
	} {
		if err := wait(); !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errGone) || errors.Is(err, weir.ErrPoisoned) || errors.Is(err, weir.ErrUninitialized) {
			t.Errorf("%s answers %v", name, err)
		}
	}
	if err := w.Set(3); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Await(context.Background()); n != 3 || err != nil { // a wait that was cancelled is no use
		t.Errorf("the reader reads %d, %v", n, err)
	}
	if n, err := x.Get(context.Background()); n != 3 || err != nil {
		t.Errorf("Get answers %d, %v", n, err)
	}
}

func TestATaskThatFailsForItsOwnReasonAfterItWasCancelledIsNotCancelled(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x := async.New[int]("x")
		task, cancel := context.WithCancel(ctx)
		async.Go(task, "bad", func(context.Context) error { cancel(); return errFails }, x.Write())
		if err := x.Wait(ctx); !errors.Is(err, errFails) || errors.Is(err, weir.ErrCancelled) {
			t.Errorf("x is %v", err)
		}
	})
}

func TestATaskPoisonedByACancelledOneIsItselfNotCancelled(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x := async.New[int]("x")
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errGone)
		async.Go(ended, "gone", func(context.Context) error { t.Error("it runs"); return nil }, x.Write())
		w := x.Write()
		got := async.New[int]("got")
		wg := got.Write()
		async.Go(ctx, "accumulate", func(ctx context.Context) error {
			_, err := w.Await(ctx)
			if !errors.Is(err, weir.ErrPoisoned) || errors.Is(err, weir.ErrUninitialized) || ctx.Err() != nil {
				t.Errorf("the writer reads %v", err)
			}
			if err := w.Set(4); err != nil { // a full overwrite
				return err
			}
			return wg.Set(1)
		}, w, wg)
		if n, err := x.Get(ctx); n != 4 || err != nil {
			t.Errorf("x is %d, %v", n, err)
		}
		if err := got.Wait(ctx); err != nil {
			t.Error(err)
		}
	})
}

// asking is an error that uses values as it is asked what it is.
type asking struct{ of *async.Value[int] }

func (asking) Error() string { return "asking" }

func (a asking) Is(error) bool {
	_, _ = a.of.Get(context.Background())
	return false
}

func TestAnErrorMayUseValuesWhenItIsAskedWhatItIs(t *testing.T) {
	l := newLogger(scheduler.With(context.Background(), pool(t, scheduler.Options{})))
	failure := asking{async.Of(1)}
	x, y := async.New[int]("x"), async.New[int]("y")
	w := x.Write()
	async.Go(l.ctx, "fails", func(context.Context) error { return failure }, w)
	z := l.make(l.ctx, &operation{"test.Fail", func(context.Context, []int) (int, error) { return 0, failure }})
	if err := y.Write().Fail(failure); err != nil {
		t.Error(err)
	}
	for _, v := range []*async.Value[int]{x, y, z} {
		if p := poison(t, v.Wait(l.ctx)); p.Cause != error(failure) {
			t.Errorf("%v is poisoned by %v", v, p.Cause)
		}
	}
	if err := errors.Join(l.s.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}
