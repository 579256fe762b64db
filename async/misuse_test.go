package async_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/scheduler"
)

// wrong checks an error's class and exact message.
func wrong(t *testing.T, err, class error, message string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%v is no %v", err, class)
	}
	if err == nil || err.Error() != message {
		t.Errorf("the message is\n%v\nexpected\n%s", err, message)
	}
}

func TestReadingWhatWasNeverWrittenNamesTheValue(t *testing.T) {
	ctx := context.Background()
	x := async.New[int]("theta")
	_, err := x.Get(ctx)
	wrong(t, err, weir.ErrUninitialized, `async.Get: value "theta" was never written`)
	_, err = x.Read().Await(ctx)
	wrong(t, err, weir.ErrUninitialized, `reader.Await: value "theta" was never written`)
	_, _, err = x.Read().TryAwait()
	wrong(t, err, weir.ErrUninitialized, `reader.TryAwait: value "theta" was never written`)
	y := async.New[int]("fresh")
	w := y.Write()
	_, err = w.Await(ctx)
	wrong(t, err, weir.ErrUninitialized, `writer.Await: value "fresh" was never written`)
	_, err = unwritten().Take(ctx)
	wrong(t, err, weir.ErrUninitialized, `writer.Await: value "taken" was never written`)
	z := new(int)
	nameless := async.New[*int]("")
	_, err = nameless.Get(ctx)
	wrong(t, err, weir.ErrUninitialized, fmt.Sprintf("async.Get: value %p was never written", nameless))
	if err := nameless.Set(z); err != nil || nameless.Name() != "" || x.Name() != "theta" {
		t.Error(err, nameless.Name(), x.Name())
	}
}

func unwritten() *async.Value[int] { return async.New[int]("taken") }

func TestAGateHasOneOwner(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x, other, before := async.Named("x", 1), async.New[int]("other"), async.New[int]("before")
		w, r := x.Write(), x.Read()
		go1 := async.New[int]("go")
		wgo, rgo := go1.Write(), go1.Read()
		async.Go(ctx, "first", func(ctx context.Context) error {
			if _, err := rgo.Await(ctx); err != nil {
				return err
			}
			return w.Set(2)
		}, w, r, rgo)
		never := func(context.Context) error { t.Error("it runs"); return nil }
		second := async.Go(ctx, "second", never, before.Write(), w, other.Write())
		message := `async.Go: task "second" (#0) is given a writer of value "x" that task "first" (#1) has; it has one owner`
		wrong(t, second.Wait(ctx), weir.ErrBusy, message)
		for _, v := range []*async.Value[int]{before, other} { // gates before and after the one that cannot be had
			if err := v.Wait(ctx); !errors.Is(err, weir.ErrBusy) || !errors.Is(err, weir.ErrPoisoned) || !strings.Contains(err.Error(), message) {
				t.Errorf("%v is %v", v, err)
			}
		}
		if poison(t, before.Wait(ctx)) != poison(t, other.Wait(ctx)) {
			t.Error("the outputs of a task that was refused carry two poisons")
		}
		third := async.Go(ctx, "third", never, r)
		wrong(t, third.Wait(ctx), weir.ErrBusy, `async.Go: task "third" (#0) is given a reader of value "x" that task "first" (#1) has; it has one owner`)
		if err := wgo.Set(1); err != nil {
			t.Error(err)
		}
		if n, err := x.Get(ctx); n != 2 || err != nil { // what others tried did no harm
			t.Errorf("x is %d, %v", n, err)
		}
	})
}

