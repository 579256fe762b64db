package async_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/scheduler"
)

// script is a Launcher that notes the names of what it is given, and does with it
// what a test says.
type script struct {
	do func(ctx context.Context, level []async.Launch[int])

	mu     sync.Mutex
	levels [][]string // sorted: what a level has is in no order
	times  map[string]int
}

func (s *script) Scarce(error) bool { return false }

func (s *script) Together() bool { return true }
func (s *script) Window()        {}

func (s *script) LaunchAll(ctx context.Context, level []async.Launch[int]) {
	var names []string
	for i := range level {
		names = append(names, level[i].Op.Name())
	}
	slices.Sort(names)
	if slices.Contains(names, "test.Block") {
		level[0].Alone(ctx)
		return
	}
	s.mu.Lock()
	s.levels = append(s.levels, names)
	s.mu.Unlock()
	if s.do == nil {
		s.do = atOnce
	}
	s.do(ctx, level)
}

// atOnce launches all that can be launched, and then says what was made.
func atOnce(ctx context.Context, level []async.Launch[int]) {
	type result struct {
		n   int
		err error
	}
	results := make([]result, len(level))
	for i := range level {
		x := &level[i]
		under, err := x.Context(ctx)
		if err == nil {
			results[i].n, err = x.Op.Launch(under, x.In)
		}
		results[i].err = err
	}
	for i, r := range results {
		if r.err != nil {
			level[i].Fail(r.err)
		} else {
			level[i].Made(r.n)
		}
	}
}

// named is sum under another name, that counts how often it is launched.
func (s *script) named(name string) *operation { return s.counted(name, sum.launch) }

func (s *script) counted(name string, launch func(context.Context, []int) (int, error)) *operation {
	return &operation{name, func(ctx context.Context, in []int) (int, error) {
		s.mu.Lock()
		if s.times == nil {
			s.times = map[string]int{}
		}
		s.times[name]++
		s.mu.Unlock()
		return launch(ctx, in)
	}}
}

// once checks that each of these was launched exactly once.
func (s *script) once(t *testing.T, names ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		if s.times[n] != 1 {
			t.Errorf("%s was launched %d times; expected once", n, s.times[n])
		}
	}
}

