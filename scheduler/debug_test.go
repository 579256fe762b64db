package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/scheduler"
)

// slots is something scarce that a device gives back some time after it was
// released, as the pools of streams do: its wait is a device's if work that is
// under way frees enough for all in line, else a holder's.
type slots struct {
	delay func() time.Duration // how long the device takes; 0 is at once

	mu      sync.Mutex
	idle    int
	pending int
	held    map[*scheduler.Task]int
	line    scheduler.Queue[struct{}]
	tasks   []*scheduler.Task
}

type forSlot struct{ s *slots }

func (f forSlot) String() string { return "a slot" }
func (f forSlot) Ends() scheduler.Ending {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.pending > 0 {
		return scheduler.ByQueue
	}
	return scheduler.ByHolder
}
func (f forSlot) Holders() (all []*scheduler.Task) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for t, n := range f.s.held {
		for range n {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *scheduler.Task) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// coming is the wait for a slot of those under way.
type coming struct{ forSlot }

func (coming) Ends() scheduler.Ending { return scheduler.ByDevice }

func (s *slots) acquire(ctx context.Context) error {
	s.mu.Lock()
	if s.idle > 0 && s.line.Len() == 0 {
		s.idle--
		s.held[scheduler.TaskOf(ctx)]++
		s.mu.Unlock()
		return nil
	}
	w := s.line.Push(ctx)
	s.tasks = append(s.tasks, scheduler.TaskOf(ctx))
	var what scheduler.Wait = forSlot{s}
	if s.line.Len() <= s.pending {
		what = coming{forSlot{s}}
	}
	s.mu.Unlock()
	_, _, err := w.Wait(ctx, what)
	return err
}

func (s *slots) release(t *scheduler.Task) {
	s.mu.Lock()
	s.held[t]--
	s.pending++
	d := s.delay()
	s.mu.Unlock()
	if d == 0 {
		s.done()
	} else {
		time.AfterFunc(d, s.done)
	}
}

// done is the device's.
func (s *slots) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	if w := s.line.Pop(); w != nil {
		s.held[s.tasks[0]]++
		s.tasks = s.tasks[1:]
		w.Deliver(struct{}{}, nil)
	} else {
		s.idle++
	}
}

// program runs random tasks, the same for the same number, under a seed, and
// answers what happened. They wait for events, for one another, and for slots of a
// device that takes as long as delay says; they are woken, and their contexts are
// ended, by other tasks.
func program(t *testing.T, number, seed uint64, delay func() time.Duration) (trace []string) {
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed, Patience: 1000 * time.Hour, Trace: func(i scheduler.Info) { trace = append(trace, i.String()) }})
	const n = 4
	var events [n]event
	var contexts [n]context.Context
	var cancels [n]context.CancelCauseFunc
	for i := range n {
		events[i].name = fmt.Sprint("event ", i)
		contexts[i], cancels[i] = context.WithCancelCause(context.Background())
	}
	a, b := &slots{idle: 1, delay: delay, held: map[*scheduler.Task]int{}}, &slots{idle: 2, delay: delay, held: map[*scheduler.Task]int{}}
	var body func(name string, depth int) func(context.Context) error
	body = func(name string, depth int) func(context.Context) error {
		return func(ctx context.Context) error {
			random := rand.New(rand.NewPCG(number, uint64(len(name))<<32|uint64(name[len(name)-1])))
			task := scheduler.TaskOf(ctx)
			var children []*scheduler.Task
			for k := range 6 {
				under := scheduler.As(contexts[random.IntN(n)], ctx)
				switch i := random.IntN(n); random.IntN(10) {
				case 0, 1:
					events[i].wait(under)
				case 2:
					events[i].fire()
				case 3:
					if depth < 3 {
						child := fmt.Sprint(name, k)
						children = append(children, begin(ctx, d, child, body(child, depth+1)))
					}
				case 4:
					scheduler.Breathe(ctx)
				case 5:
					if len(children) > 0 {
						children[0].Wait(under)
					}
				case 6:
					if random.IntN(4) == 0 {
						cancels[i](errCause)
					}
				case 7, 8, 9:
					if a.acquire(ctx) != nil {
						continue
					}
					if random.IntN(2) == 0 {
						scheduler.Breathe(ctx)
					}
					both := random.IntN(2) == 0 && b.acquire(ctx) == nil
					if random.IntN(2) == 0 {
						scheduler.Breathe(ctx)
					}
					a.release(task)
					if random.IntN(2) == 0 { // a wait right after one in place
						events[i].wait(under)
					}
					if both {
						b.release(task)
					}
				}
			}
			return nil
		}
	}
	for i := range 5 {
		name := string(rune('a' + i))
		begin(context.Background(), d, name, body(name, 0))
	}
	for i := 0; ; i++ {
		err := d.Run()
		trace = append(trace, fmt.Sprint(err))
		if err == nil {
			break
		}
		if i == n {
			t.Fatal("still stuck: ", err)
		}
		events[i].fire() // from outside
	}
	closes(t, d)
	return trace
}

