package fault

import "github.com/weirgo/weir/internal/driver"

type blas struct {
	dev   *device
	inner driver.BLAS
}

func (b *blas) Unwrap() driver.BLAS   { return b.inner }
func (b *blas) WorkspaceBytes() int64 { return b.inner.WorkspaceBytes() }
func (b *blas) Destroy() error        { return b.dev.do(BLASDestroy, b.inner.Destroy) }

func (b *blas) Gemm(s driver.Stream, g *driver.Gemm) error {
	return b.dev.do(BLASGemm, func() error { return b.inner.Gemm(Unwrap(s), g) })
}

func (b *blas) GemmGroups(s driver.Stream, groups []driver.GemmGroup) error {
	return b.dev.do(BLASGemmGroups, func() error { return b.inner.GemmGroups(Unwrap(s), groups) })
}

type solver struct {
	dev   *device
	inner driver.Solver
}

func (s *solver) Unwrap() driver.Solver { return s.inner }
func (s *solver) WorkspaceBytes() int64 { return s.inner.WorkspaceBytes() }
func (s *solver) Destroy() error        { return s.dev.do(SolverDestroy, s.inner.Destroy) }

func (s *solver) SVD(st driver.Stream, p *driver.SVD) error {
	return s.dev.do(SolverSVD, func() error { return s.inner.SVD(Unwrap(st), p) })
}
