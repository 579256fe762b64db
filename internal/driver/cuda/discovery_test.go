//go:build cuda

package cuda_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

func TestDiscoveryCreatesNothing(t *testing.T) {
	f := gpus(t)
	for i := range f.Count() {
		d := must(f.Open(i))
		if c := d.Capabilities(); c.ComputeMajor < 5 || !strings.HasPrefix(c.UUID, "GPU-") || !regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0$`).MatchString(c.PCI) {
			t.Errorf("device %d is %+v", i, *c)
		}
	}
	if n := cudatest.Live("context"); n != 0 {
		t.Errorf("there are %d contexts", n)
	}
}

func TestTheContextGoesWithTheLastObject(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	for range 2 {
		e := must(d.NewEvent())
		h := must(d.AllocHost(64))
		ok(t, e.Destroy())
		if n := cudatest.Live("context"); n != 1 {
			t.Errorf("there are %d contexts while memory lives", n)
		}
		ok(t, d.FreeHost(h))
		if n := cudatest.Live("context"); n != 0 {
			t.Errorf("there are %d contexts", n)
		}
	}
}

// probeVariable has a child process print what there is.
const probeVariable = "WEIR_CUDA_PROBE_TEST"

func TestProbe(t *testing.T) {
	if os.Getenv(probeVariable) == "" {
		t.Skip("run by other tests")
	}
	f := cuda.New()
	if f.Count() == 0 {
		t.Logf("unavailable: %v", f.Unavailable())
		return
	}
	var places []string
	for i := range f.Count() {
		places = append(places, must(f.Open(i)).Capabilities().PCI)
	}
	t.Logf("places: %s", strings.Join(places, " "))
	d := must(f.Open(0))
	e := must(d.NewEvent())
	b, blas := d.NewBLAS()
	if blas == nil {
		ok(t, b.Destroy())
	}
	s, solver := d.NewSolver()
	if solver == nil {
		ok(t, s.Destroy())
	}
	t.Logf("devices: %d, BLAS: %v, not supported: %v, solver: %v, not supported: %v", f.Count(), blas,
		errors.Is(blas, weir.ErrNotSupported), solver, errors.Is(solver, weir.ErrNotSupported))
	ok(t, e.Destroy())
}

// probe runs TestProbe with the libraries of some folders.
func probe(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestProbe$")
	cmd.Env = append(append(os.Environ(), probeVariable+"=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestWithoutADriverTheReasonIsGiven has only the simulator's name for a driver,
// so that a GPU's machine skips it.
func TestWithoutADriverTheReasonIsGiven(t *testing.T) {
	empty := t.TempDir()
	out := probe(t, "WEIR_CUDA_LIBRARY_PATH="+empty)
	if strings.Contains(out, "devices: ") {
		t.Skip("the system has a driver")
	}
	for _, part := range []string{"unavailable: cuda: libcuda.so.1 was found neither", empty} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
}

func TestADriverWithoutDevicesIsNamed(t *testing.T) {
	gpus(t)
	out := probe(t, "CUDA_VISIBLE_DEVICES=")
	if !strings.Contains(out, "unavailable: cuda: ") || !strings.Contains(out, "libcuda.so") {
		t.Errorf("it says\n%s", out)
	}
}

func TestAMissingToolkitLibraryIsNamedAndTheRestWorks(t *testing.T) {
	simulated(t)
	folder := t.TempDir()
	for _, path := range filepath.SplitList(os.Getenv("WEIR_CUDA_LIBRARY_PATH")) {
		from := filepath.Join(path, "libcuda.so.1")
		if _, err := os.Stat(from); err == nil {
			ok(t, os.Symlink(from, filepath.Join(folder, "libcuda.so.1")))
			break
		}
	}
	out := probe(t, "WEIR_CUDA_LIBRARY_PATH="+folder, "LD_LIBRARY_PATH=")
	if strings.Contains(out, "BLAS: <nil>") {
		t.Skip("the system has cuBLAS")
	}
	for _, part := range []string{"BLAS: Device.NewBLAS on cuda:0: libcublas.so.13 or libcublas.so.12 was found neither in",
		"solver: Device.NewSolver on cuda:0: libcusolver.so.12 or libcusolver.so.11 was found neither in", "not supported: true"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
}

func TestVisibleDevicesAreThoseOfTheListInItsOrder(t *testing.T) {
	simulated(t)
	const first, second = "0000:01:00.0", "0000:02:00.0"
	for list, want := range map[string]string{
		"0,1": first + " " + second, "1,0": second + " " + first, "1": second,
		"1,7,0": second, "1,-1,0": second, "1,1,0": second, "0,x,1": first,
	} {
		if out := probe(t, "CUDA_VISIBLE_DEVICES="+list); !strings.Contains(out, "places: "+want+"\n") {
			t.Errorf("%s: expected %s in\n%s", list, want, out)
		}
	}
}

// besideDriver is a folder with the simulated driver and a library of some
// functions, which all answer 0.
func besideDriver(t *testing.T, soname string, functions ...string) string {
	t.Helper()
	folder := t.TempDir()
	ok(t, os.Symlink(cudatest.Simulator(), filepath.Join(folder, "libcuda.so.1")))
	source := filepath.Join(t.TempDir(), "library.c")
	var text strings.Builder
	for _, f := range functions {
		text.WriteString("int " + f + "(void) { return 0; }\n")
	}
	ok(t, os.WriteFile(source, []byte(text.String()), 0o644))
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(folder, soname), source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

func TestAFunctionThatALibraryLacksIsNamedWithItsFile(t *testing.T) {
	simulated(t)
	for _, c := range []struct{ soname, has, want string }{
		{"libcublas.so.13", "cublasSetMathMode", "BLAS: Device.NewBLAS on cuda:0: %s was loaded and has no cublasCreate_v2 (CUBLAS_STATUS_NOT_SUPPORTED, code 15), not supported: true, "},
		{"libcusolver.so.12", "cusolverDnXgesvd", "solver: Device.NewSolver on cuda:0: %s was loaded and has no cusolverDnCreate (CUSOLVER_STATUS_NOT_SUPPORTED, code 9), not supported: true\n"},
	} {
		folder := besideDriver(t, c.soname, c.has)
		want := strings.Replace(c.want, "%s", filepath.Join(folder, c.soname), 1)
		if out := probe(t, "WEIR_CUDA_LIBRARY_PATH="+folder); !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestALibraryThatDoesNotSuitTheDriverIsNamed(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	e := must(d.NewEvent()) // keeps the context
	defer func() { ok(t, e.Destroy()) }()
	folder := filepath.Dir(cudatest.Simulator())
	const notInitialized = 1
	cudatest.Fail("cublasCreate_v2", 1, notInitialized)
	_, err := d.NewBLAS()
	if want := "Device.NewBLAS on cuda:0: " + folder + "/libcublas.so.13 was loaded; it must suit the driver, which is of CUDA 13.0 (CUBLAS_STATUS_NOT_INITIALIZED, code 1)"; err == nil || err.Error() != want {
		t.Errorf("got %v; expected %s", err, want)
	}
	cudatest.Fail("cusolverDnCreate", 1, notInitialized)
	_, err = d.NewSolver()
	if want := "Device.NewSolver on cuda:0: " + folder + "/libcusolver.so.12 was loaded; it must suit the driver, which is of CUDA 13.0 (CUSOLVER_STATUS_NOT_INITIALIZED, code 1)"; err == nil || err.Error() != want {
		t.Errorf("got %v; expected %s", err, want)
	}
}