// scripted runs a test of a log with a script under both schedulers. What the test
// asks for before it calls the log's open is in as few windows as it can be.
func scripted(t *testing.T, f func(t *testing.T, l *logger, s *script, open func())) {
	t.Helper()
	under(t, func(t *testing.T, ctx context.Context) {
		s := &script{}
		l := &logger{async.NewLog(context.Background(), "arena", async.Launcher[int](s)), ctx, scheduler.Of(ctx)}
		open := func() {} // a debug scheduler runs nothing before somebody waits
		if _, debug := l.s.(*scheduler.Debug); !debug {
			open = blocked(l)
		}
		f(t, l, s, open)
		if err := errors.Join(l.s.Close(), l.Close()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// alias is an operation whose result may view its first input.
type alias struct {
	*operation
	shares bool
}

func (a alias) Shares(int, int) bool { return a.shares }

func (l *logger) view(s *script, name string, shares bool, in *async.Value[int]) *async.Value[int] {
	return l.View(l.ctx, l.s, callers.Site{}, false, alias{s.named(name), shares}, in)
}

func TestALevelIsWhatNeedsNothingOfEachOther(t *testing.T) {
	type values = []*async.Value[int]
	for name, c := range map[string]struct {
		ask  func(l *logger, s *script, x, y *async.Value[int]) values
		want [][]string
	}{
		"independent": {func(l *logger, s *script, x, y *async.Value[int]) values {
			return values{l.make(l.ctx, s.named("a"), x), l.make(l.ctx, s.named("b"), x, y), l.make(l.ctx, s.named("c"))}
		}, [][]string{{"a", "b", "c"}}},
		"a chain": {func(l *logger, s *script, x, y *async.Value[int]) values {
			return values{l.make(l.ctx, s.named("c"), l.make(l.ctx, s.named("b"), l.make(l.ctx, s.named("a"), x)))}
		}, [][]string{{"a"}, {"b"}, {"c"}}},
		"a diamond": {func(l *logger, s *script, x, y *async.Value[int]) values {
			a := l.make(l.ctx, s.named("a"), x)
			b, c := l.make(l.ctx, s.named("b"), a), l.make(l.ctx, s.named("c"), y, a)
			return values{l.make(l.ctx, s.named("d"), x, y, x, y, b, c)} // past those that a record has room for
		}, [][]string{{"a"}, {"b", "c"}, {"d"}}},
		"chains one after the other": {func(l *logger, s *script, x, y *async.Value[int]) (last values) {
			for _, first := range []string{"a", "b", "c"} {
				v := x
				for i := range 3 {
					v = l.make(l.ctx, s.named(fmt.Sprint(first, i)), v)
				}
				last = append(last, v)
			}
			return last
		}, [][]string{{"a0", "b0", "c0"}, {"a1", "b1", "c1"}, {"a2", "b2", "c2"}}},
		"in place": {func(l *logger, s *script, x, y *async.Value[int]) values {
			l.update(l.ctx, s.named("x1"), x)
			l.update(l.ctx, s.named("y1"), y)
			l.update(l.ctx, s.named("x2"), x)
			l.update(l.ctx, s.named("y2"), y)
			return values{x, y}
		}, [][]string{{"x1", "y1"}, {"x2", "y2"}}},
		"after who reads": {func(l *logger, s *script, x, y *async.Value[int]) values {
			a := l.make(l.ctx, s.named("a"), y)
			b := l.make(l.ctx, s.named("b"), a, x) // reads x late
			c := l.make(l.ctx, s.named("c"), x)
			l.update(l.ctx, s.named("u"), x)
			d := l.make(l.ctx, s.named("d"), x)
			return values{b, c, d}
		}, [][]string{{"a", "c"}, {"b"}, {"u"}, {"d"}}},
		"each changed by the other": {func(l *logger, s *script, x, y *async.Value[int]) values {
			l.update(l.ctx, s.named("x"), x, y)
			l.update(l.ctx, s.named("y"), y, x)
			l.update(l.ctx, s.named("itself"), y, y)
			return values{x, y}
		}, [][]string{{"x"}, {"y"}, {"itself"}}},
		"taken": {func(l *logger, s *script, x, y *async.Value[int]) values {
			a := l.make(l.ctx, s.named("a"), x)
			l.take(l.ctx, s.named("take"), x)
			b := l.make(l.ctx, s.named("b"), y)
			return values{a, b}
		}, [][]string{{"a", "b"}, {"take"}}},
		"a view": {func(l *logger, s *script, x, y *async.Value[int]) values {
			v := l.view(s, "view", true, x)
			r := l.make(l.ctx, s.named("reads v"), v)
			l.update(l.ctx, s.named("updates v"), v)
			q := l.make(l.ctx, s.named("reads x"), x)
			l.update(l.ctx, s.named("updates x"), x)
			p := l.make(l.ctx, s.named("reads v again"), v)
			return values{r, q, p}
		}, [][]string{{"view"}, {"reads v"}, {"updates v"}, {"reads x"}, {"updates x"}, {"reads v again"}}},
		"a view of a view": {func(l *logger, s *script, x, y *async.Value[int]) values {
			v := l.view(s, "view", true, x)
			w := l.view(s, "view of it", true, v)
			l.update(l.ctx, s.named("updates x"), x)
			return values{l.make(l.ctx, s.named("reads w"), w)}
		}, [][]string{{"view"}, {"view of it"}, {"updates x"}, {"reads w"}}},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
				last := c.ask(l, s, async.Named("x", 1), async.Named("y", 2))
				open()
				for _, v := range last {
					if _, err := v.Get(l.ctx); err != nil {
						t.Error(err)
					}
				}
				if err := l.s.Close(); err != nil { // takes leave nothing to wait for
					t.Error(err)
				}
				if n := l.Returned(); n != 0 {
					t.Errorf("%d operations stepped aside; expected that the levels spare them that", n)
				}
				if fmt.Sprint(s.levels) != fmt.Sprint(c.want) {
					t.Errorf("the levels are %v; expected %v", s.levels, c.want)
				}
			})
		})
	}
}

