// Package blas leases BLAS handles and submits matrix products: the leaf that
// direct and asynchronous operations share. On the host device the library is
// OpenBLAS or gonum; on CUDA it is cuBLAS.
//
// The order of an operation is: memory; Acquire, which takes a handle, then an
// idle stream; an access scope on that stream; Gemm or GemmGroups; the scope's
// End; Release. The products themselves are only submitted: neither waits.
//
// It allocates no memory, plans nothing from shapes (package tensor does), and
// keeps no thread or stream affinity. A device has one pool of handles, by
// default one for each stream, since a product returns before its stream is
// done; Configure sets another count before the first use.
//
// Ownership: Release gives handle and stream back. Concurrency: a lease belongs
// to one goroutine at a time. Errors: ErrStale after a release, the library's
// own from products, after which the handle is remade.
package blas

import (
	"context"
	"sync"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Handle is a BLAS library's handle.
type Handle = driver.BLAS

// Product describes C = alpha·op(A)·op(B) + beta·C, batched, column-major; see
// its fields.
type Product = driver.Gemm

// Group describes products of one shape at addresses of their own; see its
// fields.
type Group = driver.GemmGroup

// Op says how a product reads a matrix.
type Op = driver.Op

const (
	NoTrans   = driver.NoTrans   // as it lies
	Trans     = driver.Trans     // transposed
	ConjTrans = driver.ConjTrans // transposed and conjugated
)

// Compute says how precisely the terms of a product are multiplied. Sums are
// those of the element type, and of float32 for the 16-bit types, in every case.
// A device may be more precise than it is asked to be: the host always is.
type Compute = driver.Compute

const (
	// ComputeExact rounds no element before it is multiplied.
	ComputeExact = driver.ComputeExact
	// ComputeTF32 may round elements of float32 and complex64 to 11 bits, so
	// that a term a·b is off by at most 2^-9·|a·b|. Other types ignore the modes.
	ComputeTF32 = driver.ComputeTF32
	// ComputeBF16 may round them to 8 bits, an error of at most 2^-6·|a·b|.
	ComputeBF16 = driver.ComputeBF16
	// ComputeFP16 may round them to 11 bits and to float16's range: above 65504
	// they can become infinite, below 2^-14 they lose bits.
	ComputeFP16 = driver.ComputeFP16
)

// Lease is the exclusive use of a handle and a stream.
type Lease struct{ provider.Execution[Handle] }

// Executor is the pool of one device's handles.
type Executor = provider.Executor[Handle]

var handles = provider.NewKind("blas handle", func(streams int) int { return streams }, driver.Device.NewBLAS)

// Of answers the executor of r, made on first use.
func Of(r *runtime.Resources) (*Executor, error) { return handles.Of(r) }

// Configure is Of with an explicit count of handles, from 1 to the number of
// streams. Once the first use has made them, another count is an error.
func Configure(r *runtime.Resources, count int) (*Executor, error) {
	return handles.Configure(r, count)
}

// Acquire leases a handle and a stream of the device that ctx names.
func Acquire(ctx context.Context) (Lease, error) {
	x, err := handles.Acquire(ctx)
	return Lease{x}, err
}

// AcquireOn leases a handle and a stream of r.
func AcquireOn(ctx context.Context, r *runtime.Resources) (Lease, error) {
	return AcquireAfter(ctx, r, stream.After{})
}

// AcquireAfter leases a handle and a stream of r, for work that follows the
// completions: if one of them is the last work of its stream, it goes on there.
func AcquireAfter(ctx context.Context, r *runtime.Resources, after stream.After) (Lease, error) {
	x, err := handles.AcquireAfter(ctx, r, after)
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

// GemmGroups submits the products of all groups to the lease's stream, as few
// launches. What the groups say is captured; no result overlaps another.
// Addresses come from an open access on that stream.
func GemmGroups(l *Lease, groups []Group) error {
	h, err := l.Value()
	if err != nil {
		return err
	}
	s, err := l.Stream().Submit()
	if err != nil {
		return err
	}
	err = h.GemmGroups(s, groups)
	if err != nil {
		l.Break()
	}
	return err
}
