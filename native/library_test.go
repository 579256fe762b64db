package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
)

// compile makes a shared library of C.
func compile(t *testing.T, name, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file+".c", []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", file, file+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// cannotOpen checks that a library is refused, with a message.
func cannotOpen(t *testing.T, ctx context.Context, path string, exports native.Exports, want string) {
	t.Helper()
	_, err := native.Open(ctx, "kmeans-canary", path, exports)
	says(t, err, weir.KindGeneric, want)
	if !errors.Is(err, weir.ErrNotSupported) {
		t.Errorf("%v is not ErrNotSupported", err)
	}
}

func TestALibraryThatIsMissingIsNamedWithWhereItWasLookedFor(t *testing.T) {
	ctx := start(t)
	cannotOpen(t, ctx, "/nowhere/libcanary.so", kcExports, "kmeans-canary: library /nowhere/libcanary.so: there is no such file; build it or correct the path")
	cannotOpen(t, ctx, "libnowhere.so", kcExports, `kmeans-canary: library libnowhere.so: it is neither in the folders of WEIR_NATIVE_LIBRARY_PATH="`+os.Getenv(pathVariable)+`" nor where the system looks; build it or name its folder`)
}

func TestAFileThatIsNoLibraryOrOfAnotherArchitectureIsRefused(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("the loader's own message has to do")
	}
	ctx := start(t)
	file := filepath.Join(t.TempDir(), "libfalse.so")
	write := func(content []byte) {
		if err := os.WriteFile(file, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("not a library at all, only text"))
	cannotOpen(t, ctx, file, kcExports, "kmeans-canary: library "+file+": it is no shared library")
	write(nil)
	cannotOpen(t, ctx, file, kcExports, "kmeans-canary: library "+file+": it is no shared library")

	own := must(os.ReadFile(compile(t, "libown.so", "int nothing(void) { return 0; }")))
	own[18], own[19] = 0xf3, 0 // of RISC-V
	write(own)
	this := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[goruntime.GOARCH]
	cannotOpen(t, ctx, file, kcExports, "kmeans-canary: library "+file+": it is built for riscv, and this process runs on "+this+"; build it for that")
	own[18], own[19] = must(os.ReadFile("/proc/self/exe"))[18], 0
	for _, n := range []int{200, 4096} { // with a part of the program headers, and with all of them
		write(own[:n])
		_, err := native.Open(ctx, "kmeans-canary", file, kcExports)
		if want := fmt.Sprintf("kmeans-canary: library %s: it is cut off: it has %d bytes, and maps ", file, n); !errors.Is(err, weir.ErrNotSupported) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v; expected %s", err, want)
		}
	}
}

