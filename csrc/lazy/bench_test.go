package lazy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// bench builds and runs C programs for one architecture.
type bench struct {
	arch     string
	compiler string
	runner   []string // before the program, for another machine's
	folder   string   // of archives and programs
	once     sync.Once
	err      error
}

var benches = []*bench{newBench("amd64", "x86_64"), newBench("arm64", "aarch64")}

// newBench uses this machine's own compiler or, for the other architecture,
// Debian's cross compiler and QEMU.
func newBench(arch, name string) *bench {
	if arch == runtime.GOARCH {
		return &bench{arch: arch, compiler: "gcc"}
	}
	triple := name + "-linux-gnu"
	return &bench{arch: arch, compiler: triple + "-gcc", runner: []string{"qemu-" + name, "-L", "/usr/" + triple}}
}

// onEach runs test on each architecture that this machine has a compiler for.
func onEach(t *testing.T, test func(t *testing.T, b *bench)) {
	for _, b := range benches {
		t.Run(b.arch, func(t *testing.T) {
			if _, err := exec.LookPath(b.compiler); err != nil || runtime.GOOS != "linux" {
				t.Skipf("no %s on Linux", b.compiler)
			}
			b.once.Do(func() { b.err = b.build() })
			if b.err != nil {
				t.Fatal(b.err)
			}
			test(t, b)
		})
	}
}

// fakeList is the library that testdata makes.
func fakeList() (Library, error) {
	text, err := os.ReadFile("testdata/fake.txt")
	if err != nil {
		return Library{}, err
	}
	return Parse("fake", string(text))
}

// build makes the archives of the fake library and of the driver, of which the
// second is told to look for a name that no system has.
func (b *bench) build() error {
	folder, err := os.MkdirTemp("", "weir-lazy-test-")
	if err != nil {
		return err
	}
	b.folder = folder
	fake, err := fakeList()
	if err != nil {
		return err
	}
	libraries := []Library{fake}
	for _, l := range Libraries() {
		if l.Name == "cuda" {
			l.Sonames = []string{"libweirfakecuda.so.1"}
			libraries = append(libraries, l)
		}
	}
	if err := Build(context.Background(), folder, libraries, b.arch, []string{b.compiler, "-Werror"}); err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"call":    {"testdata/call.c", "testdata/fake_extra.c", "-lfake"},
		"threads": {"testdata/threads.c", "testdata/fake_extra.c", "-lfake", "-lpthread"},
		"init":    {"testdata/init.c", "-lcuda"},
	} {
		args = append([]string{"-Werror", "-Wall", "-rdynamic", "-Ic", "-L" + folder, "-o", filepath.Join(folder, name)}, args...)
		if _, err := run(context.Background(), ".", []string{b.compiler}, append(args, "-ldl", "-lm")...); err != nil {
			return err
		}
	}
	return nil
}

// library compiles a shared library of testdata into a new folder, and answers
// the folder.
func (b *bench) library(t *testing.T, soname, source string, args ...string) string {
	t.Helper()
	folder := t.TempDir()
	args = append([]string{"-shared", "-fPIC", "-o", filepath.Join(folder, soname), filepath.Join("testdata", source)}, args...)
	if _, err := run(t.Context(), ".", []string{b.compiler}, args...); err != nil {
		t.Fatal(err)
	}
	return folder
}

// command is a program with the given library path and further variables.
func (b *bench) command(t *testing.T, path string, env []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	words := append(append([]string{}, b.runner...), filepath.Join(b.folder, program))
	if _, err := exec.LookPath(words[0]); err != nil {
		t.Skipf("assembled and linked, but not run: no %s", words[0])
	}
	cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], args...)...)
	cmd.Env = append(append(os.Environ(), env...), "WEIR_CUDA_LIBRARY_PATH="+path, "LC_ALL=C")
	return cmd
}

// run runs it, and answers what it prints.
func (b *bench) run(t *testing.T, path string, env []string, program string, args ...string) string {
	t.Helper()
	out, err := b.command(t, path, env, program, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return string(out)
}
