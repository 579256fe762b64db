package stream_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

// TestEveryWaitThatItsContextEndsIsCancelled: it matches the sentinel and the cause.
func TestEveryWaitThatItsContextEndsIsCancelled(t *testing.T) {
	dev, err := host.New(host.Options{HandOver: true}).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := stream.NewPool(dev, stream.Options{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	if err := s.Call(func() { <-gate }); err != nil {
		t.Fatal(err)
	}
	pool, err := scheduler.NewPool(scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	task := scheduler.New(t.Context(), scheduler.Spec{Name: "blocks", Run: func(context.Context) error { <-gate; return nil }})
	pool.Start(task)
	cause := errors.New("the cause that the test gave")
	for name, wait := range map[string]func(ctx context.Context) error{
		"Acquire":     func(ctx context.Context) error { _, err := p.Acquire(ctx); return err },
		"Synchronize": s.Synchronize,
		"Task.Wait":   task.Wait,
	} {
		for _, early := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(t.Context())
			if early {
				cancel(cause)
			} else {
				go cancel(cause)
			}
			if err := wait(ctx); !errors.Is(err, weir.ErrCancelled) || !errors.Is(err, cause) {
				t.Errorf("%s, ended before: %v: %v; expected ErrCancelled and the cause", name, early, err)
			}
		}
	}
	close(gate)
	if err := errors.Join(task.Wait(t.Context()), pool.Close(), s.Release(), p.Close()); err != nil {
		t.Error(err)
	}
}