func atOnce() time.Duration { return 0 }

func difference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("at step %d of %d and %d:\n%q\n%q", i, len(a), len(b), a[min(i, len(a)):min(i+2, len(a))], b[min(i, len(b)):min(i+2, len(b))])
		}
	}
	return ""
}

func TestTheSameSeedIsTheSameTrace(t *testing.T) {
	steps := 0
	for number := range uint64(30) {
		traces := map[string]bool{}
		for seed := range uint64(10) {
			synctest.Test(t, func(t *testing.T) {
				first := program(t, number, seed, atOnce)
				if d := difference(first, program(t, number, seed, atOnce)); d != "" {
					t.Fatalf("program %d with seed %d differs %s", number, seed, d)
				}
				steps += len(first)
				traces[strings.Join(first, "\n")] = true
			})
		}
		if len(traces) < 8 {
			t.Errorf("10 seeds of program %d have %d traces", number, len(traces))
		}
	}
	if steps < 10_000 {
		t.Errorf("the programs have %d steps in all; they show nothing", steps)
	}
}

func TestTheSpeedOfADeviceDoesNotShow(t *testing.T) {
	for number := range uint64(40) {
		for seed := range uint64(5) {
			synctest.Test(t, func(t *testing.T) {
				fast := program(t, number, seed, atOnce)
				random := rand.New(rand.NewPCG(number, seed))
				for name, delay := range map[string]func() time.Duration{
					"slow":    func() time.Duration { return time.Second },
					"varying": func() time.Duration { return time.Duration(random.IntN(5)) * time.Millisecond },
				} {
					if d := difference(fast, program(t, number, seed, delay)); d != "" {
						t.Fatalf("program %d with seed %d on a %s device differs %s", number, seed, name, d)
					}
				}
			})
		}
	}
}

// TestAWaitInPlaceWakesNobodyLater: what a device woke, and what it did not need
// to wake, go on alike.
func TestAWaitInPlaceWakesNobodyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var traces [2][]string
		for i, delay := range []time.Duration{0, time.Second} {
			d := scheduler.NewDebug(scheduler.DebugOptions{Trace: func(info scheduler.Info) { traces[i] = append(traces[i], info.String()) }})
			s := &slots{idle: 1, delay: func() time.Duration { return delay }, held: map[*scheduler.Task]int{}}
			e := &event{name: "an event"}
			begin(t.Context(), d, "first", func(ctx context.Context) error {
				for range 2 {
					if err := s.acquire(ctx); err != nil {
						return err
					}
					s.release(scheduler.TaskOf(ctx))
				}
				return e.wait(ctx)
			})
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
			if ran, err := d.Step(); ran || err == nil {
				t.Errorf("delay %v: a task that waits was given a turn", delay)
			}
			e.fire()
			closes(t, d)
		}
		if d := difference(traces[0], traces[1]); d != "" {
			t.Error(d)
		}
	})
}