func TestAGateThatWasReleasedCannotBeGiven(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x := async.Named("x", 1)
		w, r, out := x.Write(), x.Read(), async.New[int]("out")
		w.Release()
		r.Release()
		never := func(context.Context) error { t.Error("it runs"); return nil }
		wrong(t, async.Go(ctx, "late", never, w).Wait(ctx), weir.ErrStale, `async.Go: task "late" (#0) is given a writer of value "x" (write 1) that was released`)
		task := async.Go(ctx, "late", never, r, out.Write())
		wrong(t, task.Wait(ctx), weir.ErrStale, `async.Go: task "late" (#0) is given a reader of value "x" (write 1) that was released`)
		if err := out.Wait(ctx); !errors.Is(err, weir.ErrStale) || !errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("out is %v", err)
		}
	})
}

func TestATaskWithoutAFunctionPoisonsItsOutputs(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x := async.New[int]("x")
		task := async.Go(ctx, "empty", nil, x.Write())
		wrong(t, task.Wait(ctx), weir.ErrArgument, `scheduler.New: task "empty" has no function to run`)
		if err := x.Wait(ctx); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("x is %v", err)
		}
	})
}

func TestAWriterWritesOnce(t *testing.T) {
	ctx := context.Background()
	const set = `%s: value "x" (write 0) was set already; a writer writes once`
	const released = `%s: the writer of value "x" (write 0) was released`
	for name, c := range map[string]struct {
		end     func(*async.Writer[int]) error
		message string
	}{
		"Set":     {func(w *async.Writer[int]) error { return w.Set(1) }, set},
		"Release": {func(w *async.Writer[int]) error { w.Release(); return nil }, released},
		"Fail":    {func(w *async.Writer[int]) error { return w.Fail(errFails) }, released},
	} {
		t.Run(name, func(t *testing.T) {
			x := async.New[int]("x")
			w := x.Write()
			if err := c.end(w); err != nil {
				t.Fatal(err)
			}
			n, before := x.Get(ctx)
			wrong(t, w.Set(2), weir.ErrStale, fmt.Sprintf(c.message, "writer.Set"))
			wrong(t, w.Fail(errGone), weir.ErrStale, fmt.Sprintf(c.message, "writer.Fail"))
			_, err := w.Await(ctx)
			wrong(t, err, weir.ErrStale, fmt.Sprintf(c.message, "writer.Await"))
			w.Release()
			w.Release()
			if m, after := x.Get(ctx); m != n || fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("x was %d, %v; now it is %d, %v", n, before, m, after)
			}
		})
	}
	w := async.New[int]("x").Write()
	wrong(t, w.Fail(nil), weir.ErrArgument, `writer.Fail: the failure of value "x" is nil; expected an error`)
	w.Release()
}

func TestAReaderIsReadOnceUntilReleased(t *testing.T) {
	ctx := context.Background()
	x := async.Named("x", 1)
	r := x.Read()
	c := r.Clone()
	if n, err := r.Await(ctx); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	const twice = `%s: the reader of value "x" (write 0) was awaited before; Clone it for a second use`
	_, err := r.Await(ctx)
	wrong(t, err, weir.ErrStale, fmt.Sprintf(twice, "reader.Await"))
	_, _, err = r.TryAwait()
	wrong(t, err, weir.ErrStale, fmt.Sprintf(twice, "reader.TryAwait"))
	if n, ok, err := c.TryAwait(); n != 1 || !ok || err != nil {
		t.Errorf("the clone reads %d, %v, %v", n, ok, err)
	}
	_, err = c.Await(ctx)
	wrong(t, err, weir.ErrStale, fmt.Sprintf(twice, "reader.Await"))
	const released = `%s: the reader of value "x" (write 0) was released`
	for _, r := range []*async.Reader[int]{r, c} {
		r.Release()
		r.Release()
		_, err = r.Await(ctx)
		wrong(t, err, weir.ErrStale, fmt.Sprintf(released, "reader.Await"))
		_, _, err = r.TryAwait()
		wrong(t, err, weir.ErrStale, fmt.Sprintf(released, "reader.TryAwait"))
		_, err = r.Clone().Await(ctx)
		wrong(t, err, weir.ErrStale, fmt.Sprintf(released, "reader.Await"))
	}
	w := x.Write() // nothing holds it back
	if n, err := w.Await(ctx); n != 1 || err != nil {
		t.Errorf("the writer reads %d, %v", n, err)
	}
	w.Release()
}

