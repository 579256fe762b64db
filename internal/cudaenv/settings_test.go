package cudaenv

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirgo/weir"
)

// module makes a folder with a go.mod.
func module(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("// A module.\nmodule "+path+"\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// machine is an environment with a toolkit and a cache, and the go command as
// this one has it; further pairs change it.
func machine(t *testing.T, pairs ...string) (environ []string, cuda, cached string) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no gcc on Linux")
	}
	cuda, cached = whole(t, filepath.Join(t.TempDir(), "cuda 13")), filepath.Join(t.TempDir(), "cache")
	environ = append(os.Environ(), "CGO_CFLAGS=", "CGO_LDFLAGS=", "WEIR_CUDA_LIBRARY_PATH=", "GOENV=off", "CC=", "GOOS=", "GOARCH=",
		"CUDA_HOME="+cuda, "XDG_CACHE_HOME="+cached)
	return append(environ, pairs...), cuda, cached
}

// value answers a variable of the settings.
func value(t *testing.T, s *Settings, name string) string {
	t.Helper()
	for _, v := range s.Variables {
		if v.Name == name {
			return v.Value
		}
	}
	t.Fatalf("%s is not set", name)
	return ""
}

func TestSettingsPutKitAndToolkitFirst(t *testing.T) {
	environ, cuda, cached := machine(t)
	s, err := Find(t.Context(), module(t, "example.com/user"), environ)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(s.Kit.Root()) != filepath.Join(cached, "weir") {
		t.Errorf("the kit is %s; expected it below %s", s.Kit.Root(), cached)
	}
	for name, want := range map[string]string{
		"CGO_ENABLED":            "1",
		"CGO_CFLAGS":             "-I" + s.Kit.Include() + " '-I" + cuda + "/include' -O2 -g",
		"CGO_LDFLAGS":            "-L" + s.Kit.Lib() + " -Wl,--push-state,--no-as-needed,-ldl,--pop-state -O2 -g",
		"WEIR_CUDA_LIBRARY_PATH": cuda + "/lib",
	} {
		if got := value(t, s, name); got != want {
			t.Errorf("%s: got %s; expected %s", name, got, want)
		}
	}
	for _, v := range s.Variables {
		if v.Meaning == "" || strings.Contains(v.Meaning, "\n") {
			t.Errorf("%s: its meaning is %q", v.Name, v.Meaning)
		}
	}
}

func TestSettingsKeepWhatTheUserSetAndAreFoundAgain(t *testing.T) {
	environ, _, _ := machine(t, "CGO_CFLAGS=-O1 '-DNAME=a b'", "CGO_LDFLAGS=-lm", "WEIR_CUDA_LIBRARY_PATH=/sim")
	dir := module(t, "example.com/user")
	first, err := Find(t.Context(), dir, environ)
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, first, "CGO_CFLAGS"); !strings.HasSuffix(got, " -O1 '-DNAME=a b'") {
		t.Errorf("CGO_CFLAGS: got %s", got)
	}
	if got := value(t, first, "CGO_LDFLAGS"); !strings.HasSuffix(got, " -lm") {
		t.Errorf("CGO_LDFLAGS: got %s", got)
	}
	if got := value(t, first, "WEIR_CUDA_LIBRARY_PATH"); got != "/sim" {
		t.Errorf("WEIR_CUDA_LIBRARY_PATH: got %s", got)
	}
	again, err := Find(t.Context(), dir, first.Environ(environ))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range again.Variables {
		if v != first.Variables[i] {
			t.Errorf("got %v; expected %v", v, first.Variables[i])
		}
	}
}

func TestInWeirsOwnCheckoutTheKitIsBelowItsBuildFolder(t *testing.T) {
	environ, _, _ := machine(t)
	root := module(t, "github.com/weirgo/weir")
	inside := filepath.Join(root, "cmd", "weir")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Find(t.Context(), inside, environ)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(s.Kit.Root()) != filepath.Join(root, "build", "csrc") {
		t.Errorf("got %s; expected it below %s", s.Kit.Root(), root)
	}

	s, err = Find(t.Context(), module(t, "github.com/weirgo/weirdly"), environ)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.Kit.Root(), "csrc") {
		t.Errorf("another module's kit is %s", s.Kit.Root())
	}
}

func TestBuildsThatCannotBeAreRefusedWithTheReason(t *testing.T) {
	dir := module(t, "example.com/user")
	for _, c := range []struct{ pair, message string }{
		{"GOOS=darwin", "cudaenv.Find: -tags cuda builds for linux/amd64 and linux/arm64; got darwin/" + runtime.GOARCH},
		{"GOARCH=riscv64", "cudaenv.Find: -tags cuda builds for linux/amd64 and linux/arm64; got linux/riscv64"},
		{"CC=/nonexistent/gcc -m64", "cudaenv.Find: -tags cuda needs a C compiler: lazy.Build: /nonexistent/gcc -m64 -print-prog-name=ar"},
		{"GOTOOLCHAIN=oops", `cudaenv.Find: go env: go: invalid GOTOOLCHAIN "oops"`},
	} {
		environ, _, _ := machine(t, c.pair)
		_, err := Find(t.Context(), dir, environ)
		var e *weir.Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), c.message) {
			t.Errorf("%s: got %v; expected %s", c.pair, err, c.message)
		}
		if wrongTarget := strings.Contains(c.message, "builds for"); errors.Is(err, weir.ErrNotSupported) != wrongTarget {
			t.Errorf("%s: that %v matches ErrNotSupported is not %v", c.pair, err, wrongTarget)
		}
	}
}

func TestWithoutTheGoCommandTheErrorSaysSo(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := Find(t.Context(), t.TempDir(), nil)
	if !errors.Is(err, exec.ErrNotFound) || !strings.HasPrefix(err.Error(), "cudaenv.Find: -tags cuda needs the go command: ") {
		t.Errorf("got %v", err)
	}
}