// TestATurnComesAfterAllThatWasAskedForBefore it, however long that takes, and holds
// up nothing behind it.
func TestATurnComesAfterAllThatWasAskedForBefore(t *testing.T) {
	scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
		x := async.New[int]("x")
		w := x.Write()
		aside := l.make(l.ctx, s.named("aside"), x)
		l.make(l.ctx, s.named("b"), l.make(l.ctx, s.named("a")))
		turn := l.Turn(l.ctx, l.s, s.named("turn"))
		l.make(l.ctx, s.named("c"))
		again := l.Turn(l.ctx, l.s, s.named("again"))
		open()
		for _, v := range []*async.Value[int]{turn, again} {
			if _, err := v.Get(l.ctx); err != nil {
				t.Error(err)
			}
		}
		if want := [][]string{{"a", "c"}, {"b"}, {"turn"}, {"again"}}; fmt.Sprint(s.levels) != fmt.Sprint(want) {
			t.Errorf("the levels are %v; expected %v", s.levels, want)
		}
		if n := l.Returned(); n != 0 {
			t.Errorf("%d operations came back; expected none", n)
		}
		async.Go(l.ctx, "sets", func(context.Context) error { return w.Set(1) }, w)
		l.expect(t, aside, 2)
		if n := l.Returned(); n != 1 {
			t.Errorf("%d operations came back; expected one", n)
		}
	})
}

func TestMoreThanAWindowIsLaunchedInSeveral(t *testing.T) {
	const window, all = 1024, 3*1024 + 100
	scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
		var last *async.Value[int]
		for range all {
			last = l.make(l.ctx, sum)
		}
		open()
		l.expect(t, last, 1)
		var sizes []int
		for _, v := range s.levels {
			sizes = append(sizes, len(v))
		}
		if want := []int{window, window, window, 100}; !slices.Equal(sizes, want) {
			t.Errorf("the levels have %v operations; expected %v", sizes, want)
		}
	})
	scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
		x, y := async.Of(0), async.Of(0)
		for range all {
			l.update(l.ctx, sum, x)
			l.update(l.ctx, sum, y)
		}
		open()
		l.expect(t, x, all)
		l.expect(t, y, all)
		if len(s.levels) != all {
			t.Errorf("two chains of %d were %d levels", all, len(s.levels))
		}
	})
}