func TestADebugSchedulerStepsRunsAndPauses(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: 4})
	if ran, err := d.Step(); ran || err != nil {
		t.Errorf("with no task Step answers %v, %v", ran, err)
	}
	turns := 0
	for range 3 {
		begin(t.Context(), d, "breathes", func(ctx context.Context) error {
			turns++
			scheduler.Breathe(ctx)
			turns++
			return nil
		})
	}
	for k := 1; k <= 4; k++ {
		if ran, err := d.Step(); !ran || err != nil || turns != k {
			t.Errorf("step %d: %v, %v, and %d turns were taken", k, ran, err, turns)
		}
	}
	if err := d.Run(); err != nil || turns != 6 || d.Counts().Live != 0 {
		t.Errorf("Run answers %v after %d turns", err, turns)
	}
	turns = 0
	for range 3 {
		begin(t.Context(), d, "pauses", func(context.Context) error { turns++; d.Pause(); return nil })
	}
	for k := 1; k <= 3; k++ {
		if err := d.Run(); err != nil || turns != k {
			t.Errorf("Run answers %v after %d turns; expected to be paused after each", err, turns)
		}
	}
	for range 3 {
		begin(t.Context(), d, "pauses", func(ctx context.Context) error { d.Pause(); scheduler.Breathe(ctx); return nil })
	}
	e := &event{name: "an event"}
	begin(t.Context(), d, "fires", func(ctx context.Context) error {
		for range 20 {
			scheduler.Breathe(ctx)
		}
		e.fire()
		return nil
	})
	begin(t.Context(), d, "waits", e.wait)
	closes(t, d) // Pause has it take nobody for stuck
	if d.Counts().Failed != 0 {
		t.Error("Close ended a wait that a task was to end")
	}
}

func TestATaskCannotStepItsScheduler(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{})
	begin(t.Context(), d, "steps", func(context.Context) error {
		_, step := d.Step()
		for _, err := range []error{step, d.Run(), d.Close()} {
			if !errors.Is(err, weir.ErrBusy) {
				t.Errorf("got %v", err)
			}
		}
		return nil
	})
	if err := d.Run(); err != nil {
		t.Error(err)
	}
	closes(t, d)
}

func TestADeadlockNamesWhoWaitsForWhom(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: 2})
	var a, b *scheduler.Task
	value := &event{name: `value "x"`}
	gates := &gate{info: scheduler.GateInfo{Value: "x", Epoch: 3, Role: scheduler.Writes, Phase: scheduler.Open}}
	c := scheduler.New(t.Context(), scheduler.Spec{Name: "c", Run: value.wait})
	a = scheduler.New(t.Context(), scheduler.Spec{Name: "a", Run: func(ctx context.Context) error { return b.Wait(ctx) }}, gates, &gate{info: scheduler.GateInfo{Value: "y"}})
	two := &event{name: "two readers", holders: []*scheduler.Task{a}}
	b = scheduler.New(t.Context(), scheduler.Spec{Name: "b", Run: two.wait})
	value.holders = []*scheduler.Task{b}
	for _, task := range []*scheduler.Task{c, a, b} {
		d.Start(task)
	}
	const expected = `deadlock: 3 tasks wait and none can run
	task "c" (#1) waits for value "x", held by #3
	task "a" (#2) waits for the end of task "b" (#3), held by #3; it holds write of x, epoch 3 (open), read of y, epoch 0 (closed)
	task "b" (#3) waits for two readers, held by #2
	circle: b → a → b`
	for range 2 {
		err := d.Run()
		var stuck *scheduler.Deadlock
		if !errors.As(err, &stuck) || !errors.Is(err, weir.ErrDeadlock) || err.Error() != expected {
			t.Errorf("got %v\nexpected %s", err, expected)
		}
		if ran, again := d.Step(); ran || again.Error() != err.Error() {
			t.Errorf("Step answers %v, %v", ran, again)
		}
	}
	// It is not final.
	value.fire()
	if err := d.Run(); err == nil || !strings.HasPrefix(err.Error(), "deadlock: 2 tasks") {
		t.Errorf("got %v", err)
	}
	two.fire()
	if err := d.Run(); err != nil {
		t.Error(err)
	}
	closes(t, d)
}

