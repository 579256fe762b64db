// Package solver leases handles of dense linear algebra and submits
// decompositions: the leaf that direct and asynchronous operations share. On the
// host device the library is the LAPACK in OpenBLAS, or gonum and rotations of
// Weir's own; on CUDA it is cuSOLVER.
//
// The order of an operation is: memory; Acquire, which takes a handle, then an
// idle stream; an access scope on that stream; SVD; the scope's End; Release.
// SVD submits. On CUDA it also waits for the stream and for most of the
// decomposition, because cuSOLVER looks at the matrix on the host.
//
// It allocates no array, plans nothing from shapes (package tensor does), and
// keeps no thread or stream affinity. A device has one pool of handles, by
// default two, or one if it has one stream: a decomposition keeps a device busy,
// and its workspace is large; Configure sets another count before the first use.
//
// Ownership: Release gives handle and stream back. Concurrency: a lease belongs
// to one goroutine at a time. Errors: ErrStale after a release, the library's
// own from SVD, after which the handle is remade.
package solver

import (
	"context"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Handle is a library's handle.
type Handle = driver.Solver

// Decomposition describes A = U·diag(S)·VH, column-major; see its fields.
type Decomposition = driver.SVD

// Factors says which singular vectors are asked for.
type Factors = driver.Factors

const (
	None = driver.FactorsNone // S alone
	Thin = driver.FactorsThin // U is M×K, VH K×N, with K = min(M, N)
	Full = driver.FactorsFull // U is M×M, VH N×N
)

// Lease is the exclusive use of a handle and a stream.
type Lease struct{ provider.Execution[Handle] }

// Executor is the pool of one device's handles.
type Executor = provider.Executor[Handle]

// usual is how many handles a device has if nobody says otherwise.
const usual = 2

var handles = provider.NewKind("solver handle", func(streams int) int { return min(usual, streams) }, driver.Device.NewSolver)

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

// SVD submits a decomposition to the lease's stream. Addresses come from an open
// access on that stream.
func SVD(l *Lease, p *Decomposition) error {
	h, err := l.Value()
	if err != nil {
		return err
	}
	s, err := l.Stream().Submit()
	if err != nil {
		return err
	}
	if err := h.SVD(s, p); err != nil {
		l.Break()
		return err
	}
	return nil
}