// TestTwoReleasesOfOneReaderAreOne: a clone's hold is not let go of by another's
// second release.
func TestTwoReleasesOfOneReaderAreOne(t *testing.T) {
	x := async.Named("x", 1)
	r := x.Read()
	c := r.Clone()
	r.Release()
	r.Release()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	w := x.Write()
	if _, err := w.Await(ended); !errors.Is(err, weir.ErrCancelled) {
		t.Errorf("with a clone held the writer answers %v", err)
	}
	c.Release()
	if n, err := w.Await(ended); n != 1 || err != nil {
		t.Errorf("with nothing held the writer answers %d, %v", n, err)
	}
	w.Release()
}

// yields is a lane that tells when its goroutine is about to wait.
type yields chan struct{}

func (y yields) Yield(scheduler.Wait) { y <- struct{}{} }
func (yields) Resume()                {}

// waiting starts f, whose context tells when it waits, and answers what it answers
// once it does.
func waiting(f func(ctx context.Context) error) <-chan error {
	lane, got := make(yields), make(chan error, 1)
	go func() { got <- f(scheduler.WithLane(context.Background(), lane)) }()
	<-lane
	return got
}

func TestAReaderOrWriterThatTwoGoroutinesAwaitIsBusy(t *testing.T) {
	ctx := context.Background()
	x := async.Named("x", 1)
	hold := x.Read()
	w := x.Write()
	got := waiting(func(ctx context.Context) error { _, err := w.Await(ctx); return err })
	_, err := w.Await(ctx)
	wrong(t, err, weir.ErrBusy, `writer.Await: the writer of value "x" (write 1) is awaited by another goroutine; a writer has one owner`)
	hold.Release()
	if err := <-got; err != nil {
		t.Errorf("the first is answered %v", err)
	}
	r := x.Read()
	got = waiting(func(ctx context.Context) error { _, err := r.Await(ctx); return err })
	_, err = r.Await(ctx)
	wrong(t, err, weir.ErrStale, `reader.Await: the reader of value "x" (write 1) was awaited before; Clone it for a second use`)
	if err := w.Set(2); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the first is answered %v", err)
	}
}

func TestWhoeverWaitsIsNotLeftWhenAnotherLetsGo(t *testing.T) {
	x := async.New[int]("x")
	w := x.Write()
	r := x.Read()
	got := waiting(func(ctx context.Context) error {
		n, err := r.Await(ctx)
		if n != 5 {
			t.Errorf("it reads %d", n)
		}
		return err
	})
	r.Release() // takes nothing from under the wait
	if err := w.Set(5); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	hold := x.Read()
	w = x.Write()
	got = waiting(func(ctx context.Context) error { _, err := w.Await(ctx); return err })
	w.Release()
	wrong(t, <-got, weir.ErrStale, `writer.Await: the writer of value "x" (write 1) was released`)
	hold.Release()
}

// stuck runs f as a task with gates and answers who it is, where it was made, and
// its failure.
func stuck(ctx context.Context, f func(ctx context.Context) error, gates ...async.Gate) (name, site string, err error) {
	task := async.Go(ctx, "stuck", f, gates...)
	return task.String(), task.Site().String(), task.Wait(ctx)
}

