package hostblas

import (
	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/hostmem"
)

// scale is C = beta·C, for products that read neither A nor B. beta = 0 clears
// C without reading it.
func scale(p product) {
	switch {
	case p.beta == 1:
	case p.beta == 0:
		for j := range p.n {
			clear(hostmem.Bytes(offset(p.c, j*p.ldc, p.dt.Size()), p.m*p.dt.Size()))
		}
	case p.dt == dtype.Float32:
		scaleColumns(p, float32(real(p.beta)))
	case p.dt == dtype.Float64:
		scaleColumns(p, real(p.beta))
	case p.dt == dtype.Complex64:
		scaleColumns(p, complex64(p.beta))
	case p.dt == dtype.Complex128:
		scaleColumns(p, p.beta)
	case p.dt == dtype.Int32:
		scaleColumns(p, int32(int64(real(p.beta))))
	case p.dt == dtype.Int64:
		scaleColumns(p, int64(real(p.beta)))
	case p.dt == dtype.Float16:
		for j := range p.n {
			c := column[float16.Float16](p.c, j, p.ldc, p.m)
			for i := range c {
				c[i] = float16.Fromfloat32(float32(real(p.beta)) * c[i].Float32())
			}
		}
	case p.dt == dtype.BFloat16:
		for j := range p.n {
			c := column[dtype.BF16](p.c, j, p.ldc, p.m)
			for i := range c {
				c[i] = dtype.ToBF16(float32(real(p.beta)) * c[i].Float32())
			}
		}
	}
}

func scaleColumns[T number](p product, beta T) {
	for j := range p.n {
		c := column[T](p.c, j, p.ldc, p.m)
		for i := range c {
			c[i] *= beta
		}
	}
}
