package tensor

import (
	"context"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/raft"
)

// Provider names a library of GPUs that computes an operation in the place of the one
// that Weir takes by itself, with the same meaning. It is an option of that operation.
// On a host device, which computes by other means, it has no effect.
type Provider string

// RAFT is NVIDIA's RAFT. It computes float32 and float64, in no graph, and products one
// by one: GemmBatchInto refuses it. Matrices that BLAS does not take as they lie are
// packed for it too; a Precision makes no difference. Without its libraries, which make
// raft builds, what asks for it on a GPU is an ErrNotSupported.
const RAFT Provider = "raft"

func (p Provider) apply(o productOptions) productOptions {
	o.provider = p
	return o
}

// check refuses names of no provider.
func (p Provider) check(op string) error {
	if p != "" && p != RAFT {
		return weir.Argf(op, "provider %q; expected %q", string(p), string(RAFT))
	}
	return nil
}

// computes says whether the provider is to compute on a's device.
func (p Provider) computes(a *Array) bool { return p == RAFT && !a.Device().IsHost() }

// forRAFT refuses a product that RAFT has none of. What does not lie as BLAS takes it is
// packed, as for BLAS.
func (p *product) forRAFT(ctx context.Context) error {
	if dt := p.c.array.dtype; dt != Float32 && dt != Float64 {
		return weir.Argf(p.op, "the arrays are %v; RAFT multiplies float32 and float64", dt)
	}
	return recordable(ctx, p.op, noGraphs)
}

// noGraphs is why what RAFT computes is not recorded.
const noGraphs = "RAFT computes it, which no graph can have"

// realOnly refuses element types other than float32 and float64.
func realOnly(op string, a *Array) error {
	if a.dtype != Float32 && a.dtype != Float64 {
		return weir.Argf(op, "a is %v; expected float32 or float64; convert it with tensor.AsType", a.dtype)
	}
	return nil
}

// withRAFT runs one operation's accesses and submissions on a lease of RAFT's. from is
// read.
func withRAFT(ctx context.Context, from *Array, do func(*raft.Lease, *buffer.Access) error) error {
	l, err := raft.AcquireAfter(ctx, from.resources(), written(from))
	if err != nil {
		return err
	}
	acc := buffer.Begin(l.Stream())
	err = do(&l, &acc)
	return join(err, acc.End(), l.Release())
}

// onRows runs an operation that reads the rows of from, which is row-major and not
// conjugated, and writes to: fn on a host device, in the order of the stream, and
// submit on a GPU. Both are given where the elements are.
func onRows(ctx context.Context, from *Array, fn func(at driver.Ptr, to []driver.Ptr), submit func(l *raft.Lease, at driver.Ptr, to []driver.Ptr) error, to ...*Array) error {
	open := func(acc *buffer.Access) (driver.Ptr, []driver.Ptr) {
		at := acc.Read(from.Buffer()) + driver.Ptr(from.offset*from.dtype.Size())
		results := make([]driver.Ptr, len(to))
		for i, a := range to {
			results[i] = acc.Write(a.Buffer())
		}
		return at, results
	}
	if from.Device().IsHost() {
		return onStream(ctx, to[0], func(x *operation) error {
			at, results := open(&x.acc)
			return x.submit(func(s driver.Stream) error { return s.Call(func() { fn(at, results) }) })
		}, from)
	}
	return withRAFT(ctx, from, func(l *raft.Lease, acc *buffer.Access) error {
		at, results := open(acc)
		if acc.Err() != nil {
			return nil // End answers it
		}
		return submit(l, at, results)
	})
}

// packedRows is a itself where it is row-major, else a copy that free gives back.
func packedRows(ctx context.Context, a *Array) (rows *Array, free func() error, err error) {
	if a.isRowMajor() && !a.conj {
		return a, func() error { return nil }, nil
	}
	rows, err = compact(unscoped(ctx), a)
	return rows, rows.Free, err
}
