package tensor

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

func TestArraysComeBackFromNPYFiles(t *testing.T) {
	ctx := start(t)
	rng := rand.New(rand.NewPCG(9, 10))
	dir := t.TempDir()
	for _, dt := range dtype.All() {
		for round, shape := range [][]int{{}, {0}, {3}, {2, 3}, {2, 3, 4}, {2, 0, 3}} {
			a := must(view(ctx, rng, dt, shape...))
			if round%2 == 1 {
				a = must(random(ctx, rng, dt, shape...)).T()
			}
			path := filepath.Join(dir, "a.npy")
			if err := SaveNPY(ctx, path, a); err != nil {
				t.Fatal(err)
			}
			b := must(LoadNPY(ctx, path))
			if b.DType() != dt || !slices.Equal(b.Shape(), a.Shape()) || !slices.Equal(must(values(ctx, b)), must(values(ctx, a))) {
				t.Errorf("%v %v came back as %v", dt, a, b)
			}
		}
	}
}

func TestColumnMajorArraysStaySo(t *testing.T) {
	ctx := start(t)
	path := filepath.Join(t.TempDir(), "a.npy")
	if err := SaveNPY(ctx, path, must(Zeros(ctx, Float32, 3, 2)).T()); err != nil {
		t.Fatal(err)
	}
	text := must(os.ReadFile(path))
	if !strings.Contains(string(text), "'fortran_order': True") {
		t.Errorf("header %q", text[:min(len(text), 80)])
	}
	if b := must(LoadNPY(ctx, path)); !slices.Equal(b.Strides(), []int{1, 2}) {
		t.Errorf("strides %v; want column-major ones", b.Strides())
	}
}

func TestArraysComeBackFromNPZFiles(t *testing.T) {
	ctx := start(t)
	rng := rand.New(rand.NewPCG(13, 14))
	path := filepath.Join(t.TempDir(), "a.npz")
	want := NPZ{"weights": must(view(ctx, rng, Float32, 3, 4)), "bias": must(random(ctx, rng, Complex128, 4)).Conj(), "empty": must(Zeros(ctx, Int64, 0, 2)), "": must(Full(ctx, 7, Float64, 2))}
	if err := SaveNPZ(ctx, path, want); err != nil {
		t.Fatal(err)
	}
	got := must(LoadNPZ(ctx, path))
	if len(got) != len(want) {
		t.Errorf("%d arrays; want %d", len(got), len(want))
	}
	for name, a := range want {
		b := got[name]
		if b == nil || b.DType() != a.DType() || !slices.Equal(b.Shape(), a.Shape()) || !slices.Equal(must(values(ctx, b)), must(values(ctx, a))) {
			t.Errorf("%s came back as %v", name, b)
		}
	}
}

func TestABadNPZFileLeavesNoArray(t *testing.T) {
	ctx := start(t)
	path := filepath.Join(t.TempDir(), "a.npz")
	a := must(Full(ctx, 3, Float64, 1000))
	if err := SaveNPZ(ctx, path, NPZ{"a": a, "b": a}); err != nil {
		t.Fatal(err)
	}
	text := must(os.ReadFile(path))
	at := strings.LastIndex(string(text[:len(text)-400]), "\x40") // within the second array's elements
	text[at]++
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	before := a.memory().Stats().Buffers
	got, err := LoadNPZ(ctx, path)
	if !errors.Is(err, weir.ErrArgument) || got != nil {
		t.Errorf("%v, %v; want a refusal", got, err)
	}
	if after := a.memory().Stats().Buffers; after != before {
		t.Errorf("%d buffers were left", after-before)
	}
}

func TestAFailedSaveLeavesTheOldFile(t *testing.T) {
	ctx := start(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.npy")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := must(Zeros(ctx, Float32, 8))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := SaveNPY(cancelled, path, a); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want context.Canceled", err)
	}
	if text := must(os.ReadFile(path)); string(text) != "old" {
		t.Errorf("the file now holds %q", text)
	}
	if entries := must(os.ReadDir(dir)); len(entries) != 1 {
		t.Errorf("%d files in the folder; want 1", len(entries))
	}
}

func TestAFailedLoadLeavesNoArray(t *testing.T) {
	ctx := start(t)
	before := must(Zeros(ctx, Float32, 1)).memory().Stats().Buffers
	path := filepath.Join(t.TempDir(), "a.npy")
	if err := os.WriteFile(path, []byte("no array"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadNPY(ctx, path)
	if !errors.Is(err, weir.ErrArgument) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v; want a refusal that names the file", err)
	}
	if after := must(Zeros(ctx, Float32, 1)).memory().Stats().Buffers; after != before+1 {
		t.Errorf("%d buffers were left", after-before-1)
	}
}
