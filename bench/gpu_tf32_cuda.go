//go:build cuda

package bench

import (
	"errors"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/tensor"
)

// matMulTF32 is MatMul of square matrices in TF32, by the leaf that it uses.
func matMulTF32(x *rig, a, b *tensor.Array) (*tensor.Array, error) {
	c, err := tensor.Empty(x.ctx, a.DType(), a.Shape()...)
	if err != nil {
		return nil, err
	}
	l, err := blas.AcquireOn(x.ctx, x.r)
	if err != nil {
		return nil, errors.Join(err, c.Free())
	}
	err = errors.Join(squareProduct(&l, driver.ComputeTF32, a, b, c), l.Release())
	if err != nil {
		return nil, errors.Join(err, c.Free())
	}
	return c, nil
}

// squareProduct submits C = A·B of row-major square matrices of float32 on a
// lease. To a column-major BLAS they are transposed: Cᵀ = Bᵀ·Aᵀ.
func squareProduct(l *blas.Lease, compute driver.Compute, a, b, c *tensor.Array) error {
	n := int64(a.Shape()[0])
	acc := buffer.Begin(l.Stream())
	p := blas.Product{DType: a.DType(), Compute: compute, M: n, N: n, K: n, Alpha: 1, Batch: 1, LDA: n, LDB: n, LDC: n}
	p.A, p.B, p.C = acc.Read(b.Buffer()), acc.Read(a.Buffer()), acc.Write(c.Buffer())
	if acc.Err() != nil {
		return acc.End()
	}
	return errors.Join(blas.Gemm(l, &p), acc.End())
}
