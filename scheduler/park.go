package scheduler

import "context"

// Lane is the right of a task to run. While the task waits for something
// scarce, another one may have it.
type Lane interface {
	// Yield gives the lane back. It does not wait.
	Yield()
	// Resume waits, first come first served, until a lane is free again.
	Resume()
}

type laneKey struct{}

// WithLane says in the context that its goroutine holds lane.
func WithLane(ctx context.Context, lane Lane) context.Context {
	return context.WithValue(ctx, laneKey{}, lane)
}

// LaneOf answers the lane that ctx's goroutine holds, for waits that Park cannot
// do; outside a task it is a lane that does nothing.
func LaneOf(ctx context.Context) Lane {
	if lane, ok := ctx.Value(laneKey{}).(Lane); ok {
		return lane
	}
	return noLane{}
}

type noLane struct{}

func (noLane) Yield()  {}
func (noLane) Resume() {}

// Park waits until ready is closed or sends, or until ctx ends, whose cause it
// then answers. When both hold, ready wins. The lane of a task is given back
// while it waits.
func Park(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	default:
	}
	lane := LaneOf(ctx)
	lane.Yield()
	defer lane.Resume()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		select {
		case <-ready:
			return nil
		default:
			return context.Cause(ctx)
		}
	}
}