func TestATaskThatWouldWaitForItselfIsToldWhatToRelease(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x := async.Named("x", 1)
		w, r := x.Write(), x.Read()
		name, site, err := stuck(ctx, func(ctx context.Context) error { _, err := r.Await(ctx); return err }, w, r)
		wrong(t, err, weir.ErrDeadlock, `reader.Await: `+name+` would wait for itself: of value "x" it holds the writer that is to write what it waits for; release that first`)
		var e *weir.Error
		if !errors.As(err, &e) || e.Site != site {
			t.Errorf("the site is %s; expected %s", e.Site, site)
		}

		x = async.Named("x", 1)
		w = x.Write()
		name, _, err = stuck(ctx, func(ctx context.Context) error { _, err := x.Get(ctx); return err }, w)
		wrong(t, err, weir.ErrDeadlock, `async.Get: `+name+` would wait for itself: of value "x" it holds the writer that is to write what it waits for; release that first`)

		x = async.Named("x", 1)
		w = x.Write()
		x.Write().Release()
		name, _, err = stuck(ctx, func(ctx context.Context) error { _, err := x.Get(ctx); return err }, w)
		wrong(t, err, weir.ErrDeadlock, `async.Get: `+name+` would wait for itself: of value "x" it holds the writer that is to write what it waits for; release that first`)

		x = async.Named("x", 1)
		r, w = x.Read(), x.Write()
		name, _, err = stuck(ctx, func(ctx context.Context) error { _, err := w.Await(ctx); return err }, w, r)
		wrong(t, err, weir.ErrDeadlock, `writer.Await: `+name+` would wait for itself: of value "x" it holds a reader, which an earlier write waits for; release that first`)

		x = async.Named("x", 1)
		w = x.Write()
		again := x.Write()
		name, _, err = stuck(ctx, func(ctx context.Context) error { _, err := again.Await(ctx); return err }, w, again)
		wrong(t, err, weir.ErrDeadlock, `writer.Await: `+name+` would wait for itself: of value "x" it holds an earlier writer; release that first`)

		x = async.Named("x", 1)
		r = x.Read()
		name, _, err = stuck(ctx, func(ctx context.Context) error { _, err := x.Take(ctx); return err }, r)
		wrong(t, err, weir.ErrDeadlock, `writer.Await: `+name+` would wait for itself: of value "x" it holds a reader, which an earlier write waits for; release that first`)
		if n, err := x.Get(ctx); n != 1 || err != nil {
			t.Errorf("after a Take that failed x is %d, %v", n, err)
		}
	})
}

// circle has two tasks wait for one another: a is to write x and waits for y; b
// the other way round.
func circle(ctx context.Context) (x, y *async.Value[int]) {
	x, y = async.New[int]("x"), async.New[int]("y")
	wx, wy := x.Write(), y.Write()
	rx, ry := x.Read(), y.Read()
	async.Go(ctx, "a", func(ctx context.Context) error { _, err := ry.Await(ctx); return err }, wx, ry)
	async.Go(ctx, "b", func(ctx context.Context) error { _, err := rx.Await(ctx); return err }, wy, rx)
	return x, y
}

func TestTheDebugSchedulerNamesACircleOfTasks(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: 3})
	ctx := scheduler.With(context.Background(), d)
	x, _ := circle(ctx)
	_, err := x.Get(ctx)
	var dead *scheduler.Deadlock
	if !errors.As(err, &dead) || !errors.Is(err, weir.ErrDeadlock) {
		t.Fatalf("Get answers %v", err)
	}
	if len(dead.Circle) != 2 || len(dead.Tasks) != 2 || dead.Caller != `value "x", to be written (write 0)` {
		t.Errorf("the deadlock is %v", dead)
	}
	for _, part := range []string{`waits for value "x", to be written (write 0), held by #1; it holds write of y, epoch 0 (open), read of x, epoch 0 (closed)`,
		`waits for value "y", to be written (write 0), held by #2`, "circle: "} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v\nlacks %s", err, part)
		}
	}
	if err := d.Close(); !errors.Is(err, weir.ErrLeak) {
		t.Errorf("Close answers %v", err)
	}
	if err := x.Wait(context.Background()); !errors.Is(err, weir.ErrClosed) || !errors.Is(err, weir.ErrPoisoned) {
		t.Errorf("x is %v", err)
	}
}