func TestACallerDrivesTheTasksAndLearnsOfDeadlocks(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: 2})
	ctx := scheduler.With(context.Background(), d)
	value := &event{name: `value "x"`}
	if err := value.wait(ctx); err == nil || err.Error() != "deadlock: 0 tasks wait and none can run\n\tthe caller waits for value \"x\"" {
		t.Errorf("with no task: %v", err)
	}
	task := begin(ctx, d, "stuck", (&event{name: "another value"}).wait)
	for _, err := range []error{value.wait(ctx), task.Wait(ctx)} {
		var stuck *scheduler.Deadlock
		if !errors.As(err, &stuck) || stuck.Caller == "" || !strings.Contains(err.Error(), "\n\tthe caller waits for "+stuck.Caller+"\n\ttask \"stuck\" (#1) waits for another value") {
			t.Errorf("got %v", err)
		}
	}
	begin(ctx, d, "writes", func(ctx context.Context) error { scheduler.Breathe(ctx); value.fire(); return nil })
	if err := value.wait(ctx); err != nil {
		t.Errorf("got %v", err)
	}
	if value.waiting() != 0 {
		t.Error("a caller that gave up is still in line")
	}
	// A device is waited for, though no task can run.
	synctest.Test(t, func(t *testing.T) {
		d := scheduler.NewDebug(scheduler.DebugOptions{})
		ctx := scheduler.With(context.Background(), d)
		for _, ends := range []scheduler.Ending{scheduler.ByQueue, scheduler.ByDevice} {
			e := &event{name: "a device", ends: ends}
			time.AfterFunc(time.Hour, e.fire)
			if err := e.wait(ctx); err != nil {
				t.Error(err)
			}
		}
		closes(t, d)
	})
	if err := d.Close(); !errors.Is(err, weir.ErrLeak) {
		t.Errorf("Close: %v", err)
	}
}

func TestSeveralCallersDriveAtOnce(t *testing.T) {
	for seed := range uint64(20) {
		d := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed})
		ctx := scheduler.With(context.Background(), d)
		var all sync.WaitGroup
		for i := range 8 {
			values := make([]event, 20)
			for k := range values {
				begin(ctx, d, fmt.Sprint(i, k), func(ctx context.Context) error {
					if k > 0 {
						if err := values[k-1].wait(ctx); err != nil {
							return err
						}
					}
					scheduler.Breathe(ctx)
					values[k].fire()
					return nil
				})
			}
			all.Go(func() {
				if err := values[len(values)-1].wait(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		closes(t, d)
	}
}

// TestACallerLeavesWhenItsContextEndsOrItsValueComes though no task can run, or
// one is blocked, and others drive.
func TestACallerLeavesWhenItsContextEndsOrItsValueComes(t *testing.T) {
	for name, blocked := range map[string]bool{"a task has long to wait": false, "a task is blocked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := scheduler.NewDebug(scheduler.DebugOptions{Patience: 100 * time.Hour})
				ctx := scheduler.With(context.Background(), d)
				late, cancelLate := context.WithTimeout(ctx, 200*time.Hour)
				defer cancelLate()
				hold := make(chan struct{})
				begin(late, d, "task", func(ctx context.Context) error {
					if blocked {
						<-hold
						return nil
					}
					(&event{name: "nothing"}).wait(ctx)
					return nil
				})
				value := &event{name: "a value"}
				short, cancel := context.WithTimeoutCause(ctx, time.Second, errCause)
				defer cancel()
				start := time.Now()
				if err := value.wait(short); err != errCause || time.Since(start) != time.Second {
					t.Errorf("alone, a caller was answered %v after %v", err, time.Since(start))
				}
				start = time.Now()
				short, cancel = context.WithTimeoutCause(ctx, time.Second, errCause)
				defer cancel()
				errs := make(chan error, 4)
				for range 2 {
					go func() { errs <- value.wait(short) }()
				}
				for range 2 {
					go func() { errs <- value.wait(ctx) }()
				}
				time.AfterFunc(2*time.Second, value.fire)
				var causes int
				for range 4 {
					switch err := <-errs; err {
					case errCause:
						causes++
					case nil:
					default:
						t.Error(err)
					}
				}
				end := 2 * time.Second
				if blocked { // who drives waits for the end of the task's turn
					end += time.Second
				}
				if took := time.Since(start); causes != 2 || took != end {
					t.Errorf("%d saw their contexts' end; all left after %v", causes, took)
				}
				close(hold)
				closes(t, d)
			})
		})
	}
}

