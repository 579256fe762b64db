package kit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weirgo/weir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func compiler(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no gcc on Linux")
	}
	return []string{"gcc", "-Werror"}
}

// content lists what is below a folder.
func content(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestAKitHoldsHeadersAndArchivesAndNothingElseIsLeft(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "a folder", "to make")
	k, err := Make(t.Context(), parent, runtime.GOARCH, compiler(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"include/cuda.h", "include/weir_lazy.h", "lib/libcublas.a", "lib/libcuda.a", "lib/libcusolver.a"}
	if diff := cmp.Diff(want, content(t, k.Root())); diff != "" {
		t.Error(diff)
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != filepath.Base(k.Root()) || !strings.HasPrefix(k.Root(), parent) {
		t.Errorf("got %v beside %s", entries, k.Root())
	}
	if info, err := os.Stat(k.Root()); err != nil || info.Mode().Perm()&0o055 != 0o055 {
		t.Errorf("others cannot read it: %v %v", info.Mode(), err)
	}
}

func TestAKitThatIsThereNeedsNoCompiler(t *testing.T) {
	parent := t.TempDir()
	first, err := Make(t.Context(), parent, runtime.GOARCH, compiler(t))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Make(t.Context(), parent, runtime.GOARCH, []string{"/nonexistent/compiler"})
	if err != nil || again != first {
		t.Errorf("got %v %v; expected %v", again, err, first)
	}
}

func TestKitsMadeAtOnceAreOne(t *testing.T) {
	parent, cc := t.TempDir(), compiler(t)
	var group sync.WaitGroup
	kits, errs := make([]Kit, 3), make([]error, 3)
	for i := range kits {
		group.Go(func() { kits[i], errs[i] = Make(t.Context(), parent, runtime.GOARCH, cc) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if kits[0] != kits[1] || kits[1] != kits[2] {
		t.Errorf("got %v", kits)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("got %v %v", entries, err)
	}
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	_, err := Make(t.Context(), parent, runtime.GOARCH, []string{"/nonexistent/compiler"})
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "lazy.Build: /nonexistent/compiler -print-prog-name=ar") {
		t.Errorf("got %v", err)
	}
	_, err = Make(t.Context(), parent, "riscv64", nil)
	if !errors.Is(err, weir.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
		t.Errorf("got %v %v", entries, err)
	}
}