func TestALibraryWithoutTheEntryPointsIsRefused(t *testing.T) {
	ctx := start(t)
	file := compile(t, "libother.so", `
const char *kc_last_error(void) { return ""; }
int kc_last_error_kind(void) { return 0; }`)
	lacks := func(name string) string {
		return "kmeans-canary: library " + file + ": it has no entry point " + name + "; expected one built for this interface"
	}
	cannotOpen(t, ctx, file, kcExports, lacks("kc_check_abi"))
	cannotOpen(t, ctx, file, rtExports, lacks("rt_last_error"))
	cannotOpen(t, ctx, file, native.Exports{}, "kmeans-canary: library "+file+": the name of an entry point is empty; expected those of Exports")

	c := openCanary(t, ctx)
	var fn func() int32
	err := c.Func("kmeans-canary", "kc_nothing", &fn)
	if !errors.Is(err, weir.ErrNotSupported) || !strings.HasSuffix(err.Error(), "it has no entry point kc_nothing; expected one built for this interface") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Job("kmeans-canary", "kc_nothing_job", native.Handle); !errors.Is(err, weir.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
	_, err = c.Job("kmeans-canary", "kc_fit_job", native.Handle, native.Param(99))
	says(t, err, weir.KindLogic, "kmeans-canary: parameter 1 of kc_fit_job is param(99); expected one of native's constants")
}

func TestALibraryThatWasBuiltForAnotherTagIsRefusedWhenItIsOpened(t *testing.T) {
	ctx := start(t)
	file := compile(t, "libforged.so", `
const char *kc_last_error(void) { return "RAFT: built against 26.08.00, but libraftrkt has 26.10.00; build both against the same rapids package set"; }
int kc_last_error_kind(void) { return 3; }
int kc_check_abi(const void *loaded) { return loaded ? 1 : 0; }`)
	indifferent := kcExports
	indifferent.Wrap = func(*weir.Error) error { return nil } // is no way past it
	for _, exports := range []native.Exports{kcExports, indifferent} {
		_, err := native.Open(ctx, "kmeans-canary", file, exports)
		says(t, err, weir.KindLogic, "kmeans-canary: RAFT: built against 26.08.00, but libraftrkt has 26.10.00; build both against the same rapids package set")
	}
}

// stub is a runtime library for host devices of the test's own.
func stub(t *testing.T, source string) string {
	t.Helper()
	file := compile(t, "libraftrkt_host.so", source)
	t.Setenv(pathVariable, filepath.Dir(file))
	restore := native.ForgetHost()
	t.Cleanup(restore)
	return file
}

// entryPoints is a runtime library in C; tag is its ABI tag.
func entryPoints(tag string) string {
	return `
#include <stdint.h>
#include <stddef.h>
static const char *message = ""; static int kind;
static int fail(const char *m, int k) { message = m; kind = k; return 1; }
const char *rr_last_error(void) { return message; }
int rr_last_error_kind(void) { return kind; }
static int32_t tag[14] = {` + tag + `};
const void *rr_abi(void) { return tag[0] < 0 ? NULL : tag; }
int rr_resources_create(int32_t device, void *s, void *b, void *v, void **out) { *out = &tag; return device == 77; }
int rr_resources_handle(void *r, void **out) { *out = r; return 0; }
int rr_resources_synchronize(void *r) { return 0; }
int rr_resources_release(void *r) { return 0; }
int rr_view_bind(void *d, uint64_t n, int32_t m, int32_t v, uint64_t o, void *view) { return fail("view: leaves the buffer", 3); }
int rr_deposit_release(void *r, void *d) { return 0; }
#ifndef NO_JOB
int rr_resources_job(void *r, void *f, void *a, size_t n, void *o, int fd) { return fail("the worker thread cannot be started: Resource temporarily unavailable", 0); }
#endif
`
}

func TestARuntimeLibraryThatCannotBeUsedIsRefused(t *testing.T) {
	if !onHost() {
		t.Skip("the stubs are for host devices")
	}
	ctx := start(t)
	refused := func(want string) {
		t.Helper()
		_, err := native.NewSession(ctx)
		says(t, err, weir.KindGeneric, "native.NewSession: "+want)
		if !errors.Is(err, weir.ErrNotSupported) {
			t.Errorf("%v is not ErrNotSupported", err)
		}
	}
	for _, c := range []struct{ name, source, want string }{
		{"nothing of it", "int nothing(void) { return 0; }", "it has no entry point rr_last_error; expected one built for this interface"},
		{"all but one", "#define NO_JOB" + entryPoints("1"), "it has no entry point rr_resources_job; expected one built for this interface"},
		{"no tag", entryPoints("-1"), "it has no ABI tag; install the one of this release"},
		{"a later version", entryPoints("2"), "its ABI version is 2, and this program's 1; install the one of this release"},
		{"the other flavour", entryPoints("1, 26, 10, 0, 0, 0, 0, 0, 0, 0, 12090"), "it is not the flavour for host devices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := stub(t, c.source)
			refused("library " + file + ": " + c.want)
		})
	}
	t.Run("found again", func(t *testing.T) { newSession(t, ctx) })
}

// TestWithoutTheRuntimeLibraryTheErrorSaysHowToGetIt is about a process that has not
// loaded it.
func TestWithoutTheRuntimeLibraryTheErrorSaysHowToGetIt(t *testing.T) {
	const inside = "WEIR_TEST_WITHOUT_NATIVE"
	if os.Getenv(inside) == "" {
		folder := t.TempDir()
		run := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		run.Env = append(os.Environ(), inside+"=1", pathVariable+"="+folder)
		if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	rt := must(runtime.Start(runtime.Options{Host: runtime.HostOnly}))
	_, err := native.NewSession(context.Background())
	says(t, err, weir.KindGeneric, `native.NewSession: the runtime library for host devices, which make native builds: library libraftrkt_host.so: it is neither in the folders of WEIR_NATIVE_LIBRARY_PATH="`+os.Getenv(pathVariable)+`" nor where the system looks; build it or name its folder`)
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheTagIsOfADevice(t *testing.T) {
	_, err := native.ABI(runtime.Device{})
	says(t, err, weir.KindLogic, "native.ABI: the zero Device; expected one from runtime")
	if _, err := native.NewSessionOn(nil); !errors.Is(err, weir.ErrArgument) {
		t.Errorf("got %v; expected an argument error", err)
	}
}
