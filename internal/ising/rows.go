package ising

import (
	"context"
	"errors"
	"math"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// Rows is the contraction of the network row by row, as the transfer matrix M of
// a row of L sites: Z is the trace of M^L. Its cost is known beforehand.
type Rows struct {
	Steps     int     // operations of package flow
	FLOPs     float64 // a multiplication and an addition being two
	PeakBytes int64   // at most
}

// Rows says what LogZRows costs.
func (m Model) Rows() Rows {
	n := math.Pow(2, float64(m.size))
	// A row before it is closed takes 4·n² numbers, and as many in another order,
	// beside n² of the row before and a site in another order; after that there are
	// 9 matrices at most.
	r := Rows{PeakBytes: 8 * (int64(n)*int64(n)*9 + 16)}
	plus := func(flops float64) { r.Steps, r.FLOPs = r.Steps+1, r.FLOPs+flops }
	for k := 1; k < m.size; k++ {
		plus(2 * math.Pow(4, float64(k+1)) * 4 * 2)
		plus(0) // a view
	}
	plus(2 * n * n)
	half := m.size / 2
	for range products(half) + products(m.size-half) {
		plus(2 * n * n * n)
	}
	plus(2 * n * n)
	return r
}

// products is how many products it takes to raise a matrix to a power.
func products(exponent int) int {
	n := 0
	for ; exponent > 1; exponent /= 2 {
		n += 1 + exponent%2
	}
	return n
}

// LogZRows is LogZ of the network of the model m, contracted by package flow: all
// of it is asked for at once, and the result is waited for. asked, if not nil, is
// called as each operation has been asked for.
func (n *Network) LogZRows(ctx context.Context, m Model, asked func(done, total int)) (logZ float64, err error) {
	f := &rowFlow{ctx: ctx, asked: asked, total: m.Rows().Steps}
	site := async.Named("site", n.Operands[0])
	// row has the indices up and down, of all its sites at once, and left and right.
	row, memory := site, (*flow.Value)(nil)
	for k := 1; k < m.size; k++ {
		wider := f.step(flow.Einsum(ctx, "uldr,vres->uvldes", row, site))
		flow.Free(ctx, memory)
		width := 1 << (k + 1)
		row, memory = f.step(flow.Reshape(ctx, wider, width, 2, width, 2)), wider
	}
	matrix := f.step(flow.Einsum(ctx, "uldl->ud", row))
	flow.Free(ctx, memory)
	half := m.size / 2
	var trace *flow.Value
	if half == 0 {
		trace = f.step(flow.Einsum(ctx, "ii->", matrix))
	} else {
		trace = f.step(flow.Einsum(ctx, "ij,ji->", f.power(matrix, half), f.power(matrix, m.size-half)))
	}
	value, err := trace.Get(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, value.Free()) }()
	z, err := tensor.Item[float64](ctx, value)
	if err != nil {
		return 0, err
	}
	return math.Log(z) + float64(len(n.Operands))*n.LogScale, nil
}

// rowFlow counts what was asked for.
type rowFlow struct {
	ctx         context.Context
	asked       func(done, total int)
	done, total int
}

func (f *rowFlow) step(v *flow.Value) *flow.Value {
	if f.done++; f.asked != nil {
		f.asked(f.done, f.total)
	}
	return v
}

// power raises a matrix to a power of at least 1, by squaring.
func (f *rowFlow) power(matrix *flow.Value, exponent int) *flow.Value {
	if exponent == 1 {
		return matrix
	}
	half := f.power(matrix, exponent/2)
	p := f.step(flow.MatMul(f.ctx, half, half))
	if exponent%2 == 1 {
		p = f.step(flow.MatMul(f.ctx, p, matrix))
	}
	return p
}
