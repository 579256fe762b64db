package tensor

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
)

// TestFreedArraysAreRefusedByOperationsWithoutElements, which open no access that
// would refuse them.
func TestFreedArraysAreRefusedByOperationsWithoutElements(t *testing.T) {
	ctx := start(t)
	freed := func(dt DType, shape ...int) *Array {
		a := must(Zeros(ctx, dt, shape...))
		if err := a.Free(); err != nil {
			t.Fatal(err)
		}
		return a
	}
	none, terms, complexNone, full := freed(Float64, 0, 2), freed(Float64, 2, 0), freed(Complex64, 0, 2), freed(Float64, 2, 2)
	live, liveNone := must(Zeros(ctx, Float64, 2, 2)), must(Zeros(ctx, Float64, 0, 2))
	other := must(runtime.Enumerate())[1]
	second := func(_ any, err error) error { return err }
	for name, use := range map[string]func(context.Context) error{
		"GemmInto":               func(ctx context.Context) error { return GemmInto(ctx, 1, liveNone, live, 0, none) },
		"GemmInto, no terms":     func(ctx context.Context) error { return GemmInto(ctx, 1, terms, liveNone, 1, live) },
		"GemmInto, full operand": func(ctx context.Context) error { return GemmInto(ctx, 1, liveNone, full, 1, liveNone) },
		"GemmBatchInto": func(ctx context.Context) error {
			return GemmBatchInto(ctx, 1, []*Array{liveNone}, []*Array{live}, 0, []*Array{none})
		},
		"MatMul":               func(ctx context.Context) error { return second(MatMul(ctx, none, live)) },
		"MatMul, no terms":     func(ctx context.Context) error { return second(MatMul(ctx, terms, liveNone)) },
		"MatMul, full operand": func(ctx context.Context) error { return second(MatMul(ctx, liveNone, full)) },
		"Einsum":               func(ctx context.Context) error { return second(Einsum(ctx, "ij->ji", none)) },
		"Einsum, a sum":        func(ctx context.Context) error { return second(Einsum(ctx, "ij->j", none)) },
		"Einsum, a product":    func(ctx context.Context) error { return second(Einsum(ctx, "ij,jk->ik", liveNone, full)) },
		"SVD":                  func(ctx context.Context) error { _, _, _, err := SVD(ctx, none); return err },
		"SetData":              func(ctx context.Context) error { return SetData(ctx, none, []float64{}) },
		"Data":                 func(ctx context.Context) error { return second(Data[float64](ctx, none)) },
		"Data of a conjugate":  func(ctx context.Context) error { return second(Data[complex64](ctx, complexNone.Conj())) },
		"DataInto":             func(ctx context.Context) error { return DataInto(ctx, []float64{}, none) },
		"CopyInto":             func(ctx context.Context) error { return CopyInto(ctx, liveNone, none) },
		"Copy":                 func(ctx context.Context) error { return second(Copy(ctx, none)) },
		"AsType":               func(ctx context.Context) error { return second(AsType(ctx, none, Float32)) },
		"Contiguous":           func(ctx context.Context) error { return second(Contiguous(ctx, none)) },
		"Reshape":              func(ctx context.Context) error { return second(Reshape(ctx, none, 0)) },
		"To":                   func(ctx context.Context) error { return second(To(ctx, none, other)) },
		"Format":               func(ctx context.Context) error { return second(Format(ctx, none)) },
		"SaveNPY":              func(ctx context.Context) error { return SaveNPY(ctx, filepath.Join(t.TempDir(), "a.npy"), none) },
		"SaveNPY of a conjugate": func(ctx context.Context) error {
			return SaveNPY(ctx, filepath.Join(t.TempDir(), "a.npy"), complexNone.Conj())
		},
		"GemmInto of a view": func(ctx context.Context) error { return GemmInto(ctx, 1, liveNone, live, 0, none.T().T()) },
	} {
		if err := use(ctx); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("%s answers %v; expected ErrClosed", name, err)
		}
	}
}
