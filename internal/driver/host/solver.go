package host

import (
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostblas"
)

// solver is one handle of dense linear algebra: the library whose LAPACK is
// used. Each decomposition has a workspace of its own from the submission until
// it is done, so that memory that is not there is an error of the call, and
// decompositions on several streams do not wait for each other.
type solver struct {
	dev       *device
	lib       *hostblas.Library
	bytes     atomic.Int64 // of what is submitted and not done
	destroyed atomic.Bool
}

func (d *device) NewSolver() (driver.Solver, error) {
	if err := d.alive("Device.NewSolver"); err != nil {
		return nil, err
	}
	return &solver{dev: d, lib: d.blasLibrary()}, nil
}

// decomposition is one that was submitted.
type decomposition struct {
	solver *solver
	svd    driver.SVD
	at     driver.Ptr // of the workspace, if it has any
	bytes  int64
}

func (h *solver) SVD(st driver.Stream, p *driver.SVD) error {
	const op = "Solver.SVD"
	s, err := h.dev.ours(op, st)
	if err != nil {
		return err
	}
	if err := driver.CheckSVD(op, h.dev.name, p); err != nil {
		return err
	}
	if h.destroyed.Load() {
		return &weir.Error{Op: op, Device: h.dev.name, Kind: weir.KindLogic, Message: "the handle was destroyed", Err: weir.ErrClosed}
	}
	if err := s.usable(op); err != nil {
		return err
	}
	d := &decomposition{solver: h, svd: *p}
	if bytes := h.lib.SVDWorkspace(p); bytes > 0 {
		if d.bytes, err = h.dev.rounded(op, bytes); err != nil {
			return err
		}
		if d.at, err = h.dev.take(op, d.bytes); err != nil {
			return err
		}
		h.bytes.Add(d.bytes)
	}
	if err := s.submit(op, &work{kind: doSVD, svd: d}); err != nil {
		d.let()
		return err
	}
	return nil
}

func (d *decomposition) run() {
	defer d.let()
	d.solver.lib.SVD(&d.svd, uintptr(d.at))
}

// let gives the workspace back.
func (d *decomposition) let() {
	if d.bytes > 0 {
		_ = d.solver.dev.giveBack(d.at, d.bytes) // fails only for memory that was never mapped
		d.solver.bytes.Add(-d.bytes)
	}
}

func (h *solver) WorkspaceBytes() int64 { return h.bytes.Load() }

// Destroy lets what was submitted finish.
func (h *solver) Destroy() error {
	h.destroyed.Store(true)
	return h.dev.alive("Solver.Destroy")
}
