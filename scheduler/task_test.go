package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/scheduler"
)

// gate is a gate that notes what happens to it.
type gate struct {
	refusal error
	log     *[]string
	info    scheduler.GateInfo

	bound *scheduler.Task
	ended error
	ends  int
}

func (g *gate) Bind(t *scheduler.Task) error {
	if g.refusal == nil {
		g.bound = t
	}
	return g.refusal
}

func (g *gate) End(t *scheduler.Task, err error) {
	if t != g.bound {
		panic("the gate of another task is ended")
	}
	g.ended = err
	g.ends++
	if g.log != nil {
		*g.log = append(*g.log, g.info.Value)
	}
}

func (g *gate) Describe() scheduler.GateInfo { return g.info }

func schedulers(t *testing.T) map[string]scheduler.Scheduler {
	return map[string]scheduler.Scheduler{
		"pool":  newPool(t, scheduler.Options{Lanes: 1}),
		"debug": scheduler.NewDebug(scheduler.DebugOptions{}),
	}
}

func TestGatesOpenInOrderBeforeTheTaskHasEnded(t *testing.T) {
	for name, s := range schedulers(t) {
		ctx := scheduler.With(context.Background(), s)
		for _, failure := range []error{nil, errCause} {
			var log []string
			var gates []scheduler.Gate
			for i := range 5 { // more than fit in the task
				gates = append(gates, &gate{log: &log, info: scheduler.GateInfo{Value: fmt.Sprint(i)}})
			}
			task := scheduler.New(ctx, scheduler.Spec{Name: "task", Run: func(context.Context) error { return failure }}, gates...)
			s.Start(task)
			if err := task.Wait(ctx); err != failure {
				t.Errorf("%s: Wait answers %v; expected %v", name, err, failure)
			}
			if !slices.Equal(log, []string{"0", "1", "2", "3", "4"}) {
				t.Errorf("%s: the gates were ended in the order %v", name, log)
			}
			for _, g := range gates {
				if g := g.(*gate); g.bound != task || g.ended != failure {
					t.Errorf("%s: a gate was bound to %v and ended with %v", name, g.bound, g.ended)
				}
			}
		}
		closes(t, s)
	}
}

func TestATaskThatIsRefusedAGateLetsTheOthersGo(t *testing.T) {
	for name, s := range schedulers(t) {
		before, refusing, after := &gate{}, &gate{refusal: errCause}, &gate{}
		task := scheduler.New(t.Context(), scheduler.Spec{Name: "task", Run: func(context.Context) error {
			t.Error("it runs")
			return nil
		}}, before, refusing, after)
		s.Start(task)
		if err := task.Wait(t.Context()); err != errCause || task.Refused() != errCause {
			t.Errorf("%s: got %v and %v", name, err, task.Refused())
		}
		if before.ends != 1 || before.ended != errCause || refusing.ends != 0 || after.ends != 1 || after.ended != errCause {
			t.Errorf("%s: the gates are %+v, %+v, %+v", name, before, refusing, after)
		}
		if c := s.Counts(); c != (scheduler.Counts{}) {
			t.Errorf("%s: the counts are %+v", name, c)
		}
		closes(t, s)
	}
}

func TestATaskNeedsAFunction(t *testing.T) {
	for _, s := range schedulers(t) {
		g := &gate{}
		task := scheduler.New(t.Context(), scheduler.Spec{Name: "empty"}, g)
		s.Start(task)
		if err := task.Wait(t.Context()); !errors.Is(err, weir.ErrArgument) || err.Error() != `scheduler.New: task "empty" has no function to run` || g.ends != 1 || g.ended != err {
			t.Errorf("got %v", err)
		}
		closes(t, s)
	}
}

func panicsHere(v any) func(context.Context) error {
	return func(context.Context) error { panic(v) }
}

func TestAPanicIsTheFailureOfItsTask(t *testing.T) {
	for name, s := range schedulers(t) {
		ctx := scheduler.With(context.Background(), s)
		for _, v := range []any{errCause, "a word", fmt.Errorf("wrapped: %w", errCause)} {
			g := &gate{}
			task := scheduler.New(ctx, scheduler.Spec{Name: "panics", Run: panicsHere(v)}, g)
			s.Start(task)
			err := task.Wait(ctx)
			var e *weir.Error
			if !errors.As(err, &e) || !errors.Is(err, weir.ErrPanic) || g.ended != err {
				t.Fatalf("%s: got %v, and the gate %v", name, err, g.ended)
			}
			if !strings.HasPrefix(err.Error(), fmt.Sprintf(`%v: panic: %v`, task, v)) {
				t.Errorf("%s: the failure reads %v", name, err)
			}
			if !strings.Contains(e.Stack, "panicsHere") {
				t.Errorf("%s: the stack lacks who panicked:\n%s", name, e.Stack)
			}
			if _, is := v.(error); errors.Is(err, errCause) != is {
				t.Errorf("%s: %v is the cause: %v; expected %v", name, v, !is, is)
			}
		}
		var panicked *goruntime.PanicNilError
		if err := begin(ctx, s, "panics", panicsHere(nil)).Wait(ctx); !errors.As(err, &panicked) {
			t.Errorf("%s: panic(nil) is the failure %v", name, err)
		}
		if c := s.Counts(); c.Failed != 4 || c.Ended != 4 {
			t.Errorf("%s: the counts are %+v", name, c)
		}
		closes(t, s)
	}
}

