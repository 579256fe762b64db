package cudaenv

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
)

// documented are the commands that docs/cuda.md tells the user of a module that
// imports Weir.
func documented(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/cuda.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n## In a module of your own that imports Weir\n.*?```\n(.*?)```\n").FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/cuda.md has no commands for a module that imports Weir")
	}
	return string(m[1])
}

// user copies testdata/user into a module of its own beside Weir, which has
// nothing but a requirement of Weir, and does there what is documented, in a
// shell that has none of the variables yet.
func user(t *testing.T) (program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a program with cgo")
	}
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no gcc on Linux")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/user/main.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/user\n\ngo 1.26\n\nrequire github.com/weirgo/weir v0.0.0\n\nreplace github.com/weirgo/weir => " + root + "\n",
		"main.go": string(source),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find(t.Context(), dir, os.Environ()); errors.Is(err, weir.ErrNotSupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}

	// What the command needs is in the module cache before: Weir, which the
	// module finds here, has no proxy.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/weir")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), "sh", "-e", "-c", documented(t))
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains([]string{"CGO_ENABLED", "CGO_CFLAGS", "CGO_LDFLAGS", "WEIR_CUDA_LIBRARY_PATH"}, name)
	})
	cmd.Env = append(cmd.Env, "GOPROXY=off", "GOSUMDB=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", documented(t), err, out)
	}
	return filepath.Join(dir, "user")
}

// start runs the program with a library path, and answers its lines by what
// stands before the colon.
func start(t *testing.T, program, path string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "WEIR_CUDA_LIBRARY_PATH="+path, "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		name, rest, _ := strings.Cut(line, ": ")
		said[name] = rest
	}
	return said
}

func TestAModuleThatUsesWeirBuildsWithTheTagAndStartsWithoutADriver(t *testing.T) {
	program := user(t)

	t.Run("it names no NVIDIA library and shows no trampoline", func(t *testing.T) {
		f, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		needed, err := f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range needed {
			if strings.Contains(name, "cu") || strings.Contains(name, "nv") {
				t.Errorf("it needs %s", name)
			}
		}
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			if strings.HasPrefix(s.Name, "cu") || strings.HasPrefix(s.Name, "weir_lazy") {
				t.Errorf("it shows %s", s.Name)
			}
		}
	})

	t.Run("no driver", func(t *testing.T) {
		said := start(t, program, "")
		if !strings.HasPrefix(said["cuda"], `path ""`) {
			t.Skip("there is a driver: ", said["cuda"])
		}
		for name, want := range map[string]string{
			"devices": "0 <nil>",
			"cuda": `path "", reason "libcuda.so.1 was not found where the system keeps libraries, and WEIR_CUDA_LIBRARY_PATH names no folder: ` +
				`libcuda.so.1: cannot open shared object file: No such file or directory"`,
			"device 0": "NotFound",
			"product":  "[7 10 15 22] <nil>",
		} {
			if said[name] != want {
				t.Errorf("%s: got %s; expected %s", name, said[name], want)
			}
		}
	})

	t.Run("a driver that has no device", func(t *testing.T) {
		folder := t.TempDir()
		file := filepath.Join(folder, "libcuda.so.1")
		if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", file, "testdata/no_device.c").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Setenv("CUDA_VISIBLE_DEVICES", "0")
		said := start(t, program, folder)
		for name, want := range map[string]string{
			"devices": "0 <nil>",
			"cuda":    `path "` + file + `", reason "cuInit of ` + file + ` answers CUDA_ERROR_NO_DEVICE (100), with CUDA_VISIBLE_DEVICES=\"0\""`,
			"product": "[7 10 15 22] <nil>",
		} {
			if said[name] != want {
				t.Errorf("%s: got %s; expected %s", name, said[name], want)
			}
		}
	})

	t.Run("no cuBLAS and no cuSOLVER", func(t *testing.T) {
		said := start(t, program, "")
		if !strings.HasPrefix(said["cublas"], `path ""`) || !strings.HasPrefix(said["cusolver"], `path ""`) {
			t.Skip("the system has them")
		}
		for name, want := range map[string]string{
			"cuBLAS":   "Failed to initialize Standard implementation of CUBLAS: Unsupported",
			"cuSOLVER": "9",
		} {
			if said[name] != want {
				t.Errorf("%s: got %s; expected %s", name, said[name], want)
			}
		}
		for library, sonames := range map[string]string{"cublas": "libcublas.so.13 or libcublas.so.12", "cusolver": "libcusolver.so.12 or libcusolver.so.11"} {
			if want := `path "", reason "` + sonames + " was not found "; !strings.HasPrefix(said[library], want) {
				t.Errorf("%s: got %s; expected %s", library, said[library], want)
			}
		}
	})
}
