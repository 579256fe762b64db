package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// lines is a joined error, one by one.
func lines(err error) (all []*weir.Error) {
	if err == nil {
		return nil
	}
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		all = append(all, err.(*weir.Error))
	}
	return all
}

func TestCloseWaitsForWhatRunsAndWaitsAndForChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, scheduler.Options{Lanes: 1})
		go1, go2 := make(chan struct{}), make(chan struct{})
		var ran atomic.Int64
		begin(t.Context(), p, "runs", func(ctx context.Context) error {
			<-go1
			begin(ctx, p, "child", func(ctx context.Context) error {
				<-go2
				ran.Add(1)
				return begin(ctx, p, "grandchild", func(context.Context) error { ran.Add(1); return nil }).Wait(ctx)
			})
			return nil
		})
		begin(t.Context(), p, "queued", func(context.Context) error { ran.Add(1); return nil })
		closed := make(chan error, 3)
		for range cap(closed) {
			go func() { closed <- p.Close() }()
		}
		synctest.Wait()
		refused := begin(t.Context(), p, "late", nothing)
		if err := refused.Refused(); !errors.Is(err, weir.ErrClosed) || err.Error() != `scheduler.Start: task "late": the scheduler is closed` {
			t.Errorf("while it closes, a task from outside is refused with %v", err)
		}
		close(go1)
		synctest.Wait()
		if len(closed) != 0 {
			t.Fatal("Close did not wait for a child")
		}
		close(go2)
		for range cap(closed) {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
		if ran.Load() != 3 {
			t.Errorf("%d of 3 ran", ran.Load())
		}
		closes(t, p)
		if err := begin(t.Context(), p, "late", nothing).Refused(); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("of a closed pool a task is refused with %v", err)
		}
	})
}

// TestTasksOfOthersAreNotOfAPoolThatCloses: nor are tasks that have ended.
func TestTasksOfOthersAreNotOfAPoolThatCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, other := newPool(t, scheduler.Options{}), newPool(t, scheduler.Options{})
		hold := make(chan struct{})
		var ended context.Context
		begin(t.Context(), p, "ends", func(ctx context.Context) error { ended = ctx; return nil })
		begin(t.Context(), p, "runs", func(context.Context) error { <-hold; return nil })
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- p.Close() }()
		synctest.Wait()
		begin(t.Context(), other, "elsewhere", func(ctx context.Context) error {
			if err := begin(ctx, p, "late", nothing).Refused(); !errors.Is(err, weir.ErrClosed) {
				t.Errorf("a task of another pool starts one: %v", err)
			}
			return nil
		}).Wait(t.Context())
		if err := begin(ended, p, "late", nothing).Refused(); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("what a task left behind starts one: %v", err)
		}
		close(hold)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		closes(t, other)
	})
}

func TestCloseEndsWaitsThatNothingCanEnd(t *testing.T) {
	for name, level := range map[string]scheduler.Level{"basic": scheduler.Basic, "full": scheduler.Full, "off": scheduler.Off} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for name, s := range map[string]scheduler.Scheduler{
					"pool":  newPool(t, scheduler.Options{Lanes: 1, Level: level, Grace: time.Second}),
					"debug": scheduler.NewDebug(scheduler.DebugOptions{Level: level, Patience: time.Second}),
				} {
					never, cleanup := &event{name: "a value"}, make(chan error, 1)
					parent := scheduler.New(t.Context(), scheduler.Spec{Name: "stuck", Site: here(), Run: func(ctx context.Context) error {
						err := never.wait(ctx)
						cleanup <- (&event{name: "another value"}).wait(ctx)
						return err
					}})
					s.Start(parent)
					child := begin(t.Context(), s, "waits for it", parent.Wait)
					// What a device ends is waited for, be it longer than Grace.
					device := &event{name: "a device", ends: scheduler.ByDevice}
					time.AfterFunc(5*time.Second, device.fire)
					rescue := &event{name: "what comes of it"}
					slow := begin(t.Context(), s, "slow", func(ctx context.Context) error { defer rescue.fire(); return device.wait(ctx) })
					rescued := begin(t.Context(), s, "rescued", rescue.wait)
					start := time.Now()
					err := s.Close()
					if time.Since(start) < 5*time.Second {
						t.Errorf("%s: Close did not wait for the device", name)
					}
					all := lines(err)
					if len(all) != 2 {
						t.Fatalf("%s: Close: %v", name, err)
					}
					for i, message := range []string{`scheduler.Close: task "stuck" (#1) still waits for a value`, `scheduler.Close: task "waits for it" (#2) still waits for the end of task "stuck" (#1)`} {
						if all[i].Error() != message || !errors.Is(all[i], weir.ErrLeak) {
							t.Errorf("%s: Close names %v", name, all[i])
						}
					}
					if !strings.Contains(all[0].Site, "close_test.go:") {
						t.Errorf("%s: the task was made at %q", name, all[0].Site)
					}
					if has := strings.Contains(all[0].Stack, "TestCloseEndsWaits"); has != (level == scheduler.Full) {
						t.Errorf("%s: the stack of its creation is %q", name, all[0].Stack)
					}
					for _, task := range []*scheduler.Task{parent, child} {
						if err := task.Wait(t.Context()); !errors.Is(err, weir.ErrClosed) {
							t.Errorf("%s: %v ended with %v", name, task, err)
						}
					}
					if err := <-cleanup; !errors.Is(err, weir.ErrClosed) {
						t.Errorf("%s: another wait of it ended with %v", name, err)
					}
					if err := errors.Join(slow.Wait(t.Context()), rescued.Wait(t.Context())); err != nil {
						t.Errorf("%s: what waited for the device: %v", name, err)
					}
					closes(t, s)
				}
			})
		})
	}
}

func TestCloseGivesUpWhatIsBlockedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 5 * time.Second
		p := newPool(t, scheduler.Options{Lanes: 1, Grace: grace})
		free := make(chan struct{})
		never := &event{name: "a value"}
		parked := begin(t.Context(), p, "parked", never.wait)
		synctest.Wait()
		blocked := begin(t.Context(), p, "blocked", func(context.Context) error { <-free; return nil })
		queued := begin(t.Context(), p, "queued", nothing)
		start := time.Now()
		err := p.Close()
		var got []string
		for _, e := range lines(err) {
			got = append(got, e.Error())
		}
		expected := []string{
			`scheduler.Close: task "parked" (#1) still waits for a value`,
			`scheduler.Close: task "blocked" (#2) still runs, in code that is not Weir's`,
			`scheduler.Close: task "queued" (#3) never got a lane`,
		}
		if fmt.Sprint(got) != fmt.Sprint(expected) {
			t.Errorf("Close names %q", got)
		}
		if took := time.Since(start); took < 2*grace || took > 2*grace+time.Second {
			t.Errorf("it took %v", took)
		}
		if err := p.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		close(free) // they come to their end all the same
		if err := errors.Join(blocked.Wait(t.Context()), queued.Wait(t.Context())); err != nil {
			t.Error(err)
		}
		if err := parked.Wait(t.Context()); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("the parked one ended with %v", err)
		}
	})
}

func TestATaskThatMovesIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, scheduler.Options{Lanes: 1, Grace: time.Second})
		begin(t.Context(), p, "slow", func(ctx context.Context) error {
			for range 10 {
				tick := make(chan struct{})
				time.AfterFunc(900*time.Millisecond, func() { close(tick) })
				<-tick
				if err := begin(ctx, p, "child", nothing).Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		closes(t, p)
	})
}

// TestNobodyIsTakenForStuckWhileHeIsWoken has tasks hand a token round, through
// waits only, while the pool closes: at each moment most are parked, and one is
// woken or runs.
func TestNobodyIsTakenForStuckWhileHeIsWoken(t *testing.T) {
	rounds := 40
	if testing.Short() || raceDetector {
		rounds = 10
	}
	for range rounds {
		p := newPool(t, scheduler.Options{Lanes: 2})
		const n, turns = 4, 3000
		var events [n][turns]event
		for i := range n {
			begin(t.Context(), p, fmt.Sprint(i), func(ctx context.Context) error {
				for k := range turns {
					if err := events[i][k].wait(ctx); err != nil {
						return err
					}
					if i+1 < n {
						events[i+1][k].fire()
					} else if k+1 < turns {
						events[0][k+1].fire()
					}
				}
				return nil
			})
		}
		events[0][0].fire()
		closes(t, p)
		if c := p.Counts(); c.Failed != 0 {
			t.Fatalf("%d of them failed", c.Failed)
		}
	}
}

// TestCloseRacesWithStarts: each task either is refused or has ended when Close
// returns.
func TestCloseRacesWithStarts(t *testing.T) {
	for range 200 {
		p := newPool(t, scheduler.Options{Lanes: 2})
		var ended, refused, started atomic.Int64
		var all sync.WaitGroup
		var ctx context.Context
		begin(t.Context(), p, "first", func(c context.Context) error { ctx = c; return nil }).Wait(t.Context())
		for i := range 4 {
			all.Go(func() {
				under := t.Context()
				if i%2 == 0 {
					under = ctx // that of a task that has ended
				}
				for range 20 {
					task := begin(under, p, "task", func(context.Context) error { goruntime.Gosched(); ended.Add(1); return nil })
					started.Add(1)
					if task.Refused() != nil {
						refused.Add(1)
					}
				}
			})
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if c := p.Counts(); c.Live != 0 || c.Running != 0 {
			t.Fatalf("after Close the counts are %+v", c)
		}
		all.Wait()
		if ended.Load()+refused.Load() != started.Load() {
			t.Fatalf("of %d, %d were refused and %d ended", started.Load(), refused.Load(), ended.Load())
		}
	}
}

// late is a wait that comes to its end just when Close names it.
type late struct {
	event
	pool *scheduler.Pool
}

func (l *late) String() string {
	l.fire()
	for l.pool.Counts().Live > 0 {
		goruntime.Gosched()
	}
	return l.name
}

func (l *late) wait(ctx context.Context) error {
	l.mu.Lock()
	w := l.waiters.Push(ctx)
	l.mu.Unlock()
	_, _, err := w.Wait(ctx, l)
	return err
}

func TestWhoGoesOnWhileCloseNamesHimIsNotStuck(t *testing.T) {
	p := newPool(t, scheduler.Options{Lanes: 1})
	l := &late{event: event{name: "a value"}, pool: p}
	task := begin(t.Context(), p, "waits", l.wait)
	closes(t, p)
	if err := task.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