func TestThePoolsWatchdogEndsACircleOfTasksAndNamesIt(t *testing.T) {
	seen := make(chan *scheduler.Deadlock, 1)
	p := pool(t, scheduler.Options{Lanes: 1, Watchdog: time.Millisecond, OnDeadlock: func(d *scheduler.Deadlock) {
		select {
		case seen <- d:
		default:
		}
	}})
	ctx := scheduler.With(context.Background(), p)
	x, y := circle(ctx)
	for _, v := range []*async.Value[int]{x, y} {
		if err := v.Wait(ctx); !errors.Is(err, weir.ErrDeadlock) || !errors.Is(err, weir.ErrPoisoned) || !strings.Contains(err.Error(), "circle: ") {
			t.Errorf("%v is %v", v, err)
		}
	}
	if d := <-seen; len(d.Circle) != 2 {
		t.Errorf("the watchdog says %v", d)
	}

	z := async.Named("z", 1) // in place: a holds a reader; b waits for it; a waits for b
	held, wz := z.Read(), z.Write()
	after := z.Read()
	a := async.Go(ctx, "a", func(ctx context.Context) error {
		if _, err := held.Await(ctx); err != nil {
			return err
		}
		_, err := after.Await(ctx)
		return err
	}, held, after)
	async.Go(ctx, "b", func(ctx context.Context) error { _, err := wz.Await(ctx); return err }, wz)
	if err := a.Wait(ctx); !errors.Is(err, weir.ErrDeadlock) {
		t.Errorf("a answers %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestAWriterThatNobodyReleasesIsNamed(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{})
	p := pool(t, scheduler.Options{Lanes: 1})
	for _, s := range []scheduler.Scheduler{d, p} {
		ctx := scheduler.With(context.Background(), s)
		x, y := async.New[int]("forgotten"), async.New[int]("y")
		w := x.Write() // no gate of the task
		async.Go(ctx, "forgets", func(ctx context.Context) error { _ = w; return nil })
		r, wy := x.Read(), y.Write()
		site := here(1)
		task := async.Go(ctx, "reads", func(ctx context.Context) error { _, err := r.Await(ctx); return err }, r, wy)
		if s == d {
			_, err := x.Get(ctx)
			if !errors.Is(err, weir.ErrDeadlock) || !strings.Contains(err.Error(), `task "reads" (#2) made at `+site+` waits for value "forgotten", to be written (write 0); it holds `) {
				t.Errorf("Get answers %v", err)
			}
		}
		err := s.Close()
		var e *weir.Error
		if !errors.Is(err, weir.ErrLeak) || !errors.As(err, &e) || e.Site != site ||
			err.Error() != `scheduler.Close: task "reads" (#2) still waits for value "forgotten", to be written (write 0)` {
			t.Errorf("Close answers %v, of %v", err, e)
		}
		if err := task.Wait(ctx); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("the task ended with %v", err)
		}
		if err := y.Wait(context.Background()); !errors.Is(err, weir.ErrClosed) || !errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("y is %v", err)
		}
		w.Release()
	}
}

func TestAPanicIsAFailureWithItsStack(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		x := async.New[int]("x")
		async.Go(ctx, "explodes", func(context.Context) error { panic(errFails) }, x.Write())
		err := x.Wait(ctx)
		var e *weir.Error
		if !errors.Is(err, weir.ErrPanic) || !errors.Is(err, errFails) || !errors.As(err, &e) || !strings.Contains(e.Stack, "misuse_test.go") {
			t.Errorf("x is %v", err)
		}
	})
}

