// Package blas leases BLAS handles and submits matrix products: the leaf that
// direct and asynchronous operations share. On the host device the library is
// OpenBLAS or gonum; on CUDA it is cuBLAS.
//
// The order of an operation is: memory; Acquire, which takes a handle, then an
// idle stream; an access scope on that stream; Gemm; the scope's End; Release.
// Gemm itself only submits: it never waits.
//
// It allocates no memory, plans nothing from shapes (package tensor does), and
// keeps no thread or stream affinity. A device has one pool of handles, by
// default one for each stream, since a product returns before its stream is
// done; Configure sets another count before the first use.
//
// Ownership: Release gives handle and stream back. Concurrency: a lease belongs
// to one goroutine at a time. Errors: ErrStale after a release, the library's
// own from Gemm, after which the handle is remade.
package blas

import (
	"context"
	"sync"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider"
	"github.com/weirgo/weir/runtime"
)

// Handle is a BLAS library's handle.
type Handle = driver.BLAS

// Product describes C = alpha·op(A)·op(B) + beta·C, batched, column-major; see
// its fields.
type Product = driver.Gemm

// Lease is the exclusive use of a handle and a stream.
type Lease struct{ provider.Execution[Handle] }

// Executor is the pool of one device's handles.
type Executor = provider.Executor[Handle]

// Of answers the executor of r, made on first use.
func Of(r *runtime.Resources) (*Executor, error) {
	return runtime.Use(r, runtime.StageProvider, onePerStream)
}

func onePerStream(r *runtime.Resources) (*Executor, error) { return executor(r, r.Streams().Size()) }

func executor(r *runtime.Resources, count int) (*Executor, error) {
	return provider.NewExecutor(r, "blas handle", count, r.Device().Driver().NewBLAS)
}

// Configure is Of with an explicit count of handles, from 1 to the number of
// streams. Once the first use has made them, another count is an error.
func Configure(r *runtime.Resources, count int) (*Executor, error) {
	e, err := runtime.Use(r, runtime.StageProvider, func(r *runtime.Resources) (*Executor, error) { return executor(r, count) })
	if err == nil {
		err = e.Agree(count)
	}
	return e, err
}

// Acquire leases a handle and a stream of the device that ctx names.
func Acquire(ctx context.Context) (Lease, error) {
	r, err := runtime.Here(ctx)
	if err != nil {
		return Lease{}, err
	}
	return AcquireOn(ctx, r)
}

// AcquireOn leases a handle and a stream of r.
func AcquireOn(ctx context.Context, r *runtime.Resources) (Lease, error) {
	e, err := Of(r)
	if err != nil {
		return Lease{}, err
	}
	x, err := e.Acquire(ctx)
	return Lease{x}, err
}

// descriptors are what drivers read products from: handing the caller's own to
// an interface would put it on the heap.
var descriptors = sync.Pool{New: func() any { return new(Product) }}

// Gemm submits a product to the lease's stream. Addresses come from an open
// access on that stream.
func Gemm(l *Lease, p *Product) error {
	h, err := l.Value()
	if err != nil {
		return err
	}
	s, err := l.Stream().Submit()
	if err != nil {
		return err
	}
	d := descriptors.Get().(*Product)
	*d = *p
	err = h.Gemm(s, d)
	descriptors.Put(d)
	if err != nil {
		l.Break()
	}
	return err
}