// TestALogIsNotAsTallAsAnotherWhoseValuesItReads: levels are of one log.
func TestALogIsNotAsTallAsAnotherWhoseValuesItReads(t *testing.T) {
	const tall = 1 << 18
	under(t, func(t *testing.T, ctx context.Context) {
		a, b := newLogger(ctx), newLogger(ctx)
		x := async.Of(0)
		for range tall {
			a.update(ctx, sum, x)
		}
		a.expect(t, x, tall)
		before := heap()
		b.expect(t, b.make(ctx, sum, x), tall+1)
		if grown := heap() - before; grown > 1<<19 {
			t.Errorf("a log that read a value after %d levels of another grew by %d bytes", tall, grown)
		}
		b.update(ctx, sum, x)
		a.update(ctx, sum, x)
		b.expect(t, x, tall+2)
		goruntime.KeepAlive(a)
		goruntime.KeepAlive(b)
		if err := errors.Join(ctx.Err(), a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatIsOverIsKnownBeforeALaterOneThatWaits is of a level whose first operation
// was launched with others when its last one begins to wait.
func TestWhatIsOverIsKnownBeforeALaterOneThatWaits(t *testing.T) {
	scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
		s.do = func(ctx context.Context, level []async.Launch[int]) {
			if n := len(level); n > 1 {
				atOnce(ctx, level[:n-1])
				level[n-1].Alone(ctx)
				return
			}
			atOnce(ctx, level)
		}
		gate := async.New[int]("gate")
		w := gate.Write()
		good := l.make(l.ctx, s.named("good"))
		bad := l.make(l.ctx, &operation{"bad", func(context.Context, []int) (int, error) { return 0, errFails }})
		waits := l.make(l.ctx, &operation{"waits", func(ctx context.Context, _ []int) (int, error) { return gate.Get(ctx) }})
		ofGood := l.make(l.ctx, s.named("of good"), good)
		ofBad := l.make(l.ctx, s.named("of bad"), ofGood, bad) // which needs a level that is not begun
		onlyBad := l.make(l.ctx, s.named("only bad"), l.make(l.ctx, s.named("of it"), bad))
		target := async.Of(3)
		l.update(l.ctx, s.named("update"), target, onlyBad)
		ofView := l.make(l.ctx, s.named("of view"), l.view(s, "view", true, bad))
		open()
		l.expect(t, good, 1)
		for _, v := range []*async.Value[int]{bad, onlyBad, target, ofView} {
			if err := v.Wait(l.ctx); !errors.Is(err, errFails) {
				t.Errorf("%v: %v", v, err)
			}
		}
		for _, v := range []*async.Value[int]{waits, ofGood, ofBad} {
			if _, known, _ := v.Read().TryAwait(); known {
				t.Errorf("%v is known while an operation of a level before it waits", v)
			}
		}
		async.Go(l.ctx, "sets", func(context.Context) error { return w.Set(7) }, w)
		l.expect(t, waits, 7)
		l.expect(t, ofGood, 2)
		if p := poison(t, ofBad.Wait(l.ctx)); p != poison(t, bad.Wait(l.ctx)) || p != poison(t, target.Wait(l.ctx)) {
			t.Errorf("there are several poisons: %v", p)
		}
	})
}

func TestAnOperationThatTheLauncherPassesOverFails(t *testing.T) {
	scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
		s.do = func(ctx context.Context, level []async.Launch[int]) {
			for i := range level {
				if level[i].Op.Name() != "passed" {
					level[i].Alone(ctx)
				}
			}
		}
		passed := l.make(l.ctx, s.named("passed"))
		other := l.make(l.ctx, s.named("other"))
		after := l.make(l.ctx, s.named("after"), other, passed)
		open()
		l.expect(t, other, 1)
		err := after.Wait(l.ctx)
		var e *weir.Error
		if p := poison(t, err); p.Op != "passed" || !errors.As(p.Cause, &e) || e.Kind != weir.KindLogic {
			t.Errorf("got %v", err)
		}
		if want := "passed: the log's launcher passed it over; expected it to be launched"; e != nil && e.Error() != want {
			t.Errorf("got %v; expected %s", e, want)
		}
		s.once(t, "other")
	})
}

