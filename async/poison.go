package async

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/callers"
	"github.com/weirgo/weir/scheduler"
)

// Poison is the first cause of a failure. Every value that it reached carries the
// same one: what was computed from a poisoned value is poisoned by what poisoned
// it. It matches weir.ErrPoisoned, the cause, and, if the failure is that a
// context ended, weir.ErrCancelled.
type Poison struct {
	Op        string // the task or operation that failed first
	Cause     error  // how
	Cancelled bool   // its context ended
	site      callers.Site
}

// Site is "file.go:12", where the user asked for what failed; "" if unknown.
func (p *Poison) Site() string { return p.site.String() }

// Error names what failed first, where, and how.
func (p *Poison) Error() string {
	at := p.Site()
	if at != "" {
		at = " (" + at + ")"
	}
	verb := "failed"
	if p.Cancelled {
		verb = "was cancelled"
	}
	return fmt.Sprintf("poisoned: %s%s %s: %v", p.Op, at, verb, p.Cause)
}

// Unwrap is the cause.
func (p *Poison) Unwrap() error { return p.Cause }

// Is matches the sentinels that hold of p itself.
func (p *Poison) Is(target error) bool {
	return target == weir.ErrPoisoned || p.Cancelled && target == weir.ErrCancelled
}

// poisonOf is the poison of a failure: the one that err carries, or a new one of
// the task, or else of what was to be written.
func poisonOf(t *scheduler.Task, what string, err error) *Poison {
	var first *Poison
	if errors.As(err, &first) {
		return first
	}
	p := &Poison{Op: "the write of " + what, Cause: err, Cancelled: cancelled(err)}
	if t != nil {
		p.Op, p.site = t.String(), t.Site()
		p.Cancelled = p.Cancelled || t.Err() != nil && errors.Is(err, context.Cause(t))
	}
	return p
}

func cancelled(err error) bool {
	return errors.Is(err, weir.ErrCancelled) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// gaveUp is the error of a wait that ended without what it was for.
func gaveUp(ctx context.Context, op, what string, err error) error {
	return &weir.Error{Op: op, Kind: weir.KindLogic, Message: "gave up waiting for " + what, Err: scheduler.GaveUp(ctx, err)}
}

func uninitialized[T any](op string, v *Value[T]) error {
	return &weir.Error{Op: op, Kind: weir.KindLogic, Message: v.String() + " was never written", Err: weir.ErrUninitialized}
}

func owned(t, by *scheduler.Task, what, of string) error {
	return &weir.Error{Op: "async.Go", Kind: weir.KindLogic, Err: weir.ErrBusy,
		Message: fmt.Sprintf("%v is given a %s of %s that %v has; it has one owner", t, what, of, by)}
}

// label is the value's name in listings.
func (v *Value[T]) label() string {
	if v.name == "" {
		return fmt.Sprintf("%p", v)
	}
	return v.name
}
