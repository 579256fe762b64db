package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// inBubble lets rapid run in a bubble, where it may not ask for the deadline.
type inBubble struct{ *testing.T }

// TestLanesGoToWhoWaitsForThemInOrder compares a pool of two arenas with a model:
// of each arena, no more run than it has lanes, those that resume go before those
// that did not run, each in the order they came, and no lane is idle meanwhile.
func TestLanesGoToWhoWaitsForThemInOrder(t *testing.T) {
	type line struct {
		free            int
		resuming, fresh []string
	}
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			lanes := rapid.IntRange(1, 3).Draw(t, "lanes")
			p := newPool(t, scheduler.Options{Lanes: lanes})
			arenas := [2]line{{free: lanes}, {free: lanes}}
			state := map[string]scheduler.State{}
			arena := map[string]int{}
			order := map[string]chan string{}
			events := map[string]*event{}
			ends := map[string]context.Context{}
			cancels := map[string]context.CancelFunc{}
			n := 0
			pass := func(a int) {
				switch l := &arenas[a]; {
				case len(l.resuming) > 0:
					state[l.resuming[0]], l.resuming = scheduler.Running, l.resuming[1:]
				case len(l.fresh) > 0:
					state[l.fresh[0]], l.fresh = scheduler.Running, l.fresh[1:]
				default:
					l.free++
				}
			}
			resume := func(name string) {
				l := &arenas[arena[name]]
				if l.free > 0 {
					l.free--
					state[name] = scheduler.Running
				} else {
					l.resuming = append(l.resuming, name)
					state[name] = scheduler.Resuming
				}
			}
			pick := func(t *rapid.T, s scheduler.State) string {
				var all []string
				for name, is := range state {
					if is == s {
						all = append(all, name)
					}
				}
				if len(all) == 0 {
					t.Skip("no task is in that state")
				}
				slices.Sort(all)
				return rapid.SampledFrom(all).Draw(t, "task")
			}
			end := func(name string) {
				order[name] <- "end"
				delete(state, name)
				pass(arena[name])
			}
			t.Repeat(map[string]func(*rapid.T){
				"start": func(t *rapid.T) {
					name, a := fmt.Sprintf("t%03d", n), rapid.IntRange(0, 1).Draw(t, "arena")
					n++
					commands := make(chan string, 1)
					arena[name], order[name] = a, commands
					beginIn(context.Background(), p, fmt.Sprint(a), name, func(task context.Context) error {
						for c := range commands {
							if c == "end" {
								return nil
							}
							events[name].wait(scheduler.As(ends[name], task))
						}
						return nil
					})
					if l := &arenas[a]; l.free > 0 {
						l.free--
						state[name] = scheduler.Running
					} else {
						l.fresh = append(l.fresh, name)
						state[name] = scheduler.Queued
					}
				},
				"park": func(t *rapid.T) {
					name := pick(t, scheduler.Running)
					events[name] = &event{name: "an event"}
					ends[name], cancels[name] = context.WithCancel(context.Background())
					order[name] <- "park"
					state[name] = scheduler.Parked
					pass(arena[name])
				},
				"wake": func(t *rapid.T) {
					name := pick(t, scheduler.Parked)
					events[name].fire()
					resume(name)
				},
				"cancel": func(t *rapid.T) {
					name := pick(t, scheduler.Parked)
					cancels[name]()
					resume(name)
				},
				"end": func(t *rapid.T) { end(pick(t, scheduler.Running)) },
				"": func(t *rapid.T) {
					synctest.Wait()
					if got := states(p); !maps.Equal(got, state) {
						t.Fatalf("the tasks are %v; expected %v", got, state)
					}
					running := 0
					for _, s := range state {
						if s == scheduler.Running {
							running++
						}
					}
					if c := p.Counts(); c.Running != running || c.Live != len(state) || int(c.Started) != n {
						t.Fatalf("the counts are %+v; expected %d running of %d of %d", c, running, len(state), n)
					}
				},
			})
			for len(state) > 0 {
				for _, name := range slices.Sorted(maps.Keys(state)) {
					switch state[name] {
					case scheduler.Running:
						end(name)
					case scheduler.Parked:
						events[name].fire()
						resume(name)
					}
					synctest.Wait()
				}
			}
			closes(t, p)
		})
	})
}

