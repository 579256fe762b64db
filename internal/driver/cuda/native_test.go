//go:build cuda

package cuda_test

import (
	"errors"
	"testing"
)

func TestHandlesShowTheLibrarysOwn(t *testing.T) {
	d := must(gpus(t).Open(0))
	blas, solver := must(d.NewBLAS()), must(d.NewSolver())
	for name, h := range map[string]any{"BLAS": blas, "solver": solver} {
		if own, ok := h.(interface{ Native() uintptr }); !ok || own.Native() == 0 {
			t.Errorf("the %s handle shows nothing", name)
		}
	}
	if err := errors.Join(blas.Destroy(), solver.Destroy()); err != nil {
		t.Error(err)
	}
}