func TestATaskThatEndsItsGoroutineHasFailed(t *testing.T) {
	for name, s := range schedulers(t) {
		ctx := scheduler.With(context.Background(), s)
		g := &gate{}
		task := scheduler.New(ctx, scheduler.Spec{Name: "leaves", Run: func(context.Context) error {
			goruntime.Goexit()
			return nil
		}}, g)
		s.Start(task)
		next := begin(ctx, s, "next", nothing)
		err := task.Wait(ctx)
		if !errors.Is(err, weir.ErrPanic) || !strings.Contains(err.Error(), `task "leaves"`) || !strings.Contains(err.Error(), "runtime.Goexit") || g.ended != err || g.ends != 1 {
			t.Errorf("%s: got %v, and the gate %v", name, err, g.ended)
		}
		if err := next.Wait(ctx); err != nil { // the lane was given back
			t.Errorf("%s: %v", name, err)
		}
		closes(t, s)
	}
}

func TestATaskDoesNotRunIfItsContextEndsBefore(t *testing.T) {
	for name, s := range schedulers(t) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errCause)
		g := &gate{}
		task := scheduler.New(ctx, scheduler.Spec{Name: "late", Run: func(context.Context) error {
			t.Error("it runs")
			return nil
		}}, g)
		s.Start(task)
		if err := task.Wait(scheduler.With(context.Background(), s)); err != errCause || g.ended != errCause {
			t.Errorf("%s: got %v, and the gate %v; expected the cause", name, err, g.ended)
		}
		if task.Refused() != nil {
			t.Errorf("%s: it counts as refused", name)
		}
		closes(t, s)
	}
}

type aKey struct{}

func TestATaskIsTheContextOfItsFunction(t *testing.T) {
	for name, s := range schedulers(t) {
		other := scheduler.NewDebug(scheduler.DebugOptions{})
		ctx, cancel := context.WithDeadline(context.WithValue(scheduler.With(context.Background(), other), aKey{}, 7), time.Now().Add(time.Hour))
		defer cancel()
		var task *scheduler.Task
		task = scheduler.New(ctx, scheduler.Spec{Name: "task", Site: here(), Run: func(in context.Context) error {
			derived := context.WithValue(in, aKey{}, 8)
			a, _ := ctx.Deadline()
			b, _ := derived.Deadline()
			switch {
			case scheduler.TaskOf(in) != task, scheduler.TaskOf(derived) != task, scheduler.LaneOf(derived) != scheduler.Lane(task):
				return errors.New("it is not known who runs")
			case scheduler.Of(derived) != s:
				return errors.New("its scheduler is not known")
			case in.Value(aKey{}) != 7 || !a.Equal(b) || in.Done() != ctx.Done():
				return errors.New("it lost what the caller's context says")
			}
			as := scheduler.As(context.WithValue(ctx, aKey{}, 9), in)
			if scheduler.TaskOf(as) != task || scheduler.Of(as) != s || as.Value(aKey{}) != 9 {
				return errors.New("As mixes them up")
			}
			as = scheduler.As(in, scheduler.With(context.Background(), other))
			if scheduler.TaskOf(as) != nil || scheduler.Of(as) != scheduler.Scheduler(other) || as.Value(aKey{}) != 7 {
				return errors.New("As leaves one task's lane to another goroutine")
			}
			return nil
		}})
		if scheduler.TaskOf(ctx) != nil {
			t.Error("a caller is taken for a task")
		}
		s.Start(task)
		if err := task.Wait(scheduler.With(context.Background(), s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if task.Name() != "task" || task.String() != `task "task" (#1)` || !strings.Contains(task.Site().String(), "task_test.go:") {
			t.Errorf("%s: it is %v, made at %v", name, task, task.Site())
		}
		closes(t, s)
	}
}

//go:noinline
func here() callers.Site { return callers.At(callers.PCs()) }

// TestGatesMayShowATaskAroundBeforeItIsStarted: others see it as a holder, in
// listings and to the watchdog, while it is on its way to its scheduler. It is for
// the race detector.
func TestGatesMayShowATaskAroundBeforeItIsStarted(t *testing.T) {
	p := newPool(t, scheduler.Options{Lanes: 2, Watchdog: 50 * time.Microsecond})
	for range 100 {
		e := &event{name: "an event"}
		task := scheduler.New(t.Context(), scheduler.Spec{Name: "writer", Run: func(context.Context) error { e.fire(); return nil }})
		e.holders = []*scheduler.Task{task}
		waits := begin(t.Context(), p, "reader", e.wait)
		listed := make(chan struct{})
		go func() {
			defer close(listed)
			for waits.Refused() == nil && p.Counts().Live > 0 {
				p.Tasks()
			}
		}()
		p.Start(task)
		if err := waits.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-listed
	}
	closes(t, p)
	for range 100 {
		d := scheduler.NewDebug(scheduler.DebugOptions{})
		e := &event{name: "an event"}
		task := scheduler.New(t.Context(), scheduler.Spec{Name: "writer", Run: func(context.Context) error { e.fire(); return nil }})
		e.holders = []*scheduler.Task{task}
		begin(t.Context(), d, "reader", e.wait)
		stuck := make(chan error)
		go func() { stuck <- d.Run() }()
		d.Start(task)
		<-stuck
		closes(t, d)
	}
}
