package host

import (
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostblas"
)

// blas is one handle: a library and the workspace that products of narrow
// types need. The workspace is used by the stream that runs the product, so
// the handle must not be given another product on another stream before.
type blas struct {
	dev     *device
	lib     *hostblas.Library
	scratch hostblas.Scratch
}

func (b *blas) Gemm(st driver.Stream, g *driver.Gemm) error {
	const op = "BLAS.Gemm"
	s, ok := st.(*stream)
	if !ok {
		return b.dev.argument(op, "a stream of another family; expected one of the host family")
	}
	if err := checkGemm(b.dev, g); err != nil {
		return err
	}
	if g.M == 0 || g.N == 0 || g.Batch == 0 {
		return b.dev.alive(op)
	}
	return s.submit(op, &work{kind: doGemm, blas: b, gemm: *g})
}

func (b *blas) run(g *driver.Gemm) { b.lib.Gemm(g, &b.scratch) }

func checkGemm(d *device, g *driver.Gemm) error {
	const op = "BLAS.Gemm"
	if !g.DType.Valid() {
		return d.argument(op, "%v; expected a known dtype", g.DType)
	}
	if g.M < 0 || g.N < 0 || g.K < 0 || g.Batch < 0 {
		return d.argument(op, "m, n, k, batch = %d, %d, %d, %d; expected 0 or more", g.M, g.N, g.K, g.Batch)
	}
	rowsA, rowsB := g.M, g.K
	if g.OpA != driver.NoTrans {
		rowsA = g.K
	}
	if g.OpB != driver.NoTrans {
		rowsB = g.N
	}
	for _, l := range []struct {
		name     string
		ld, rows int64
	}{{"a", g.LDA, rowsA}, {"b", g.LDB, rowsB}, {"c", g.LDC, g.M}} {
		if l.ld < max(1, l.rows) {
			return d.argument(op, "ld%s = %d; expected at least %d", l.name, l.ld, max(1, l.rows))
		}
	}
	if g.M > 0 && g.N > 0 && g.Batch > 0 && (g.C == 0 || g.K > 0 && (g.A == 0 || g.B == 0)) {
		return d.argument(op, "addresses a, b, c = %#x, %#x, %#x; expected none to be 0", g.A, g.B, g.C)
	}
	return nil
}

func (b *blas) WorkspaceBytes() int64 { return b.scratch.Bytes() }

func (b *blas) Destroy() error {
	b.scratch.Free()
	return nil
}

// solver is one handle of the host's dense linear algebra.
type solver struct{}

func (solver) WorkspaceBytes() int64 { return 0 }
func (solver) Destroy() error        { return nil }
