package tensor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirgo/weir"
)

func TestStatNPYSaysWhatLoadNPYWouldMake(t *testing.T) {
	ctx := start(t)
	for _, shape := range [][]int{{}, {0, 3}, {2, 3, 4}} {
		a, err := Zeros(ctx, Complex64, shape...)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "a.npy")
		if err := SaveNPY(ctx, path, a.T()); err != nil {
			t.Fatal(err)
		}
		info, err := StatNPY(path)
		if err != nil || info.DType != Complex64 || !slices.Equal(info.Shape, a.T().Shape()) {
			t.Errorf("%v, %v; expected complex64 %v", info, err, a.T().Shape())
		}
	}
}

func TestStatNPYRefusesWhatLoadNPYRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	if err := os.WriteFile(path, []byte("1 2 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, want := LoadNPY(start(t), path)
	_, err := StatNPY(path)
	if !errors.Is(err, weir.ErrArgument) || err.Error() != want.Error() {
		t.Errorf("%v; expected %v", err, want)
	}
}