func TestACallerGoesOnWhenTheTurnIsOverThatGaveItItsValue(t *testing.T) {
	for range 200 {
		d := scheduler.NewDebug(scheduler.DebugOptions{})
		ctx := scheduler.With(context.Background(), d)
		value := &event{name: "a value"}
		var over atomic.Bool
		begin(ctx, d, "task", func(context.Context) error {
			value.fire()
			for range 100 {
				goruntime.Gosched()
			}
			over.Store(true)
			return nil
		})
		if err := value.wait(ctx); err != nil {
			t.Fatal(err)
		}
		if !over.Load() {
			t.Fatal("the caller went on while the task that gave it its value still had its turn")
		}
		closes(t, d)
	}
}

func blocksHere(free chan struct{}) { <-free }

func TestATaskThatIsBlockedElsewhereIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scheduler.NewDebug(scheduler.DebugOptions{Patience: time.Minute})
		free := make(chan struct{})
		task := scheduler.New(t.Context(), scheduler.Spec{Name: "blocked", Site: here(), Run: func(context.Context) error { blocksHere(free); return nil }})
		d.Start(task)
		other := begin(t.Context(), d, "other", func(ctx context.Context) error { return task.Wait(ctx) })
		// A wait for a device is none of it, however long.
		device := &event{name: "a device", ends: scheduler.ByDevice}
		time.AfterFunc(time.Hour, device.fire)
		slow := begin(t.Context(), d, "slow", func(ctx context.Context) error {
			if err := device.wait(ctx); err != nil {
				return err
			}
			lane, done := scheduler.LaneOf(ctx), make(chan struct{})
			time.AfterFunc(time.Hour, func() { close(done) })
			lane.Yield(device)
			<-done
			lane.Resume()
			return nil
		})
		expected := `scheduler.Step: task "blocked" (#1) has run for 1m0s and neither ends nor waits through Weir; it is blocked outside, or computes`
		err := d.Run()
		var e *weir.Error
		if !errors.As(err, &e) || !errors.Is(err, weir.ErrDeadlock) || err.Error() != expected {
			t.Fatalf("got %v", err)
		}
		if !strings.Contains(e.Stack, "blocksHere") || !strings.Contains(e.Site, "debug_test.go:") {
			t.Errorf("it is at %q, with the stack %q", e.Site, e.Stack)
		}
		if _, err := d.Step(); err == nil || err.Error() != expected {
			t.Errorf("Step answers %v", err)
		}
		var caller scheduler.Queue[int]
		if _, _, err := caller.Push(t.Context()).Wait(scheduler.With(t.Context(), d), aWait); err == nil || err.Error() != expected {
			t.Errorf("a caller is answered %v", err)
		}
		close(free)
		if err := d.Run(); err != nil {
			t.Error(err)
		}
		if err := errors.Join(task.Wait(t.Context()), other.Wait(t.Context()), slow.Wait(t.Context())); err != nil {
			t.Error(err)
		}
		closes(t, d)
	})
}

