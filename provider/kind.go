package provider

import (
	"context"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Kind is one library's handles. Each device has one executor of them, made at
// its first use; there is one Kind of a handle type, by which resources know it.
type Kind[T Handle] struct {
	name  string
	make  func(driver.Device) (T, error)
	usual func(*runtime.Resources) (*Executor[T], error) // made once, so that no use allocates it
}

// NewKind describes handles. name is what one is called in messages; count is how
// many a device has if nobody says otherwise, for its number of streams.
func NewKind[T Handle](name string, count func(streams int) int, make func(driver.Device) (T, error)) *Kind[T] {
	k := &Kind[T]{name: name, make: make}
	k.usual = func(r *runtime.Resources) (*Executor[T], error) { return k.executor(r, count(r.Streams().Size())) }
	return k
}

func (k *Kind[T]) executor(r *runtime.Resources, count int) (*Executor[T], error) {
	return NewExecutor(r, k.name, count, func() (T, error) { return k.make(r.Device().Driver()) })
}

// Of answers the executor of r, made on first use.
func (k *Kind[T]) Of(r *runtime.Resources) (*Executor[T], error) {
	return runtime.Use(r, runtime.StageProvider, k.usual)
}

// Configure is Of with an explicit count of handles, from 1 to the number of
// streams. Once the first use has made them, another count is an error.
func (k *Kind[T]) Configure(r *runtime.Resources, count int) (*Executor[T], error) {
	e, err := runtime.Use(r, runtime.StageProvider, func(r *runtime.Resources) (*Executor[T], error) { return k.executor(r, count) })
	if err == nil {
		err = e.Agree(count)
	}
	return e, err
}

// Acquire leases a handle and a stream of the device that ctx names.
func (k *Kind[T]) Acquire(ctx context.Context) (Execution[T], error) {
	r, err := runtime.Here(ctx)
	if err != nil {
		return Execution[T]{}, err
	}
	return k.AcquireOn(ctx, r)
}

// AcquireOn leases a handle and a stream of r.
func (k *Kind[T]) AcquireOn(ctx context.Context, r *runtime.Resources) (Execution[T], error) {
	return k.AcquireAfter(ctx, r, stream.After{})
}

// AcquireAfter leases a handle and a stream of r, for work that follows the
// completions; see Executor.AcquireAfter.
func (k *Kind[T]) AcquireAfter(ctx context.Context, r *runtime.Resources, after stream.After) (Execution[T], error) {
	e, err := k.Of(r)
	if err != nil {
		return Execution[T]{}, err
	}
	return e.AcquireAfter(ctx, after)
}
