package hostblas

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// write puts a file of a test in its place.
func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// ownHeader is the beginning of this test's executable.
func ownHeader(t *testing.T) []byte {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the headers of libraries are read on Linux only")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 4096)
	if _, err := io.ReadFull(f, head); err != nil {
		t.Fatal(err)
	}
	return head
}

// expectGonum sees that l is gonum, and that its reason holds each text.
func expectGonum(t *testing.T, l *Library, texts ...string) {
	t.Helper()
	if l.Name() != "gonum" || l.Path() != "" {
		t.Errorf("the library is %s at %q; expected gonum", l.Name(), l.Path())
	}
	for _, text := range texts {
		if !strings.Contains(l.Reason(), text) {
			t.Errorf("the reason is %q; expected it to say %q", l.Reason(), text)
		}
	}
}

func TestALibraryThatDoesNotLoadIsReplacedByGonumWithItsReason(t *testing.T) {
	dir := t.TempDir()
	machine := func(m elf.Machine, class elf.Class) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			head := ownHeader(t)
			head[elf.EI_CLASS] = byte(class)
			binary.LittleEndian.PutUint16(head[elf.EI_NIDENT+2:], uint16(m))
			return head
		}
	}
	text := func(*testing.T) []byte { return []byte("# not a library, although it is named like one\n") }
	for _, c := range []struct {
		name    string
		content func(*testing.T) []byte
		want    string
	}{
		{"missing.so", nil, "no such file"},
		{"text.so", text, "not a shared library"},
		{"empty.so", func(*testing.T) []byte { return nil }, "not a shared library"},
		{"s390.so", machine(elf.EM_S390, elf.ELFCLASS64), "another processor (EM_S390)"},
		{"narrow.so", machine(elf.EM_386, elf.ELFCLASS32), "another kind of processor (ELFCLASS32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.name)
			if c.content != nil {
				write(t, path, c.content(t))
			}
			expectGonum(t, Open(path), path, c.want)
		})
	}
	t.Run("folder", func(t *testing.T) { expectGonum(t, Open(dir), "a folder") })
	t.Run("name", func(t *testing.T) { expectGonum(t, Open("libweir-nowhere.so"), "libweir-nowhere.so", notFound) })
	t.Run("word", func(t *testing.T) { expectGonum(t, Open("cublas"), `"cublas"`, "auto, openblas and gonum") })
}

func TestALibraryWithoutTheSymbolsIsReplacedByGonum(t *testing.T) {
	libc := map[string]string{"linux": "libc.so.6", "darwin": "libSystem.B.dylib"}[runtime.GOOS]
	if _, err := openShared(libc); err != nil {
		t.Skipf("no library that every program has is known here: %v", err)
	}
	expectGonum(t, Open(libc), libc, "lacks symbol sgemm_")
}

func TestTheSearchSaysWhatItTried(t *testing.T) {
	dir := t.TempDir()
	none := places{names: []string{"libweir-nowhere.so"}}
	expectGonum(t, choose("auto", none), "no OpenBLAS was found", "libweir-nowhere.so: not found")
	expectGonum(t, choose("", none), "no OpenBLAS was found")
	expectGonum(t, choose(" OpenBLAS ", none), "OpenBLAS is asked for", "libweir-nowhere.so: not found")
	expectGonum(t, choose("gonum", none), "gonum is asked for")

	none.dir = filepath.Join(dir, "nowhere")
	expectGonum(t, choose("auto", none), "WEIR_BLAS_DIR="+none.dir, "no such folder")
	none.dir = dir
	expectGonum(t, choose("auto", none), "WEIR_BLAS_DIR="+dir, "scipy_openblas64/lib")
	none.dir = write(t, filepath.Join(dir, "file"), nil)
	expectGonum(t, choose("auto", none), "not a folder")

	name := map[string]string{"darwin": "libopenblas.dylib"}[runtime.GOOS]
	if name == "" {
		name = "libopenblas.so.0"
	}
	path := write(t, filepath.Join(dir, "wheel", "scipy_openblas32", "lib", name), []byte("text"))
	none.dir = filepath.Join(dir, "wheel")
	expectGonum(t, choose("auto", none), path)
}

func TestAFolderThatIsNamedComesFirstAndMayBeThatOfAWheel(t *testing.T) {
	found := anOpenBLAS(t, 1)
	for _, layout := range []string{"", "lib", "scipy_openblas32/lib", "scipy_openblas64/lib"} {
		dir := t.TempDir()
		link := filepath.Join(dir, filepath.FromSlash(layout), filepath.Base(found.path))
		if err := os.MkdirAll(filepath.Dir(link), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found.path, link); err != nil {
			t.Skipf("no links here: %v", err)
		}
		l := choose("auto", places{dir: dir, names: usualNames()})
		if l.Name() != "OpenBLAS" || l.Path() != found.path || !strings.Contains(l.Reason(), link) {
			t.Errorf("%s at %s because %q; expected OpenBLAS at %s, found as %s", l.Name(), l.Path(), l.Reason(), found.path, link)
		}
		if !strings.Contains(l.Version(), "OpenBLAS") {
			t.Errorf("the version is %q; expected OpenBLAS's own text", l.Version())
		}
	}
}