// TestNoMoreTasksRunThanAnArenaHasLanes counts, in tasks that park, wait for
// children and cancel, those that are between two waits.
func TestNoMoreTasksRunThanAnArenaHasLanes(t *testing.T) {
	for _, lanes := range []int{1, 2, 3} {
		p := newPool(t, scheduler.Options{Lanes: lanes})
		var running, most [2]atomic.Int64
		enter := func(a int) {
			n := running[a].Add(1)
			for {
				m := most[a].Load()
				if n <= m || most[a].CompareAndSwap(m, n) {
					return
				}
			}
		}
		var body func(a, depth int) func(context.Context) error
		body = func(a, depth int) func(context.Context) error {
			return func(ctx context.Context) error {
				enter(a)
				defer running[a].Add(-1)
				e := &event{name: "an event"}
				begin(ctx, p, "fires", func(context.Context) error { e.fire(); return nil }) // in a third arena
				running[a].Add(-1)
				err := e.wait(ctx)
				enter(a)
				goruntime.Gosched()
				if depth == 0 {
					return err
				}
				var children [2]*scheduler.Task
				for i := range children {
					children[i] = beginIn(ctx, p, fmt.Sprint(i), "child", body(i, depth-1))
				}
				for _, c := range children {
					running[a].Add(-1)
					err = errors.Join(err, c.Wait(ctx))
					enter(a)
				}
				return err
			}
		}
		root := beginIn(t.Context(), p, "0", "root", body(0, 7))
		if err := root.Wait(context.Background()); err != nil {
			t.Error(err)
		}
		for a := range most {
			if m := most[a].Load(); m > int64(lanes) {
				t.Errorf("%d lanes: %d tasks of arena %d ran at once", lanes, m, a)
			}
		}
		closes(t, p)
	}
}

func TestNestedWaitsDoNotStarveAPoolOfOneLane(t *testing.T) {
	p := newPool(t, scheduler.Options{Lanes: 1})
	var nest func(depth int) func(context.Context) error
	nest = func(depth int) func(context.Context) error {
		return func(ctx context.Context) error {
			if depth == 0 {
				return errCause
			}
			return begin(ctx, p, "nested", nest(depth-1)).Wait(ctx)
		}
	}
	if err := begin(t.Context(), p, "root", nest(1000)).Wait(t.Context()); err != errCause {
		t.Errorf("got %v; expected the failure of the innermost", err)
	}
	closes(t, p)
}

// TestEveryWaitWorksOnOneLane: what a task waits for comes of another one, which
// needs the lane.
func TestEveryWaitWorksOnOneLane(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, s scheduler.Scheduler) error{
		"Task.Wait": func(ctx context.Context, s scheduler.Scheduler) error {
			return begin(ctx, s, "other", nothing).Wait(ctx)
		},
		"Waiter.Wait": func(ctx context.Context, s scheduler.Scheduler) error {
			e := &event{name: "an event"}
			begin(ctx, s, "other", func(context.Context) error { e.fire(); return nil })
			return e.wait(ctx)
		},
		"Waiter.Wait, ended by a context": func(ctx context.Context, s scheduler.Scheduler) error {
			end, cancel := context.WithCancelCause(ctx)
			begin(ctx, s, "other", func(context.Context) error { cancel(errCause); return nil })
			if err := (&event{name: "nothing"}).wait(end); err != errCause {
				return fmt.Errorf("got %v; expected the cause", err)
			}
			return nil
		},
		"Task.Wait, ended by a context": func(ctx context.Context, s scheduler.Scheduler) error {
			end, cancel := context.WithCancelCause(ctx)
			never := &event{name: "an event"}
			other := begin(ctx, s, "other", func(ctx context.Context) error { cancel(errCause); return never.wait(ctx) })
			err := other.Wait(end)
			never.fire()
			if !errors.Is(err, errCause) || !strings.Contains(err.Error(), `gave up waiting for task "other"`) {
				return fmt.Errorf("got %v; expected the cause and the task", err)
			}
			return other.Wait(ctx)
		},
	} {
		for _, s := range []scheduler.Scheduler{newPool(t, scheduler.Options{Lanes: 1}), scheduler.NewDebug(scheduler.DebugOptions{Seed: 1})} {
			ctx := scheduler.With(context.Background(), s)
			if err := begin(ctx, s, "waits", func(ctx context.Context) error { return wait(ctx, s) }).Wait(ctx); err != nil {
				t.Errorf("%s on a %T: %v", name, s, err)
			}
			closes(t, s)
		}
	}
	// By a lane alone, as completions of a device are waited for.
	p := newPool(t, scheduler.Options{Lanes: 1})
	done := make(chan struct{})
	if err := begin(t.Context(), p, "waits", func(ctx context.Context) error {
		begin(ctx, p, "other", func(context.Context) error { close(done); return nil })
		lane := scheduler.LaneOf(ctx)
		lane.Yield(&event{name: "a device", ends: scheduler.ByDevice})
		<-done
		lane.Resume()
		return nil
	}).Wait(t.Context()); err != nil {
		t.Error(err)
	}
	closes(t, p)
}

// TestGoroutinesOfATaskDoNotDoubleItsLane: those that wait under its context
// besides it, and those that outlive it.
func TestGoroutinesOfATaskDoNotDoubleItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, scheduler.Options{Lanes: 1})
		e, last := &event{name: "an event"}, &event{name: "the last event"}
		var left sync.WaitGroup
		task := begin(t.Context(), p, "forks", func(ctx context.Context) error {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { e.wait(ctx) })
			}
			left.Go(func() { all.Wait(); last.wait(ctx) })
			return e.wait(ctx)
		})
		hold := make(chan struct{})
		begin(t.Context(), p, "runs", func(context.Context) error { <-hold; return nil })
		begin(t.Context(), p, "queued", nothing)
		synctest.Wait()
		if got := states(p); got["runs"] != scheduler.Running || got["queued"] != scheduler.Queued {
			t.Errorf("four waits of a task gave back more lanes than its one: %v", got)
		}
		e.fire()
		close(hold)
		if err := task.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if c := p.Counts(); c.Live != 0 || c.Running != 0 {
			t.Errorf("a goroutine that waits under a task that has ended made the counts %+v", c)
		}
		last.fire()
		left.Wait()
		if err := task.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		closes(t, p)
	})
}

