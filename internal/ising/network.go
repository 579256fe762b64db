package ising

import (
	"context"
	"errors"
	"math"

	"github.com/weirgo/weir/tensor"
)

// Network is the model as a tensor network on a device: one tensor a site, one
// index of extent 2 a bond, and
//
//	log Z = log(contraction) + L²·LogScale.
//
// The Boltzmann factor of a bond is a symmetric matrix exp(σσ'/T) = (W·W)(σ,σ').
// A site's tensor sums over its spin one factor W for each of its four bonds.
type Network struct {
	// LogScale is the logarithm that each tensor is divided by the exponential
	// of: 2/T, a site's share of the ground state's weight. So all elements are
	// within 0 and 1, and the contraction within 2 and 2^(L²), at any
	// temperature.
	LogScale float64
	// Operands are the sites row by row. All are the same array.
	Operands []*tensor.Array
	// Labels are the bonds of each site: up, left, down, right.
	Labels [][]int
}

// Network makes the network on ctx's device.
func (m Model) Network(ctx context.Context) (*Network, error) {
	site, err := tensor.From(ctx, m.site(), 2, 2, 2, 2)
	if err != nil {
		return nil, err
	}
	n := &Network{LogScale: 2 * m.beta}
	// Bond 2s goes down from site s, bond 2s+1 to the right.
	for row := range m.size {
		for column := range m.size {
			up := (row+m.size-1)%m.size*m.size + column
			left := row*m.size + (column+m.size-1)%m.size
			here := row*m.size + column
			n.Operands = append(n.Operands, site)
			n.Labels = append(n.Labels, []int{2 * up, 2*left + 1, 2 * here, 2*here + 1})
		}
	}
	return n, nil
}

// Plan plans the contraction.
func (n *Network) Plan(o tensor.EinsumOptions) (*tensor.Plan, error) {
	return tensor.PlanNetwork(o, n.Operands, n.Labels, nil)
}

// LogZ contracts the network and waits for the result.
func (n *Network) LogZ(ctx context.Context, o tensor.EinsumOptions) (logZ float64, err error) {
	value, err := tensor.Network(ctx, o, n.Operands, n.Labels, nil)
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

// Free gives the network's memory back.
func (n *Network) Free() error { return n.Operands[0].Free() }

// site is the tensor of one site over exp(LogScale), in row-major order. The
// eigenvalues of exp(σσ'/T) are 2·cosh(1/T) and 2·sinh(1/T), those of W their
// roots; divided by exp(1/2T) they are √(1±q) with q = exp(-2/T), which lose no
// digits at either end of the temperatures.
func (m Model) site() []float64 {
	q := math.Exp(-2 * m.beta)
	sum, difference := math.Sqrt(1+q), math.Sqrt(-math.Expm1(-2*m.beta))
	same, other := (sum+difference)/2, q/(sum+difference)
	w := [2][2]float64{{same, other}, {other, same}}
	t := make([]float64, 16)
	for i := range t {
		for spin := range 2 {
			t[i] += w[spin][i>>3] * w[spin][i>>2&1] * w[spin][i>>1&1] * w[spin][i&1]
		}
	}
	return t
}
