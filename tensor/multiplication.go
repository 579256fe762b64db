package tensor

import (
	"context"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/provider/raft"
	"github.com/weirgo/weir/stream"
)

// multiplication is the scope of one operation with products: a lease of a stream
// and a handle, or what becomes a node of a recording.
type multiplication struct {
	lease blas.Lease
	raft  *raft.Lease // in the place of lease, or nil
	note  *note       // in the lease's place, or nil
	acc   buffer.Access
}

// begin opens an operation on the device that to lies on, behind after. All memory
// has been taken before. (It fills x, which is too large to be handed about.)
func (x *multiplication) begin(ctx context.Context, after stream.After, to *Array) (err error) {
	if r := recordingOf(ctx); r != nil {
		if x.note, err = r.begin(); err == nil {
			x.acc = buffer.BeginRecording(x.note)
		}
		return err
	}
	if x.raft != nil {
		if *x.raft, err = raft.AcquireAfter(ctx, to.resources(), after); err == nil {
			x.acc = buffer.Begin(x.raft.Stream())
		}
		return err
	}
	if x.lease, err = blas.AcquireAfter(ctx, to.resources(), after); err == nil {
		x.acc = buffer.Begin(x.lease.Stream())
	}
	return err
}

// end closes the operation, of which err is what became of its submissions.
func (x *multiplication) end(err error) error { return x.endAs(err, nil) }

// endAs is end that answers a failure of the accesses as as does.
func (x *multiplication) endAs(err error, as func(error) error) error {
	failed := x.acc.End()
	if as != nil {
		failed = as(failed)
	}
	if x.note != nil {
		return x.note.end(join(err, failed))
	}
	if x.raft != nil {
		return join(err, failed, x.raft.Release())
	}
	return join(err, failed, x.lease.Release())
}

func (x *multiplication) gemm(p *blas.Product) error {
	if x.note != nil {
		x.note.gemm(p)
		return nil
	}
	if x.raft != nil {
		q := *p // on the heap, where BLAS's is not
		return raft.Gemm(x.raft, &q)
	}
	return blas.Gemm(&x.lease, p)
}

func (x *multiplication) groups(all []blas.Group) error {
	if x.note != nil {
		x.note.groups(all)
		return nil
	}
	return blas.GemmGroups(&x.lease, all)
}

func (x *multiplication) launch(k *driver.Kernel) error {
	if x.note != nil {
		return tape{note: x.note}.Launch(k)
	}
	on := x.lease.Stream()
	if x.raft != nil {
		on = x.raft.Stream()
	}
	s, err := on.Submit()
	if err != nil {
		return err
	}
	return s.Launch(k)
}
