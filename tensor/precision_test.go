package tensor

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
)

// listener is the host family, noting the compute modes that its BLAS handles are
// asked for.
type listener struct {
	driver.Family
	device driver.Device

	mu    sync.Mutex // guards modes
	modes []driver.Compute
}

func (l *listener) Open(ordinal int) (driver.Device, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.device != nil {
		return l.device, nil
	}
	d, err := l.Family.Open(ordinal)
	if err == nil {
		l.device = listening{d, l}
	}
	return l.device, err
}

type listening struct {
	driver.Device
	l *listener
}

func (d listening) NewBLAS() (driver.BLAS, error) {
	b, err := d.Device.NewBLAS()
	return listeningBLAS{b, d.l}, err
}

type listeningBLAS struct {
	driver.BLAS
	l *listener
}

func (b listeningBLAS) Gemm(s driver.Stream, g *driver.Gemm) error {
	b.l.hear(g.Compute)
	return b.BLAS.Gemm(s, g)
}

func (b listeningBLAS) GemmGroups(s driver.Stream, groups []driver.GemmGroup) error {
	for i := range groups {
		b.l.hear(groups[i].Compute)
	}
	return b.BLAS.GemmGroups(s, groups)
}

func (l *listener) hear(c driver.Compute) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.modes = append(l.modes, c)
}

func TestProductsAskForTheirPrecision(t *testing.T) {
	l := &listener{Family: host.New(host.Options{HandOver: true})}
	ctx := startOn(t, []driver.Family{l})
	square := must(Full(ctx, 1, Float32, 3, 3))
	stepped := must(must(Full(ctx, 1, Float32, 6, 6)).Slice(Steps(0, End, 2), Steps(0, End, 2))) // neither axis is contiguous
	out := must(Zeros(ctx, Float32, 3, 3))
	other := must(Zeros(ctx, Float32, 3, 3))
	for mode, p := range []Precision{Exact, FastTF32, FastBF16, FastFP16} {
		for name, c := range map[string]struct {
			call  func() error
			count int
		}{
			"MatMul":            {func() error { return second(MatMul(ctx, square, square, p)) }, 1},
			"MatMul of vectors": {func() error { return second(MatMul(ctx, square, must(square.Slice(At(0))), p)) }, 1},
			"GemmInto":          {func() error { return GemmInto(ctx, 1, square, stepped, 0, out, p) }, 1},
			"GemmInto by a copy": {func() error {
				return GemmInto(ctx, 1, square, square, 0, must(must(Zeros(ctx, Float32, 6, 6)).Slice(Steps(0, End, 2), Steps(0, End, 2))), p)
			}, 1},
			"GemmBatchInto": {func() error {
				return GemmBatchInto(ctx, 1, []*Array{square, stepped}, []*Array{square, square}, 0, []*Array{out, other}, p)
			}, 2},
			"Einsum": {func() error {
				return second(EinsumWith(ctx, EinsumOptions{Precision: p}, "ij,jk,kl", square, square, square))
			}, 2},
			"the last of several options": {func() error { return GemmInto(ctx, 1, square, square, 0, out, FastFP16, Exact, p) }, 1},
		} {
			l.modes = nil
			if err := c.call(); err != nil {
				t.Errorf("%s with %v: %v", name, p, err)
			}
			if want := slices.Repeat([]driver.Compute{driver.Compute(mode)}, c.count); !slices.Equal(l.modes, want) {
				t.Errorf("%s with %v asks for %v; want %v", name, p, l.modes, want)
			}
		}
	}
	l.modes = nil
	must(MatMul(ctx, square, square))
	must(Einsum(ctx, "ij,jk", square, square))
	if !slices.Equal(l.modes, []driver.Compute{driver.ComputeExact, driver.ComputeExact}) {
		t.Errorf("without a precision, products ask for %v", l.modes)
	}
}

func TestAPlanRunsWithItsOwnPrecision(t *testing.T) {
	l := &listener{Family: host.New(host.Options{HandOver: true})}
	ctx := startOn(t, []driver.Family{l})
	a := must(Full(ctx, 1, Float32, 3, 3))
	fast := must(PlanEinsum(EinsumOptions{Precision: FastTF32}, "ij,jk->ki", a, a))
	exact := must(PlanEinsum(EinsumOptions{}, "ij,jk->ki", a, a)) // the same plan otherwise
	must(fast.Run(ctx, a, a))
	must(exact.Run(ctx, a, a))
	if !slices.Equal(l.modes, []driver.Compute{driver.ComputeTF32, driver.ComputeExact}) {
		t.Errorf("the plans ask for %v", l.modes)
	}
}

func TestPrecisionsHaveNames(t *testing.T) {
	if got := fmt.Sprint(Exact, FastTF32, FastBF16, FastFP16, Precision(7)); got != "exact TF32 BF16 FP16 Precision(7)" {
		t.Errorf("they are %s", got)
	}
}
