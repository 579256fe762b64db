package drivertest

import (
	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// misuseTests mix up objects of several makes. Other refusals stand with what
// they refuse.
var misuseTests = []test{
	{"a pool refuses a stream of no family", func(f *fixture) {
		d := f.device(0)
		p, s := f.pool(d, driver.PoolConfig{}), f.stream(d)
		at := f.take(p, s, 64)
		f.refused(second(p.Alloc(foreignStream{}, 64)), "Pool.Alloc", d, weir.ErrArgument)
		f.refused(p.Free(foreignStream{}, at), "Pool.Free", d, weir.ErrArgument)
		f.drop(p, s, at)
	}},
	{"a handle refuses a stream of no family", func(f *fixture) {
		d := f.device(0)
		s, b := f.stream(d), f.blas(d)
		p := f.squares(d, s, 2)
		f.refused(b.Gemm(foreignStream{}, square(p, 2)), "BLAS.Gemm", d, weir.ErrArgument)
	}},
	{"a handle refuses a stream of another device", func(f *fixture) {
		d := f.device(0)
		s, foreign, b := f.stream(d), f.stream(f.device(1)), f.blas(d)
		p := f.squares(d, s, 2)
		f.refused(b.Gemm(foreign, square(p, 2)), "BLAS.Gemm", d, weir.ErrArgument)
	}},
	{"a handle refuses a destroyed stream", func(f *fixture) {
		d := f.device(0)
		s, gone, b := f.stream(d), f.stream(d), f.blas(d)
		p := f.squares(d, s, 2)
		f.ok(gone.Destroy())
		f.refused(b.Gemm(gone, square(p, 2)), "BLAS.Gemm", d, weir.ErrClosed)
	}},
	{"a refused call leaves the stream working", func(f *fixture) {
		d := f.device(0)
		p := f.alloc(d, 8)
		s := f.stream(d)
		f.refused(s.Zero(p, -1), "Stream.Zero", d, weir.ErrArgument)
		f.refused(s.Launch(&driver.Kernel{Op: 200, Out: line(p, dtype.Int64, 1)}), "Stream.Launch", d, weir.ErrArgument)
		write(f, s, p, int64(6))
		if got := read[int64](f, s, p, 1); got[0] != 6 {
			f.t.Errorf("read %d after refused calls; expected 6", got[0])
		}
		f.finished("the stream", s)
	}},
}

// foreignStream is a stream of no family that is known. Only its type is
// looked at.
type foreignStream struct{ driver.Stream }