func TestTheFailureOfANestedTaskReachesTheOuterOne(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		out := async.New[int]("out")
		w := out.Write()
		async.Go(ctx, "outer", func(ctx context.Context) error {
			mid := async.New[int]("mid")
			wm := mid.Write()
			async.Go(ctx, "middle", func(ctx context.Context) error {
				return async.Go(ctx, "inner", func(context.Context) error { return errFails }, wm).Wait(ctx)
			})
			_, err := mid.Get(ctx)
			return err
		}, w)
		err := out.Wait(ctx)
		if p := poison(t, err); !strings.HasPrefix(p.Op, `task "inner"`) || !errors.Is(err, errFails) {
			t.Errorf("out is %v", err)
		}
	})
}

func TestAllAnswersTheFirstErrorInOrderAndWhatTheOthersAre(t *testing.T) {
	under(t, func(t *testing.T, ctx context.Context) {
		a, b, c, d := async.New[int]("a"), async.New[int]("b"), async.New[int]("c"), async.Named("d", 4)
		wa, wb := a.Write(), b.Write()
		ra, rb, rc, rd := a.Read(), b.Read(), c.Read(), d.Read()
		other := errors.New("other")
		async.Go(ctx, "b", func(context.Context) error { return other }, wb)
		async.Go(ctx, "a", func(ctx context.Context) error { _ = b.Wait(ctx); return errFails }, wa) // fails last in time
		all, err := async.All(ctx, rd, ra, rb, rc)
		if !errors.Is(err, errFails) || errors.Is(err, other) || len(all) != 4 || all[0] != 4 {
			t.Errorf("All answers %v, %v", all, err)
		}
		for _, r := range []*async.Reader[int]{ra, rb, rc, rd} {
			r.Release()
		}
	})
}

func TestWithoutARuntimeATaskIsRefused(t *testing.T) {
	ctx := context.Background()
	x, y := async.New[int]("x"), async.Named("y", 1)
	w, r := x.Write(), y.Read()
	task := async.Go(ctx, "early", func(context.Context) error { t.Error("it runs"); return nil }, w, r)
	if err := task.Wait(ctx); !errors.Is(err, weir.ErrNotStarted) {
		t.Errorf("the task ended with %v", err)
	}
	if err := x.Wait(ctx); !errors.Is(err, weir.ErrNotStarted) || !errors.Is(err, weir.ErrPoisoned) {
		t.Errorf("x is %v", err)
	}
	wy := y.Write()
	if n, err := wy.Await(ctx); n != 1 || err != nil { // the reader was released
		t.Errorf("y is %d, %v", n, err)
	}
	wy.Release()
}

func TestAClosedSchedulerRefusesATaskAndItsGatesOpen(t *testing.T) {
	for _, s := range []scheduler.Scheduler{scheduler.NewDebug(scheduler.DebugOptions{}), pool(t, scheduler.Options{})} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ctx := scheduler.With(context.Background(), s)
		x := async.New[int]("x")
		async.Go(ctx, "late", func(context.Context) error { t.Error("it runs"); return nil }, x.Write())
		if err := x.Wait(ctx); !errors.Is(err, weir.ErrClosed) || !errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("x is %v", err)
		}
	}
}

// TestEverythingWorksFromPlainGoroutines has no scheduler at all.
func TestEverythingWorksFromPlainGoroutines(t *testing.T) {
	ctx := context.Background()
	x := async.New[int]("x")
	const n = 200
	var at atomic.Int32
	done := make(chan error, n)
	for range n {
		w := x.Write()
		go func() {
			if at.Add(1)%7 == 0 {
				w.Release()
				done <- nil
				return
			}
			sum, err := w.Await(ctx)
			if err != nil && !errors.Is(err, weir.ErrUninitialized) {
				done <- err
				return
			}
			done <- w.Set(sum + 1)
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if sum, err := x.Get(ctx); sum != n-n/7 || err != nil {
		t.Errorf("the sum is %d, %v; expected %d", sum, err, n-n/7)
	}
	if sum, err := x.Take(ctx); sum != n-n/7 || err != nil {
		t.Errorf("Take answers %d, %v", sum, err)
	}
}
