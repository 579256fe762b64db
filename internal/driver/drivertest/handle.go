package drivertest

import (
	"errors"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// square is a product of n×n matrices of float64, each after the other at p.
func square(p driver.Ptr, n int64) *driver.Gemm {
	step := driver.Ptr(8 * n * n)
	return &driver.Gemm{DType: dtype.Float64, M: n, N: n, K: n, Alpha: 1,
		A: p, B: p + step, C: p + 2*step, LDA: n, LDB: n, LDC: n, Batch: 1}
}

// squares gives device memory for square, with ones in A and B.
func (f *fixture) squares(d driver.Device, s driver.Stream, n int) driver.Ptr {
	f.t.Helper()
	p := f.alloc(d, int64(3*8*n*n))
	write(f, s, p, slices.Repeat([]float64{1}, 2*n*n)...)
	return p
}

var handleTests = []test{
	{"a handle reports its workspace", func(f *fixture) {
		d := f.device(0)
		s, b := f.stream(d), f.blas(d)
		p := f.squares(d, s, 8)
		if b.WorkspaceBytes() < 0 {
			f.t.Errorf("a fresh handle holds %d bytes", b.WorkspaceBytes())
		}
		f.ok(b.Gemm(s, square(p, 8)))
		f.sync("the stream", s)
		before := b.WorkspaceBytes()
		for range 10 {
			f.ok(b.Gemm(s, square(p, 8)))
		}
		f.sync("the stream", s)
		if after := b.WorkspaceBytes(); before < 0 || after != before {
			f.t.Errorf("the workspace was %d bytes and is %d after more of the same product", before, after)
		}
	}},
	{"a handle serves one stream after the other", func(f *fixture) {
		d := f.device(0)
		s1, s2, b := f.stream(d), f.stream(d), f.blas(d)
		p, q := f.squares(d, s1, 4), f.squares(d, s2, 4)
		f.rehearse(b, s1, square(p, 4))
		release := f.stall(s1)
		f.ok(b.Gemm(s1, square(p, 4)))
		f.within("a product of the same handle on another stream", func() error { return b.Gemm(s2, square(q, 4)) })
		f.pending("the first stream", s1)
		release()
		for _, c := range [][]float64{read[float64](f, s1, p+2*8*16, 16), read[float64](f, s2, q+2*8*16, 16)} {
			if !slices.Equal(c, slices.Repeat([]float64{4}, 16)) {
				f.t.Errorf("the product of ones is %v; expected fours", c)
			}
		}
	}},
	{"products of one handle on two streams do not mix", func(f *fixture) {
		const n = 96
		d := f.device(0)
		b := f.blas(d)
		streams := []driver.Stream{f.stream(d), f.stream(d)}
		var at []driver.Ptr
		for i, s := range streams {
			p := f.alloc(d, 3*2*n*n)
			f.ok(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(p, dtype.Float16, 2*n*n), Alpha: complex(float64(i+1), 0)}))
			at = append(at, p)
		}
		for range 20 {
			for i, s := range streams {
				f.ok(b.Gemm(s, &driver.Gemm{DType: dtype.Float16, M: n, N: n, K: n, Alpha: 1,
					A: at[i], B: at[i] + 2*n*n, C: at[i] + 4*n*n, LDA: n, LDB: n, LDC: n, Batch: 1}))
			}
		}
		for i, s := range streams {
			c, want := read[uint16](f, s, at[i]+4*n*n, n*n), make([]byte, 2)
			encode(dtype.Float16, want, complex(float64(n*(i+1)*(i+1)), 0))
			if !slices.Equal(bytesOf(c), slices.Repeat(want, n*n)) {
				f.t.Errorf("the products of matrices of %d are wrong", i+1)
			}
		}
	}},
	{"handles are independent", func(f *fixture) {
		d := f.device(0)
		var tasks []*task
		for range 3 {
			s, b := f.stream(d), f.blas(d)
			p := f.squares(d, s, 16)
			tasks = append(tasks, f.start("a goroutine with its own handle", func() error {
				c := make([]float64, 16*16)
				for range 10 {
					if err := errors.Join(b.Gemm(s, square(p, 16)), s.CopyOut(bytesOf(c), p+2*8*256)); err != nil {
						return err
					}
					if !slices.Equal(c, slices.Repeat([]float64{16}, 256)) {
						return errors.New("the product of ones is not sixteens")
					}
				}
				return nil
			}))
		}
		f.all(tasks)
	}},
	{"a handle destroyed after its submissions spoils none", func(f *fixture) {
		d := f.device(0)
		s, b := f.stream(d), f.blas(d)
		p := f.squares(d, s, 8)
		f.rehearse(b, s, square(p, 8))
		release := f.stall(s)
		f.ok(b.Gemm(s, square(p, 8)))
		destroy := f.startWaiting("BLAS.Destroy", b.Destroy)
		release()
		f.ok(destroy.join())
		if c := read[float64](f, s, p+2*8*64, 64); !slices.Equal(c, slices.Repeat([]float64{8}, 64)) {
			f.t.Errorf("the product of ones is %v; expected eights", c)
		}
	}},
	{"a destroyed handle takes no more work", func(f *fixture) {
		d := f.device(0)
		s, b := f.stream(d), f.blas(d)
		p := f.squares(d, s, 2)
		f.ok(b.Destroy())
		f.ok(b.Destroy())
		f.refused(b.Gemm(s, square(p, 2)), "BLAS.Gemm", d, weir.ErrClosed)
		if n := b.WorkspaceBytes(); n != 0 {
			f.t.Errorf("a destroyed handle still holds %d bytes", n)
		}
	}},
	{"a solver reports its workspace and is destroyed once", func(f *fixture) {
		d := f.device(0)
		s, err := d.NewSolver()
		if errors.Is(err, weir.ErrNotSupported) {
			f.refused(err, "Device.NewSolver", d, weir.ErrNotSupported)
			f.t.Skipf("%s has no solver", d.Name())
		}
		f.ok(err)
		if s.WorkspaceBytes() < 0 {
			f.t.Errorf("a fresh solver holds %d bytes", s.WorkspaceBytes())
		}
		f.ok(s.Destroy())
		f.ok(s.Destroy())
	}},
}
