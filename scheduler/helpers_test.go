package scheduler_test

import (
	"context"
	"sync"

	"github.com/weirgo/weir/scheduler"
)

// event is what tests wait for: it comes once, through a queue.
type event struct {
	name    string
	ends    scheduler.Ending
	holders []*scheduler.Task

	mu      sync.Mutex
	came    bool
	waiters scheduler.Queue[struct{}]
}

func (e *event) String() string             { return e.name }
func (e *event) Ends() scheduler.Ending     { return e.ends }
func (e *event) Holders() []*scheduler.Task { return e.holders }

func (e *event) wait(ctx context.Context) error {
	e.mu.Lock()
	if e.came {
		e.mu.Unlock()
		return nil
	}
	w := e.waiters.Push(ctx)
	e.mu.Unlock()
	_, delivered, err := w.Wait(ctx, e)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !delivered && !e.waiters.Remove(w) {
		w.Result()
		return nil
	}
	return err
}

func (e *event) fire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.came = true
	for w := e.waiters.Pop(); w != nil; w = e.waiters.Pop() {
		w.Deliver(struct{}{}, nil)
	}
}

// waiting is how many wait.
func (e *event) waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiters.Len()
}

func newPool(t reporter, o scheduler.Options) *scheduler.Pool {
	t.Helper()
	p, err := scheduler.NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// begin starts a task.
func begin(ctx context.Context, s scheduler.Scheduler, name string, fn func(context.Context) error) *scheduler.Task {
	return beginIn(ctx, s, "", name, fn)
}

func beginIn(ctx context.Context, s scheduler.Scheduler, arena, name string, fn func(context.Context) error) *scheduler.Task {
	t := scheduler.New(ctx, scheduler.Spec{Name: name, Arena: arena, Run: fn})
	s.Start(t)
	return t
}

// closes closes a scheduler that nothing is to be left in.
func closes(t reporter, s scheduler.Scheduler) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if c := s.Counts(); c.Live != 0 || c.Queued != 0 || c.Running != 0 || c.Started != c.Ended {
		t.Errorf("after Close the counts are %+v", c)
	}
}

// states is the states of a scheduler's tasks by name.
func states(s scheduler.Scheduler) map[string]scheduler.State {
	all := map[string]scheduler.State{}
	for _, i := range s.Tasks() {
		all[i.Name] = i.State
	}
	return all
}

func nothing(context.Context) error { return nil }

// reporter is *testing.T or *rapid.T.
type reporter interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}
