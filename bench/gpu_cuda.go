//go:build cuda

package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"unsafe"

	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// rig is what a case on a GPU has: Weir's resources and the floor's GPU, which
// are of one device. What the case makes it hands to later.
type rig struct {
	ctx context.Context
	r   *runtime.Resources
	gpu *floor.GPU
	end []func() error
}

// onGPU makes a case. ready prepares it with a rig whose floor has so many
// streams.
func onGPU(env Env, c Case, streams int, ready func(x *rig) (*Trial, error)) Case {
	c.Open = func(ctx context.Context) (*Trial, error) {
		gpu, err := floor.Open(env.Resources.Device().Ordinal(), streams)
		if err != nil {
			return nil, err
		}
		x := &rig{ctx: ctx, r: env.Resources, gpu: gpu, end: []func() error{gpu.Close}}
		t, err := ready(x)
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		t.Close = x.close
		return t, nil
	}
	return c
}

func (x *rig) later(f func() error) { x.end = append(x.end, f) }

func (x *rig) close() error {
	var errs []error
	for i := len(x.end) - 1; i >= 0; i-- {
		errs = append(errs, x.end[i]())
	}
	x.end = nil
	return errors.Join(errs...)
}

// alloc is memory of the floor's.
func (x *rig) alloc(bytes int64) (floor.Address, error) {
	p, err := x.gpu.Alloc(bytes)
	if err == nil {
		x.later(func() error { return x.gpu.Free(p) })
	}
	return p, err
}

// twin is one n×n matrix twice: Weir's and the floor's.
type twin struct {
	array *tensor.Array
	at    floor.Address
}

// twins makes matrices of random elements in [-scale, scale).
func twins[T element](x *rig, n, count int, scale float64) ([]twin, error) {
	random := rand.New(rand.NewPCG(uint64(n), 7))
	data := make([]T, n*n)
	var made []twin
	for range count {
		for i := range data {
			data[i] = T(scale * (2*random.Float64() - 1))
		}
		a, err := tensor.From(x.ctx, data, n, n)
		if err != nil {
			return nil, err
		}
		x.later(a.Free)
		p, err := x.alloc(a.Bytes())
		if err != nil {
			return nil, err
		}
		if _, err := x.gpu.CopyIn(p, bytesOf(data)); err != nil {
			return nil, err
		}
		made = append(made, twin{a, p})
	}
	return made, nil
}

// same compares Weir's result with the floor's. terms is as compare has it.
func same[T element](x *rig, got *tensor.Array, want floor.Address, terms int) error {
	data := make([]T, got.Bytes()/dtype.Of[T]().Size())
	if _, err := x.gpu.CopyOut(bytesOf(data), want); err != nil {
		return err
	}
	return compare(got, data, terms)
}

func bytesOf[T element | int64](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(s[0]))
}