func TestCloseOfADebugSchedulerNamesWhatIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scheduler.NewDebug(scheduler.DebugOptions{Patience: time.Minute})
		free := make(chan struct{})
		task := begin(t.Context(), d, "blocked", func(context.Context) error { <-free; return nil })
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), `task "blocked" (#1) has run for 1m0s`) {
			t.Errorf("Close: %v", err)
		}
		if err := begin(t.Context(), d, "late", nothing).Refused(); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("a task is refused with %v", err)
		}
		close(free)
		if err := d.Run(); err != nil || task.Wait(t.Context()) != nil {
			t.Errorf("once it is free: %v", err)
		}
	})
}

func TestDeadlinesEndWaitsWhenNothingElseCanRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scheduler.NewDebug(scheduler.DebugOptions{})
		start := time.Now()
		var order []string
		wait := func(name string, after time.Duration, more ...scheduler.Ending) {
			ctx, cancel := context.WithDeadlineCause(t.Context(), start.Add(after), errCause)
			t.Cleanup(cancel)
			e := &event{name: "nothing"}
			if more != nil {
				e.ends = more[0]
			}
			begin(ctx, d, name, func(ctx context.Context) error {
				err := e.wait(ctx)
				if err != errCause || time.Since(start) != after {
					t.Errorf("%s ended with %v after %v", name, err, time.Since(start))
				}
				order = append(order, name)
				return nil
			})
		}
		wait("third", 3*time.Hour)
		wait("first", time.Hour)
		wait("second", 2*time.Hour, scheduler.ByHolder)
		for range 3 {
			begin(t.Context(), d, "runs", func(ctx context.Context) error {
				for range 3 {
					scheduler.Breathe(ctx)
				}
				if time.Since(start) != 0 {
					t.Error("a deadline came before what can run")
				}
				return nil
			})
		}
		closes(t, d)
		if fmt.Sprint(order) != "[first second third]" {
			t.Errorf("they ended in the order %v", order)
		}
	})
}

// TestManyTasksAreRunInLinearTime would take minutes if each turn looked at each
// parked task. Their context can end.
func TestManyTasksAreRunInLinearTime(t *testing.T) {
	n := 100_000
	if raceDetector {
		n /= 5
	}
	d := scheduler.NewDebug(scheduler.DebugOptions{Seed: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make([]event, n+1)
	for i := range n {
		begin(ctx, d, "task", func(ctx context.Context) error {
			if err := events[i].wait(ctx); err != nil {
				return err
			}
			events[i+1].fire()
			return nil
		})
	}
	begin(ctx, d, "begins", func(context.Context) error { events[0].fire(); return nil })
	closes(t, d)
	if c := d.Counts(); c.Failed != 0 || c.Ended != uint64(n)+1 {
		t.Errorf("the counts are %+v", c)
	}
}

// TestWhatATaskLeftBehindWaitsAsACaller under a debug scheduler.
func TestWhatATaskLeftBehindWaitsAsACaller(t *testing.T) {
	d := scheduler.NewDebug(scheduler.DebugOptions{})
	var left context.Context
	begin(t.Context(), d, "ends", func(ctx context.Context) error { left = ctx; return nil })
	if err := d.Run(); err != nil {
		t.Fatal(err)
	}
	e := &event{name: "an event"}
	begin(t.Context(), d, "fires", func(context.Context) error { e.fire(); return nil })
	scheduler.Breathe(left)
	if err := e.wait(left); err != nil {
		t.Error(err)
	}
	closes(t, d)
}

// TestWhatComesFromOutsideIsNotLost though it comes while the scheduler is run.
func TestWhatComesFromOutsideIsNotLost(t *testing.T) {
	for seed := range uint64(500) {
		d := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed})
		var events [4]event
		for i := range events {
			begin(t.Context(), d, "waits", events[i].wait)
		}
		var outside sync.WaitGroup
		for i := range events {
			outside.Go(events[i].fire)
		}
		d.Run() // a deadlock, perhaps, and not for good
		outside.Wait()
		if err := d.Run(); err != nil {
			t.Fatal(err)
		}
		closes(t, d)
	}
}