func TestMoreTasksThanTheLimitAreRefused(t *testing.T) {
	for _, s := range []scheduler.Scheduler{newPool(t, scheduler.Options{Lanes: 1, Limit: 2}), scheduler.NewDebug(scheduler.DebugOptions{Limit: 2})} {
		ctx := scheduler.With(context.Background(), s)
		e := &event{name: "an event"}
		a, b := begin(ctx, s, "a", e.wait), begin(ctx, s, "b", e.wait)
		g := &gate{}
		c := scheduler.New(ctx, scheduler.Spec{Name: "c", Run: func(context.Context) error { t.Error("a refused task runs"); return nil }}, g)
		s.Start(c)
		err := c.Refused()
		if !errors.Is(err, weir.ErrLimit) || err.Error() != `scheduler.Start: task "c": 2 tasks live; expected fewer than 2 (Options.Limit)` {
			t.Errorf("got %v", err)
		}
		if again := c.Wait(ctx); again != err || g.ended != err {
			t.Errorf("Wait answers %v and the gate %v; expected %v", again, g.ended, err)
		}
		s.Start(c) // it does nothing
		if c := s.Counts(); c.Live != 2 || c.Started != 3 || c.Ended != 1 || c.Failed != 1 {
			t.Errorf("the counts are %+v", c)
		}
		e.fire()
		if err := errors.Join(a.Wait(ctx), b.Wait(ctx), begin(ctx, s, "d", nothing).Wait(ctx)); err != nil {
			t.Errorf("below the limit again: %v", err)
		}
		if a.Refused() != nil {
			t.Error("a task that ran was refused")
		}
		closes(t, s)
	}
}

func TestPoolOptionsAreChecked(t *testing.T) {
	for _, o := range []scheduler.Options{{Lanes: -1}, {Limit: -1}, {Watchdog: -1}, {Grace: -1}, {Level: -1}, {Level: scheduler.Full + 1}} {
		if p, err := scheduler.NewPool(o); p != nil || !errors.Is(err, weir.ErrArgument) {
			t.Errorf("of %+v a pool is made: %v", o, err)
		}
	}
	p := newPool(t, scheduler.Options{})
	var all []*scheduler.Task
	hold := make(chan struct{})
	for range goruntime.GOMAXPROCS(0) + 1 {
		all = append(all, begin(t.Context(), p, "holds", func(context.Context) error { <-hold; return nil }))
	}
	if c := p.Counts(); c.Running != goruntime.GOMAXPROCS(0) || c.Queued != 1 {
		t.Errorf("by default %+v; expected GOMAXPROCS lanes", c)
	}
	close(hold)
	for _, task := range all {
		task.Wait(t.Context())
	}
	closes(t, p)
}

func TestStartingATaskTwicePanics(t *testing.T) {
	for _, s := range []scheduler.Scheduler{newPool(t, scheduler.Options{}), scheduler.NewDebug(scheduler.DebugOptions{})} {
		ctx := scheduler.With(context.Background(), s)
		e := &event{name: "an event"}
		task := begin(ctx, s, "twice", e.wait)
		again := func(when string) {
			defer func() {
				if v := recover(); v != `scheduler: task "twice" (#1) is started twice` {
					t.Errorf("%s: the panic is %v", when, v)
				}
			}()
			s.Start(task)
		}
		again("while it lives")
		e.fire()
		if err := task.Wait(ctx); err != nil { // the panic left nothing locked
			t.Error(err)
		}
		again("after its end")
		closes(t, s)
	}
}

func TestIdleGoroutinesAreNoMoreThanLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, tasks = 2, 50
		p := newPool(t, scheduler.Options{Lanes: lanes})
		e := &event{name: "an event"}
		for range tasks {
			begin(t.Context(), p, "waits", e.wait)
		}
		synctest.Wait()
		if n := workers(); n != tasks {
			t.Errorf("%d goroutines of %d parked tasks", n, tasks)
		}
		e.fire()
		synctest.Wait()
		if n := workers(); n > lanes || p.Counts().Live != 0 {
			t.Errorf("%d goroutines are kept for %d lanes", n, lanes)
		}
		closes(t, p)
		synctest.Wait()
		if n := workers(); n != 0 {
			t.Errorf("Close leaves %d goroutines", n)
		}
	})
}

// workers is how many goroutines pools have in the bubble that runs. Those of pools
// that earlier tests gave up may still be ending.
func workers() (n int) {
	buf := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(buf[:goruntime.Stack(buf, true)]), "\n\n") {
		header, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(header, "synctest bubble") && strings.Contains(stack, "scheduler.(*Pool).work(") {
			n++
		}
	}
	return n
}
