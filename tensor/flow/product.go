package flow

import (
	"context"

	"github.com/weirgo/weir/tensor"
)

// gatherer is a product, which can be launched together with others. Gather puts it
// among them and answers what it will make; ok is false if it is to be launched by
// itself.
type gatherer interface {
	operation
	Gather(ctx context.Context, with tensor.Products, in []*tensor.Array) (out *tensor.Array, ok bool)
}

// matrixProduct is flow.MatMul.
type matrixProduct struct{ opts []tensor.ProductOption }

func (*matrixProduct) Name() string { return "flow.MatMul" }

func (p *matrixProduct) Launch(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
	if err := arrays(p.Name(), in); err != nil {
		return nil, err
	}
	return tensor.MatMul(ctx, in[0], in[1], p.opts...)
}

func (p *matrixProduct) Gather(ctx context.Context, with tensor.Products, in []*tensor.Array) (*tensor.Array, bool) {
	return with.MatMul(ctx, in[0], in[1], p.opts...)
}

// gemm is flow.GemmInto. Its last input is what it changes.
type gemm struct {
	alpha, beta complex128
	opts        []tensor.ProductOption
}

func (*gemm) Name() string { return "flow.GemmInto" }

func (g *gemm) Launch(ctx context.Context, in []*tensor.Array) (*tensor.Array, error) {
	if err := arrays(g.Name(), in); err != nil {
		return nil, err
	}
	return in[2], tensor.GemmInto(ctx, g.alpha, in[0], in[1], g.beta, in[2], g.opts...)
}

func (g *gemm) Gather(_ context.Context, with tensor.Products, in []*tensor.Array) (*tensor.Array, bool) {
	return in[2], with.GemmInto(g.alpha, in[0], in[1], g.beta, in[2], g.opts...)
}