func TestALibraryOpenedTwiceIsOne(t *testing.T) {
	found := anOpenBLAS(t, 1)
	a, b := Open(found.path), Open(found.path)
	if a.ext != found.ext || b.ext != found.ext {
		t.Error("one file gave several libraries, each with its own idea of the number of threads")
	}
}

func TestDefaultIsChosenOnceFromTheEnvironment(t *testing.T) {
	t.Setenv("WEIR_BLAS", "gonum")
	first := Default()
	t.Setenv("WEIR_BLAS", "auto")
	if Default() != first || first.Name() != "gonum" || first.Threads() < 1 {
		t.Errorf("Default is %s with %d cores, then %s; expected gonum both times", first.Name(), first.Threads(), Default().Name())
	}
}

// withoutRegistry lets a test load a library again under other symbols.
func withoutRegistry(t *testing.T) {
	loaded.mu.Lock()
	defer loaded.mu.Unlock()
	old := loaded.libraries
	loaded.libraries = nil
	t.Cleanup(func() {
		loaded.mu.Lock()
		defer loaded.mu.Unlock()
		loaded.libraries = old
	})
}

// plainSymbols finds a library's routines under their classical names.
func plainSymbols(e *external) map[string]uintptr {
	return map[string]uintptr{"sgemm_": e.gemm[0], "dgemm_": e.gemm[1], "cgemm_": e.gemm[2], "zgemm_": e.gemm[3]}
}

func TestABLASThatIsNotOpenBLASIsUsedOnlyWhereItIsNamed(t *testing.T) {
	found := anOpenBLAS(t, 1)
	withoutRegistry(t)
	symbols := plainSymbols(found.ext)
	find := func(name string) uintptr { return symbols[name] }
	if _, err := adopt(find, false); err == nil || !strings.Contains(err.Error(), "openblas_set_num_threads") {
		t.Errorf("adopted in a search: %v; expected a refusal that names openblas_set_num_threads", err)
	}
	e, err := adopt(find, true)
	if err != nil {
		t.Fatal(err)
	}
	if l := useExternal(e, "libblas.so", ""); l.Name() != "BLAS" || l.Path() == "" || e.threads != 1 || e.limit != 1<<30 {
		t.Errorf("%s at %q with %d threads and extents up to %d; expected a BLAS of one thread and 32-bit extents", l.Name(), l.Path(), e.threads, e.limit)
	}
}

func TestALibraryThatLacksARoutineOrComputesWronglyIsRefused(t *testing.T) {
	symbols := map[string]uintptr{"sgemm_": 1, "dgemm_": 1, "cgemm_": 1}
	find := func(name string) uintptr { return symbols[name] }
	if _, err := adopt(find, true); err == nil || !strings.Contains(err.Error(), "lacks symbol zgemm_") {
		t.Errorf("adopted without zgemm_: %v", err)
	}
	found := anOpenBLAS(t, 1)
	withoutRegistry(t)
	symbols = plainSymbols(found.ext)
	symbols["dgemm_"] = symbols["sgemm_"]
	if _, err := adopt(find, true); err == nil || !strings.Contains(err.Error(), "float64 matrices wrongly") {
		t.Errorf("adopted with a routine of another type: %v", err)
	}
}

func TestTheKindsOfNamesAreTold(t *testing.T) {
	for prefix, wide := range map[string]bool{"?gemm_": false, "?gemm_64_": true, "scipy_?gemm_": false, "scipy_?gemm_64_": true} {
		functions := strings.Replace(strings.TrimSuffix(prefix, "_"), "?gemm", "openblas_set_num_threads", 1)
		functions = strings.Replace(functions, "_64", "64_", 1)
		s, err := findSymbols(func(name string) uintptr {
			for i, letter := range []string{"s", "d", "c", "z"} {
				if name == strings.Replace(prefix, "?", letter, 1) {
					return uintptr(i + 1)
				}
			}
			if name == functions {
				return 9
			}
			return 0
		})
		if err != nil || s.gemm != [4]uintptr{1, 2, 3, 4} || s.wide != wide || s.setNumThreads != 9 {
			t.Errorf("%s: %+v, %v; expected all four, wide %v, and %s", prefix, s, err, wide, functions)
		}
	}
}
