package async

import (
	"context"

	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/scheduler"
)

// Gate is a Reader or a Writer that a task is given.
type Gate = scheduler.Gate

// Go starts fn as a task and never waits. The task holds the gates, which are its
// own from here on, and lets go of them when fn returns, if fn did not: writers
// that are still open are poisoned by fn's error or panic, and pass if it is nil.
//
// It runs on the scheduler of ctx, or else the runtime's, on the lanes of ctx's
// device. fn's context is ctx as the task's: with it, what waits gives the lane
// back meanwhile. If the task cannot be started, or ctx has ended before it runs,
// fn does not run, and the gates open as of a task that failed so.
//
//go:noinline
func Go(ctx context.Context, name string, fn func(ctx context.Context) error, gates ...Gate) *scheduler.Task {
	spec := scheduler.Spec{Name: name, Run: fn, Site: callers.At(callers.PCs()), Failure: poisonOfTask}
	if d, err := runtime.At(ctx); err == nil { // without a runtime, or a device, the lanes are those of no device
		spec.Arena = d.Name()
	}
	t := scheduler.New(ctx, spec, gates...)
	if t.Refused() != nil {
		return t
	}
	if refuse, held := ctx.Value(heldKey{}).(func(*scheduler.Task, string) error); held {
		t.Refuse(refuse(t, name))
		return t
	}
	if s, err := runtime.Scheduler(ctx); err != nil {
		t.Refuse(err)
	} else {
		s.Start(t)
	}
	return t
}

// poisonOfTask is what all of a task's writers are poisoned with.
func poisonOfTask(t *scheduler.Task, err error) error { return poisonOf(t, "", err) }

// All awaits every reader, in order, and answers what they read. The error is
// the first of them in order, however they came in time; the others' values are
// in place.
func All[T any](ctx context.Context, readers ...*Reader[T]) ([]T, error) {
	var first error
	all := make([]T, len(readers))
	for i, r := range readers {
		x, err := r.Await(ctx)
		if err != nil && first == nil {
			first = err
		}
		all[i] = x
	}
	return all, first
}