// TestALevelThatEndsInTheMiddleGoesOn: what was launched is known, and the rest is
// launched, once.
func TestALevelThatEndsInTheMiddleGoesOn(t *testing.T) {
	for how, end := range map[string]func(){
		"panics":       func() { panic("boom") },
		"is no return": goruntime.Goexit,
	} {
		t.Run("the operation "+how, func(t *testing.T) {
			scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
				s.do = func(ctx context.Context, level []async.Launch[int]) {
					half := (len(level) + 1) / 2
					atOnce(ctx, level[:half-1])
					for i := half - 1; i < len(level); i++ {
						level[i].Alone(ctx)
					}
				}
				ends := s.counted("c", func(context.Context, []int) (int, error) { end(); return 0, nil })
				a, b := l.make(l.ctx, s.named("a")), l.make(l.ctx, s.named("b"))
				c := l.make(l.ctx, ends)
				d, e := l.make(l.ctx, s.named("d")), l.make(l.ctx, s.named("e"))
				f := l.make(l.ctx, s.named("f"), a, b, d, e)
				g := l.make(l.ctx, s.named("g"), f, c)
				open()
				l.expect(t, f, 5)
				for _, v := range []*async.Value[int]{c, g} {
					if p := poison(t, v.Wait(l.ctx)); p.Op != "c" || !errors.Is(p, weir.ErrPanic) {
						t.Errorf("%v: %v", v, p)
					}
				}
				s.once(t, "a", "b", "c", "d", "e", "f")
			})
		})
		t.Run("the launcher "+how, func(t *testing.T) {
			scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
				s.do = func(ctx context.Context, level []async.Launch[int]) {
					for i := range level {
						if level[i].Op.Name() == "c" { // each time that it sees it
							end()
						}
						atOnce(ctx, level[i:i+1])
					}
				}
				a, c := l.make(l.ctx, s.named("a")), l.make(l.ctx, s.named("c"))
				b := l.make(l.ctx, s.named("b"), a)
				open()
				l.expect(t, b, 2)
				if p := poison(t, c.Wait(l.ctx)); p.Op != "c" {
					t.Errorf("got %v", p)
				}
				s.once(t, "a", "b")
			})
		})
	}
}

func TestACancelledMemberLeavesItsLevel(t *testing.T) {
	scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
		mine, cancel := context.WithCancelCause(l.ctx)
		good, other := l.make(l.ctx, s.named("good")), l.make(l.ctx, s.named("other"))
		member := l.make(mine, s.named("member"))
		target := async.Of(1)
		l.update(mine, s.named("update"), target)
		of := l.make(l.ctx, s.named("of"), good, other, member)
		before := l.make(l.ctx, s.named("before"))
		cancel(errGone)
		late := l.make(mine, s.named("late"), before)
		open()
		l.expect(t, good, 1)
		l.expect(t, other, 1)
		for _, v := range []*async.Value[int]{member, target, of, late} {
			if err := v.Wait(l.ctx); !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, errGone) || !errors.Is(err, weir.ErrPoisoned) {
				t.Errorf("%v: %v", v, err)
			}
		}
		l.expect(t, before, 1)
		if s.times["member"]+s.times["update"]+s.times["late"]+s.times["of"] > 0 {
			t.Errorf("what was cancelled was launched: %v", s.times)
		}
	})
}

// TestWhatComesBackTogetherIsLaunchedTogether: operations that waited for one task
// are of one level when it wrote, and those behind them of the next.
func TestWhatComesBackTogetherIsLaunchedTogether(t *testing.T) {
	scripted(t, func(t *testing.T, l *logger, s *script, open func()) {
		x := async.New[int]("x")
		w := x.Write()
		var last []*async.Value[int]
		for i := range 3 {
			last = append(last, l.make(l.ctx, s.named(fmt.Sprint("second", i)), l.make(l.ctx, s.named(fmt.Sprint("first", i)), x)))
		}
		l.update(l.ctx, s.named("update"), x)
		free := l.make(l.ctx, s.named("free"))
		open()
		l.expect(t, free, 1)
		async.Go(l.ctx, "sets", func(context.Context) error { return w.Set(1) }, w)
		for _, v := range last {
			l.expect(t, v, 3)
		}
		l.expect(t, x, 2)
		s.once(t, "first0", "second0", "update")
		if want := []string{"first0", "first1", "first2"}; !slices.Equal(s.levels[1], want) {
			t.Errorf("the levels are %v; expected %v in the second", s.levels, want)
		}
	})
}

