//go:build !race

// The race detector makes sync.Pool drop things at random.

package blas_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/provider/blas"
)

// TestASteadyProductAllocatesNothing: lease, product, release, on a host device
// that computes so small a one where it is submitted.
func TestASteadyProductAllocatesNothing(t *testing.T) {
	r := &rig{t: t, plan: &fault.Plan{}}
	r.start(host.New(host.Options{BLAS: hostblas.Open("gonum")}), 2)
	defer r.close()
	m := r.matrices(2, []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, make([]float64, 4))
	defer m.free()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	groups := []blas.Group{{Gemm: *m.product(0, 1, 2, 0), As: m.all(0), Bs: m.all(1), Cs: m.all(2)}}
	if n := testing.AllocsPerRun(200, func() {
		l, err := blas.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(blas.GemmGroups(&l, groups), l.Release()); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations with groups; expected none", n)
	}
	if n := testing.AllocsPerRun(200, func() {
		l, err := blas.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p := blas.Product{DType: dtype.Float64, M: 2, N: 2, K: 2, Alpha: 1, A: m.at(0), B: m.at(1), C: m.at(2), LDA: 2, LDB: 2, LDC: 2, Batch: 1}
		if err := errors.Join(blas.Gemm(&l, &p), l.Release()); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations; expected none", n)
	}
}
