package native_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

const pathVariable = "WEIR_NATIVE_LIBRARY_PATH"

func TestMain(m *testing.M) {
	if os.Getenv(pathVariable) == "" { // what make native built
		if folder, err := filepath.Abs("../build/native"); err == nil {
			os.Setenv(pathVariable, folder)
		}
	}
	if folder := os.Getenv(pathVariable); os.Getenv("WEIR_TEST_NATIVE") != "1" && !exists(folder, "libraftrkt_host.so", "libcanary.so") {
		// Examples cannot be skipped by themselves, as tests are.
		fmt.Fprintf(os.Stderr, "the examples are left out: %s has no libraries for them; make native builds them\n", folder)
		flag.Parse()
		skip := flag.Lookup("test.skip").Value
		_ = skip.Set(strings.TrimPrefix(skip.String()+"|^Example", "|"))
	}
	goleak.VerifyTestMain(m)
}

// exists says whether a folder has the files.
func exists(folder string, files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			return false
		}
	}
	return true
}

// deviceName is the device of the tests, and start starts a runtime there: cuda:0 in a
// build with the tag cuda where WEIR_TEST_CUDA=1 says that there is one, else host:0,
// which hands all work to other goroutines.
var deviceName = "host:0"

func onHost() bool { return deviceName == "host:0" }

// start installs a runtime for the test, and checks at the end that nothing leaked.
func start(t testing.TB, o ...func(*runtime.Options)) context.Context {
	t.Helper()
	ctx, rt := begin(t, o...)
	ctx, free := tensor.Scope(ctx)
	t.Cleanup(func() {
		if err := free(); err != nil {
			t.Errorf("freeing the test's arrays: %v", err)
		}
		if err := rt.Close(); err != nil {
			t.Errorf("closing the runtime: %s", weir.Report(err))
		}
	})
	return ctx
}

// begin installs a runtime that the test closes itself.
func begin(t testing.TB, o ...func(*runtime.Options)) (context.Context, *runtime.Runtime) {
	t.Helper()
	options := runtime.Options{Default: deviceName}
	for _, f := range o {
		f(&options)
	}
	var rt *runtime.Runtime
	var err error
	if onHost() {
		rt, err = runtime.StartFamilies([]driver.Family{host.New(host.Options{Devices: 2, HandOver: true})}, options)
	} else {
		rt, err = runtime.Start(options)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := native.ABI(must(runtime.Default())); err != nil {
		if os.Getenv("WEIR_TEST_NATIVE") == "1" {
			t.Error(err)
		}
		_ = rt.Close()
		t.Skip(err)
	}
	return ctx, rt
}

// newSession is a session that the test's end closes.
func newSession(t testing.TB, ctx context.Context) *native.Session {
	t.Helper()
	s, err := native.NewSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing a session: %v", err)
		}
	})
	return s
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// says checks an error's whole message and its kind.
func says(t testing.TB, err error, kind weir.Kind, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("\ngot      %v\nexpected %s", err, want)
		return
	}
	var e *weir.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("%v is of another kind; expected %v", err, kind)
	}
}

// canaryError is the error type of a package that uses the canary.
type canaryError struct{ cause *weir.Error }

func (e *canaryError) Error() string { return e.cause.Error() }
func (e *canaryError) Unwrap() error { return e.cause }

// canary is the canary's library, as the document's examples bind it.
type canary struct {
	*native.Library
	own     *native.Library // the same with errors of type *canaryError
	blobs   func(handle unsafe.Pointer, x, labels *native.View, clusters int32, deviation float64, shuffle int32, lowest, highest float64, seed uint64) int32
	fit     func(handle unsafe.Pointer, x, weights, centroids *native.View, init, most int32, tol float64, runs int32, oversampling float64, seed uint64, inertia *float64, rounds *int32) int32
	predict func(handle unsafe.Pointer, centroids, x, weights *native.View, normalize int32, labels *native.View, inertia *float64) int32
	members func(handle unsafe.Pointer, x, labels *native.View, cluster int32, out *native.Record) int32

	blobsJob, fitJob, predictJob, membersJob *native.Job
}

var kcExports = native.Exports{CheckABI: "kc_check_abi", LastError: "kc_last_error", LastErrorKind: "kc_last_error_kind"}