// TestManyAskOfALogThatLaunchesTogether has goroutines ask, of a log that
// launches together what it can, for operations that wait, fail and end their
// goroutine.
func TestManyAskOfALogThatLaunchesTogether(t *testing.T) {
	const askers, rounds = 6, 200
	for _, lanes := range []int{1, 3} {
		s := &script{}
		random := rand.New(rand.NewPCG(1, uint64(lanes))) // of who has the baton
		s.do = func(ctx context.Context, level []async.Launch[int]) {
			for from := 0; from < len(level); {
				to := from + 1 + random.IntN(len(level)-from)
				if level[from].Op.Name() == "test.Gone" || random.IntN(4) == 0 {
					level[from].Alone(ctx)
					to = from + 1
				} else {
					part := level[from:to]
					for i := range part {
						if part[i].Op.Name() == "test.Gone" {
							to = from + i
							part = part[:i]
							break
						}
					}
					atOnce(ctx, part)
				}
				from = to
			}
		}
		ctx := scheduler.With(context.Background(), pool(t, scheduler.Options{Lanes: lanes}))
		l := &logger{async.NewLog(context.Background(), "arena", async.Launcher[int](s)), ctx, scheduler.Of(ctx)}
		shared := async.Of(0)
		var wg sync.WaitGroup
		errs := make([]error, askers)
		for a := range askers {
			wg.Go(func() {
				own := async.Of(0)
				for i := range rounds {
					l.update(ctx, sum, shared)
					l.update(ctx, sum, own)
					switch i % 4 {
					case 0:
						x := async.New[int]("x")
						w := x.Write()
						out := l.make(ctx, sum, x)
						async.Go(ctx, "sets", func(context.Context) error { return w.Set(i) }, w)
						if n, err := out.Get(ctx); n != i+1 || err != nil {
							errs[a] = fmt.Errorf("what waited for a task is %d, %w", n, err)
						}
					case 1:
						gone := l.make(ctx, &operation{"test.Gone", func(context.Context, []int) (int, error) { goruntime.Goexit(); return 0, nil }})
						if err := l.make(ctx, sum, gone).Wait(ctx); !errors.Is(err, weir.ErrPanic) {
							errs[a] = fmt.Errorf("what is made of one that ended its goroutine: %w", err)
						}
					case 2:
						mine, cancel := context.WithCancel(ctx)
						out := l.make(mine, sum, own)
						cancel()
						if n, err := out.Get(ctx); err != nil && !errors.Is(err, weir.ErrCancelled) || err == nil && n != i+2 {
							errs[a] = fmt.Errorf("what was cancelled in time or not is %d, %w", n, err)
						}
					}
				}
				if n, err := own.Get(ctx); n != rounds || err != nil {
					errs[a] = fmt.Errorf("%d operations of %d came out, %w", n, rounds, err)
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		l.expect(t, shared, askers*rounds)
		if err := errors.Join(l.s.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestManyWhoAskAndWaitShareWindows on one processor, also after somebody who asked and
// waited alone: whoever launches lets the others ask first.
func TestManyWhoAskAndWaitShareWindows(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	s := &script{}
	pool := pool(t, scheduler.Options{Lanes: 1})
	l := &logger{async.NewLog(context.Background(), "arena", async.Launcher[int](s)), scheduler.With(context.Background(), pool), pool}
	one := func() {
		if _, err := l.make(l.ctx, s.named("a")).Get(l.ctx); err != nil {
			t.Error(err)
		}
	}
	for range 20 {
		one()
	}
	alone := len(s.levels)
	const many = 300
	var all sync.WaitGroup
	for range many {
		all.Go(one)
	}
	all.Wait()
	if windows := len(s.levels) - alone; alone != 20 || windows > many/10 {
		t.Errorf("20 operations one after the other were launched in %d windows, and %d of as many goroutines in %d; expected 20, and %d at most",
			alone, many, windows, many/10)
	}
	if err := errors.Join(pool.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}
