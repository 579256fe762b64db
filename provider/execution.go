package provider

import (
	"context"
	"errors"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Executor leases a handle and a stream together.
type Executor[T Handle] struct {
	*Pool[T]
	resources *runtime.Resources
}

// NewExecutor makes an executor with count handles; see NewPool.
func NewExecutor[T Handle](r *runtime.Resources, name string, count int, make func() (T, error)) (*Executor[T], error) {
	p, err := NewPool(r, name, count, make)
	if err != nil {
		return nil, err
	}
	return &Executor[T]{p, r}, nil
}

// Acquire waits for a handle, then for an idle stream. Whatever was taken is
// given back when it fails.
func (e *Executor[T]) Acquire(ctx context.Context) (Execution[T], error) {
	handle, err := e.Pool.Acquire(ctx)
	if err != nil {
		return Execution[T]{}, err
	}
	s, err := e.resources.Streams().Acquire(ctx)
	if err != nil {
		handle.Release(stream.Completion{})
		return Execution[T]{}, err
	}
	return Execution[T]{handle, s}, nil
}

// AcquireAfter is Acquire for work that follows all of the completions: it goes on
// where one of them is the last work, as stream.Pool.AcquireAfter does, and there
// with the handle that was used for it.
func (e *Executor[T]) AcquireAfter(ctx context.Context, after stream.After) (Execution[T], error) {
	for _, c := range after {
		if ctx.Err() != nil {
			break // Acquire answers the cause
		}
		s, ok := e.resources.Streams().Follow(c)
		if !ok {
			continue
		}
		handle, ok := e.slots.Continue(c)
		if !ok {
			handle, ok, _ = e.slots.TryAcquire() // of a failed pool Acquire answers why
		}
		if ok {
			return Execution[T]{Lease[T]{handle}, s}, nil
		}
		if err := s.Release(); err != nil { // a handle is never waited for with a stream in hand
			return Execution[T]{}, err
		}
		break
	}
	return e.Acquire(ctx)
}

// TryAcquire takes both if both are free now.
func (e *Executor[T]) TryAcquire() (x Execution[T], ok bool, err error) {
	handle, ok, err := e.Pool.TryAcquire()
	if !ok || err != nil {
		return x, false, err
	}
	s, ok, err := e.resources.Streams().TryAcquire()
	if !ok || err != nil {
		handle.Release(stream.Completion{})
		return x, false, err
	}
	return Execution[T]{handle, s}, true, nil
}

// Execution is the lease of a handle and a stream. The zero Execution is stale.
type Execution[T Handle] struct {
	Lease[T]
	s stream.Stream
}

// Stream is the leased stream, lent: the execution alone releases it, so that
// nobody gives it back without the handle.
func (x *Execution[T]) Stream() stream.Stream { return x.s.Lend() }

// Release gives both back: the handle at the tail of what was submitted, even
// if somebody retains the stream for longer.
func (x *Execution[T]) Release() error {
	if !x.s.Valid() {
		return nil
	}
	tail, err := x.s.Tail()
	if errors.Is(err, weir.ErrStale) { // a copy was released meanwhile
		return nil
	}
	x.Lease.Release(tail)
	if rerr := x.s.Release(); err == nil {
		err = rerr
	}
	return err
}

// Agree checks an explicit count of handles against that which the first use
// established.
func (e *Executor[T]) Agree(count int) error {
	if count != e.Size() {
		return weir.Argf("provider.Configure", "%d of %s on %s; its first use made %d, and a later count must agree",
			count, e.name, e.dev.Name(), e.Size())
	}
	return nil
}
