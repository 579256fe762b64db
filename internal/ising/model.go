package ising

import (
	"math"

	"github.com/weirgo/weir"
)

const (
	// MaxSize is the largest L. The contraction is at most 2^(L²), which must be
	// a float64, and takes about 2^(2L+6) bytes: no machine reaches it.
	MaxSize = 24
	// MinTemperature and MaxTemperature leave room for β·L² and T·log Z among
	// the float64.
	MinTemperature = 1e-300
	MaxTemperature = 1e300
)

// CriticalTemperature is Onsager's 2/ln(1+√2), where the infinite lattice
// orders.
var CriticalTemperature = 2 / math.Log1p(math.Sqrt2)

// Model is the torus of Size×Size spins at a temperature.
type Model struct {
	size int
	beta float64 // 1/T
}

// New makes a model with size in 1 … MaxSize and temperature in MinTemperature
// … MaxTemperature.
func New(size int, temperature float64) (Model, error) {
	if size < 1 || size > MaxSize {
		return Model{}, weir.Argf("ising", "size %d; expected 1 to %d", size, MaxSize)
	}
	if !(temperature >= MinTemperature && temperature <= MaxTemperature) { // a NaN too
		return Model{}, weir.Argf("ising", "temperature %v; expected %v to %v", temperature, MinTemperature, MaxTemperature)
	}
	return Model{size, 1 / temperature}, nil
}

// Sites is the number of spins.
func (m Model) Sites() int { return m.size * m.size }

// FreeEnergy is the free energy per site, -T·log Z/L².
func (m Model) FreeEnergy(logZ float64) float64 {
	return -logZ / m.beta / float64(m.Sites())
}