// library is the file of a library that make native, or make raft, builds.
func library(name string) string {
	if goruntime.GOOS == "darwin" {
		return "lib" + name + ".dylib"
	}
	return "lib" + name + ".so"
}

var (
	fitParams = []native.Param{native.Handle, native.ViewIn, native.ViewIn, native.ViewInOut, native.Int32, native.Int32,
		native.Float64, native.Int32, native.Float64, native.Uint64, native.OutFloat64, native.OutInt32}
	predictParams = []native.Param{native.Handle, native.ViewIn, native.ViewIn, native.ViewIn, native.Int32, native.ViewOut, native.OutFloat64}
	blobsParams   = []native.Param{native.Handle, native.ViewOut, native.ViewOut, native.Int32, native.Float64, native.Int32,
		native.Float64, native.Float64, native.Uint64}
	membersParams = []native.Param{native.Handle, native.ViewIn, native.ViewIn, native.Int32, native.IntoDeposit}
)

func openCanary(t testing.TB, ctx context.Context) *canary {
	t.Helper()
	lib, err := native.Open(ctx, "kmeans-canary", library("canary"), kcExports)
	if err != nil {
		if os.Getenv("WEIR_TEST_NATIVE") == "1" {
			t.Error(err)
		}
		t.Skip(err)
	}
	c := &canary{Library: lib}
	wrapping := kcExports
	wrapping.Wrap = func(e *weir.Error) error { return &canaryError{e} }
	c.own = must(native.Open(ctx, "kmeans-canary", library("canary"), wrapping))
	for name, fn := range map[string]any{"kc_make_blobs": &c.blobs, "kc_fit": &c.fit, "kc_predict": &c.predict, "kc_cluster_members": &c.members} {
		if err := lib.Func("kmeans-canary", name, fn); err != nil {
			t.Fatal(err)
		}
	}
	c.blobsJob = must(lib.Job("kmeans-canary", "kc_make_blobs_job", blobsParams...))
	c.fitJob = must(lib.Job("kmeans-canary", "kc_fit_job", fitParams...))
	c.predictJob = must(lib.Job("kmeans-canary", "kc_predict_job", predictParams...))
	c.membersJob = must(lib.Job("kmeans-canary", "kc_cluster_members_job", membersParams...))
	return c
}

var rtExports = native.Exports{CheckABI: "rt_check_abi", LastError: "rt_last_error", LastErrorKind: "rt_last_error_kind"}

// openTest is the library whose entry points do what they are told.
func openTest(t testing.TB, ctx context.Context) *native.Library {
	t.Helper()
	lib, err := native.Open(ctx, "rt", library("raftrkt_test"), rtExports)
	if err != nil {
		if os.Getenv("WEIR_TEST_NATIVE") == "1" {
			t.Error(err)
		}
		t.Skip(err)
	}
	return lib
}

func job(t testing.TB, lib *native.Library, symbol string, params ...native.Param) *native.Job {
	t.Helper()
	j, err := lib.Job("rt", symbol, params...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// gate is a job that begins, says so and waits to be let go.
type gate struct {
	job              *native.Job
	started, proceed [2]*os.File
}

func newGate(t testing.TB, lib *native.Library) *gate {
	t.Helper()
	g := &gate{job: job(t, lib, "rt_wait_job", native.Handle, native.Int32, native.Int32, native.OutInt32)}
	for _, p := range []*[2]*os.File{&g.started, &g.proceed} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*p = [2]*os.File{r, w}
		t.Cleanup(func() { r.Close(); w.Close() })
	}
	return g
}

// run runs the job, and answers how many of its kind ran when it began.
func (g *gate) run(ctx context.Context, s *native.Session) (running int32, err error) {
	err = g.job.Run(ctx, s, "wait", int(g.started[1].Fd()), int(g.proceed[0].Fd()), &running)
	return running, err
}

// begun waits until a job has begun; open lets one go.
func (g *gate) begun() {
	if _, err := g.started[0].Read(make([]byte, 1)); err != nil {
		panic(err)
	}
}

func (g *gate) open() {
	if _, err := g.proceed[1].Write([]byte{1}); err != nil {
		panic(err)
	}
}
