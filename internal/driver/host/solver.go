package host

import (
	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// solver is one handle of the host's dense linear algebra.
type solver struct{}

func (solver) SVD(driver.Stream, *driver.SVD) error {
	return &weir.Error{Op: "Solver.SVD", Err: weir.ErrNotSupported}
}
func (solver) WorkspaceBytes() int64 { return 0 }
func (solver) Destroy() error        { return nil }
