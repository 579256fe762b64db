package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir/scheduler"
)

// TestATaskIsOneAllocation: on one lane, whose goroutine runs them all.
func TestATaskIsOneAllocation(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	p := newPool(t, scheduler.Options{Lanes: 1})
	ran := make(chan struct{}, 1)
	run := func(context.Context) error { ran <- struct{}{}; return nil }
	a, b, c := &gate{}, &gate{}, &gate{}
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		p.Start(scheduler.New(ctx, scheduler.Spec{Name: "task", Run: run}, a, b, c))
		<-ran
	}); n > 1 {
		t.Errorf("a task of three gates takes %v allocations; expected 1", n)
	}
	closes(t, p)
}

func TestATaskParksWithoutAllocating(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for name, with := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"a context that cannot end": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"a context that can end":    context.WithCancel,
	} {
		p := newPool(t, scheduler.Options{Lanes: 1})
		ctx, cancel := with(context.Background())
		ping, pong := make(chan struct{}, 1), make(chan struct{}, 1)
		var stop atomic.Bool
		var what scheduler.Wait = &event{name: "an event"}
		begin(ctx, p, "other", func(ctx context.Context) error {
			for {
				if err := scheduler.Park(ctx, pong, what); err != nil || stop.Load() {
					return err
				}
				ping <- struct{}{}
			}
		})
		if err := begin(ctx, p, "parks", func(ctx context.Context) error {
			if n := testing.AllocsPerRun(1000, func() {
				pong <- struct{}{}
				if err := scheduler.Park(ctx, ping, what); err != nil {
					t.Error(err)
				}
			}); n != 0 {
				t.Errorf("under %s, parking takes %v allocations; expected none", name, n)
			}
			return nil
		}).Wait(ctx); err != nil {
			t.Error(err)
		}
		stop.Store(true)
		pong <- struct{}{}
		closes(t, p)
		cancel()
	}
}
