package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir/scheduler"
)

var errCause = errors.New("the cause that the test gave")

// aWait is what tests wait for.
var aWait scheduler.Wait = forNothing{}

type forNothing struct{}

func (forNothing) String() string             { return "what the test gives" }
func (forNothing) Ends() scheduler.Ending     { return scheduler.ByTask }
func (forNothing) Holders() []*scheduler.Task { return nil }

// laneLog is a lane that notes what happens to it.
type laneLog struct{ events []string }

func (l *laneLog) Yield(scheduler.Wait) { l.events = append(l.events, "yield") }
func (l *laneLog) Resume()              { l.events = append(l.events, "resume") }

func (l *laneLog) expect(t *testing.T, when string, events ...string) {
	t.Helper()
	if !slices.Equal(l.events, events) {
		t.Errorf("%s the lane had %v; expected %v", when, l.events, events)
	}
}

func TestATaskThatParksGivesItsLaneBackExactlyMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		end      func(ready chan struct{}, cancel context.CancelCauseFunc)
		expected error
	}{
		"until ready is closed":      {func(r chan struct{}, _ context.CancelCauseFunc) { close(r) }, nil},
		"until ready sends":          {func(r chan struct{}, _ context.CancelCauseFunc) { r <- struct{}{} }, nil},
		"until its context is ended": {func(_ chan struct{}, c context.CancelCauseFunc) { c(errCause) }, errCause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lane := &laneLog{}
				ctx, cancel := context.WithCancelCause(scheduler.WithLane(context.Background(), lane))
				defer cancel(nil)
				ready, answer := make(chan struct{}), make(chan error)
				go func() { answer <- scheduler.Park(ctx, ready, aWait) }()
				synctest.Wait()
				lane.expect(t, "while parked", "yield")
				c.end(ready, cancel)
				if err := <-answer; err != c.expected {
					t.Errorf("Park answers %v; expected %v", err, c.expected)
				}
				lane.expect(t, "afterwards", "yield", "resume")
			})
		})
	}
}

func TestATaskKeepsItsLaneWhenItNeedNotWait(t *testing.T) {
	lane := &laneLog{}
	ready := make(chan struct{})
	close(ready)
	if err := scheduler.Park(scheduler.WithLane(context.Background(), lane), ready, aWait); err != nil {
		t.Errorf("Park answers %v", err)
	}
	lane.expect(t, "afterwards")
}

func TestReadyWinsOverTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCause)
	ready := make(chan struct{}, 1)
	for range 100 {
		ready <- struct{}{}
		if err := scheduler.Park(ctx, ready, aWait); err != nil {
			t.Fatalf("with both, Park answers %v; expected ready to win", err)
		}
	}
	if err := scheduler.Park(ctx, ready, aWait); err != errCause {
		t.Errorf("with only the context ended, Park answers %v; expected its cause", err)
	}
}

// readyOnYield makes ready and ends the context between Park's first look and
// its wait.
type readyOnYield struct {
	ready  chan struct{}
	cancel context.CancelCauseFunc
}

func (l readyOnYield) Yield(scheduler.Wait) {
	l.cancel(errCause)
	l.ready <- struct{}{}
}
func (readyOnYield) Resume() {}

func TestReadyWinsThoughBothComeWhileParked(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancelCause(context.Background())
		lane := readyOnYield{make(chan struct{}, 1), cancel}
		if err := scheduler.Park(scheduler.WithLane(ctx, lane), lane.ready, aWait); err != nil {
			t.Fatalf("Park answers %v; expected ready to win", err)
		}
	}
}

func TestParkAnswersThePlainErrorWhereThereIsNoCause(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := scheduler.Park(ctx, nil, aWait); err != context.Canceled {
		t.Errorf("Park answers %v; expected context.Canceled", err)
	}
}

func TestTheLaneIsThatOfTheInnermostTask(t *testing.T) {
	outer, inner := &laneLog{}, &laneLog{}
	ctx := scheduler.WithLane(scheduler.WithLane(context.Background(), outer), inner)
	if scheduler.LaneOf(ctx) != inner {
		t.Error("the lane of a nested task is not its own")
	}
	lane := scheduler.LaneOf(context.Background()) // a lane that does nothing
	lane.Yield(nil)
	lane.Resume()
}

func TestParkingAllocatesNothing(t *testing.T) {
	ready := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended, end := context.WithCancel(scheduler.WithLane(ctx, &laneLog{events: make([]string, 0, 1000)}))
	end()
	if n := testing.AllocsPerRun(100, func() {
		ready <- struct{}{}
		if err := scheduler.Park(ctx, ready, aWait); err != nil {
			t.Fatal(err)
		}
		if err := scheduler.Park(ended, ready, aWait); err == nil {
			t.Fatal("Park did not see that the context is ended")
		}
	}); n != 0 {
		t.Errorf("%v allocations; expected none", n)
	}
}
