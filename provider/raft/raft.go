package raft

import (
	"context"

	"github.com/weirgo/weir/provider"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Lease is the exclusive use of a handle and a stream.
type Lease struct{ provider.Execution[*Handle] }

// Executor is the pool of one device's handles.
type Executor = provider.Executor[*Handle]

// usual is how many handles a device has if nobody says otherwise. Each has handles of
// cuBLAS and cuSOLVER of its own.
const usual = 2

var handles = provider.NewKind("raft handle", func(streams int) int { return min(usual, streams) }, newHandle)

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
