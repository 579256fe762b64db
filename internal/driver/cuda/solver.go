//go:build cuda

package cuda

// #include "blas.h"
// #cgo noescape weir_solver_new
import "C"

import (
	"sync/atomic"

	"github.com/weirgo/weir/internal/driver"
)

// solver is a cuSOLVER handle.
type solver struct {
	device    *device
	context   *context
	handle    C.uintptr_t
	destroyed atomic.Bool
}

func (d *device) NewSolver() (driver.Solver, error) {
	const op = "Device.NewSolver"
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	s := &solver{device: d, context: c}
	if err := d.checkLibrary(op, "cusolver", c, C.weir_solver_new(c.handle, &s.handle)); err != nil {
		d.release()
		return nil, err
	}
	return s, nil
}

// WorkspaceBytes is 0: operations bring their own.
func (s *solver) WorkspaceBytes() int64 { return 0 }

func (s *solver) Destroy() error {
	const op = "Solver.Destroy"
	if s.destroyed.Swap(true) {
		return s.device.alive(op)
	}
	defer s.device.release()
	if err := s.device.alive(op); err != nil {
		return err
	}
	return s.device.checkLibrary(op, "cusolver", s.context, C.weir_solver_destroy(s.context.handle, s.handle))
}

func (s *solver) SVD(driver.Stream, *driver.SVD) error {
	return s.device.unsupported("Solver.SVD", "not built yet")
}
