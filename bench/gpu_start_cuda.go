//go:build cuda

package bench

import (
	"errors"
	"time"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// leftOver is how many bytes of the device may be in use afterwards and were not
// before: the driver takes memory for itself in pieces of that size.
const leftOver = 2 << 20

func gpuStartCases(env Env) []Case {
	c := Case{Name: "resources made and closed / streams and events alone", Unit: Microseconds}
	return []Case{onGPU(env, c, 1, func(x *rig) (*Trial, error) {
		s := &startUp{x: x}
		return &Trial{
			Value: each(s.once), Check: s.check,
			Floor: func(n int) (took time.Duration, err error) {
				for range n {
					d, err := floor.Start(x.r.Device().Ordinal(), stream.DefaultCount)
					if err != nil {
						return 0, err
					}
					took += d
				}
				return took, nil
			},
			Figures: func(Result) []Figure {
				return []Figure{{"start", float64(s.started), "bytes"}, {"first product", float64(s.used), "bytes"},
					{"left", float64(s.left), "bytes"}}
			},
		}, nil
	})}
}

// startUp makes resources beside the installed ones.
type startUp struct {
	x                   *rig
	started, used, left int64 // bytes of the device that starting took, the first product took, closing left
}

func (s *startUp) once() error {
	r, err := runtime.NewResources(s.x.r.Device(), runtime.ResourceOptions{})
	if err != nil {
		return err
	}
	return r.Close()
}

// check looks at the device's memory during one life; another comes before, after
// which the libraries' code is loaded.
func (s *startUp) check() error {
	if err := s.life(); err != nil {
		return err
	}
	if err := s.life(); err != nil {
		return err
	}
	if s.left > leftOver {
		return wrong("closing left %d bytes of the device in use; expected at most %d", s.left, leftOver)
	}
	return nil
}

func (s *startUp) life() error {
	before, err := s.inUse()
	if err != nil {
		return err
	}
	r, err := runtime.NewResources(s.x.r.Device(), runtime.ResourceOptions{})
	if err != nil {
		return err
	}
	started, err := s.inUse()
	if err != nil {
		return errors.Join(err, r.Close())
	}
	workspace, err := firstProduct(s.x, r)
	used, uerr := s.inUse()
	if err := errors.Join(err, uerr, r.Close()); err != nil {
		return err
	}
	after, err := s.inUse()
	if err != nil {
		return err
	}
	s.started, s.used, s.left = started-before, used-started, after-before
	if handles := workspace * stream.DefaultCount; s.started >= handles || s.used < handles {
		return wrong("starting took %d bytes of the device and the first product %d; expected less than the %d of %d handles, and no less",
			s.started, s.used, handles, stream.DefaultCount)
	}
	return nil
}

// firstProduct uses the handles for the first time, and answers how many bytes
// one holds.
func firstProduct(x *rig, r *runtime.Resources) (workspace int64, err error) {
	m, err := buffer.Of(r)
	if err != nil {
		return 0, err
	}
	b, err := m.New(1024)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Free()) }()
	l, err := blas.AcquireOn(x.ctx, r)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Stream().Synchronize(x.ctx), l.Release()) }()
	h, err := l.Value()
	if err != nil {
		return 0, err
	}
	acc := buffer.Begin(l.Stream())
	p := acc.Write(b)
	if acc.Err() != nil {
		return 0, acc.End()
	}
	err = blas.Gemm(&l, &blas.Product{DType: dtype.Float32, M: 1, N: 1, K: 1, Alpha: 1, Batch: 1,
		A: p + 256, B: p + 512, C: p, LDA: 1, LDB: 1, LDC: 1})
	return h.WorkspaceBytes(), errors.Join(err, acc.End())
}

func (s *startUp) inUse() (int64, error) {
	if err := s.x.gpu.Synchronize(); err != nil {
		return 0, err
	}
	free, total, err := s.x.gpu.Memory()
	return total - free, err
}
