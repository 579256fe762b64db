//go:build cuda

package tensor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/runtime"
)

// simulated skips the test where the driver is no simulator, and answers the
// simulator's folder.
func simulated(t testing.TB) string {
	t.Helper()
	file := cudatest.Simulator()
	if file == "" {
		t.Skip("the driver is no simulator")
	}
	return filepath.Dir(file)
}

// revive gives the simulated devices that were lost their lives back, once their
// last user is gone.
func revive(t testing.TB) {
	t.Helper()
	if left := cudatest.Left("context"); left != "" {
		t.Fatal(left)
	}
	cudatest.Revive()
}

// nothing checks that the simulator has nothing of a runtime, and as many handles
// of cuBLAS as before: those of devices that were lost stay.
func nothing(t testing.TB, handles int) {
	t.Helper()
	if left := cudatest.Left(); left != "" {
		t.Error(left)
	}
	if n := cudatest.Live("cublas"); n != handles {
		t.Errorf("there are %d handles of cuBLAS and were %d", n, handles)
	}
}

func TestAProductOnAGPUHoldsItsHandlesAndMemoryUntilClose(t *testing.T) {
	simulated(t)
	before := cudatest.Live("cublas")
	rt := must(runtime.StartFamilies([]driver.Family{cuda.New()}, runtime.Options{Devices: []string{"cuda:0"}}))
	ctx, free := Scope(context.Background())
	a := must(From(ctx, []float32{1, 2, 3, 4}, 2, 2))
	if n := cudatest.Live("cublas") - before; n != 0 {
		t.Errorf("there are %d handles before the first product", n)
	}
	if got, err := Data[float32](ctx, must(MatMul(ctx, a, a.T()))); err != nil || !slices.Equal(got, []float32{5, 11, 11, 25}) {
		t.Errorf("the product is %v, %v", got, err)
	}
	e, m := must(blas.Of(a.resources())), must(buffer.Of(a.resources()))
	if n, live := e.WorkspaceBytes(), cudatest.Live("cublas")-before; n <= 0 || live != e.Size() {
		t.Errorf("%d handles with a workspace of %d bytes; expected %d with some", live, n, e.Size())
	}
	if s := m.Stats(); s.Used == 0 || s.Held < s.Used {
		t.Errorf("statistics are %+v", s)
	}
	if err := free(); err != nil {
		t.Error(err)
	}
	if s := m.Stats(); s.Used != 0 || s.Buffers != 0 {
		t.Errorf("statistics of nothing are %+v", s)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if s, n := m.Stats(), e.WorkspaceBytes(); s.Held != 0 || s.Cached != 0 || n != 0 {
		t.Errorf("after Close statistics are %+v, and the workspace has %d bytes", s, n)
	}
	nothing(t, before)
}

func TestArraysMoveBetweenGPUsAndTheHost(t *testing.T) {
	simulated(t)
	ctx := startOn(t, []driver.Family{cuda.New(), host.New(host.Options{})})
	for _, names := range [][2]string{{"host:0", "cuda:0"}, {"cuda:0", "host:0"}, {"cuda:0", "cuda:1"}} {
		from, to := must(runtime.Get(names[0])), must(runtime.Get(names[1]))
		a := must(From(runtime.On(ctx, from), []complex64{1, 2i, 3, 4, 5i, 6}, 2, 3))
		v := must(a.H().Slice(Reverse(), All()))
		b := must(To(ctx, v, to))
		if b.Device() != to {
			t.Errorf("from %v to %v it came to %v", from, to, b.Device())
		}
		if got, want := must(Data[complex64](ctx, b)), []complex64{3, 6, -2i, -5i, 1, 4}; !slices.Equal(got, want) {
			t.Errorf("from %v to %v: %v; expected %v", from, to, got, want)
		}
		if n := must(To(ctx, must(Zeros(runtime.On(ctx, from), Float32, 0, 3)), to)).Size(); n != 0 {
			t.Errorf("nothing became %d elements", n)
		}
		if err := errors.Join(from.Err(), to.Err()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutOfMemoryOnAGPUSaysWhatIsHeldAndTheNextSmallerArrayWorks(t *testing.T) {
	simulated(t)
	const mib = 1 << 20
	for _, c := range []struct {
		what         string
		limit, block int64
		want         string
	}{
		{"a limit", 128 * mib, 96 * mib, "buffer.New on cuda:0: asked for 100663296 bytes; 100663296 held, of which 100663296 in use; limit 134217728: "},
		{"the device's memory", 0, 6 << 10 * mib, "buffer.New on cuda:0: asked for 6442450944 bytes; 6442450944 held, of which 6442450944 in use; limit 8589934592: "},
	} {
		t.Run(c.what, func(t *testing.T) {
			ctx := startOn(t, []driver.Family{cuda.New()}, func(o *runtime.Options) {
				o.Devices, o.MemoryLimit = []string{"cuda:0"}, c.limit
			})
			elements := int(c.block / 4)
			large := must(Empty(ctx, Float32, elements))
			before := cudatest.Count("cuMemPoolTrimTo")
			_, err := Empty(ctx, Float32, elements)
			var e *weir.Error
			if !errors.Is(err, weir.ErrOutOfMemory) || !errors.As(err, &e) || e.Kind != weir.KindOutOfMemory || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v; expected %s…", err, c.want)
			}
			if cudatest.Count("cuMemPoolTrimTo") == before {
				t.Error("nothing was trimmed before memory counted as exhausted")
			}
			small := must(Empty(ctx, Float32, elements/8))
			if err := errors.Join(CopyInto(ctx, must(small.Slice(Span(0, 1))), must(From(ctx, []float32{7}, 1))), large.Free()); err != nil {
				t.Error(err)
			}
			again, err := Empty(ctx, Float32, elements)
			if err != nil {
				t.Fatalf("once the first is freed: %v", err)
			}
			if err := again.Free(); err != nil {
				t.Error(err)
			}
		})
	}
	nothing(t, cudatest.Live("cublas"))
}

func TestALostGPUsArraysAnswerTheCauseAndTheHostsGoOn(t *testing.T) {
	simulated(t)
	rt := must(runtime.StartFamilies([]driver.Family{cuda.New(), host.New(host.Options{})}, runtime.Options{}))
	ctx, free := Scope(context.Background())
	other := runtime.On(ctx, must(runtime.Get("cuda:1")))
	rest := runtime.On(ctx, must(runtime.Get("host:0")))
	values := []float64{1, 2, 3, 4}
	a, b, h := must(From(ctx, values, 2, 2)), must(From(other, values, 2, 2)), must(From(rest, values, 2, 2))
	s := must(a.resources().Streams().Acquire(ctx))
	release := must(cudatest.Stall(must(s.Submit())))
	defer release()
	access := buffer.Begin(s)
	access.Write(a.Buffer()) // what follows waits for the stall
	if err := errors.Join(access.End(), s.Release()); err != nil {
		t.Fatal(err)
	}
	product := must(MatMul(ctx, a, a))
	sums := must(Einsum(ctx, "ij->i", product))
	answers := make(chan error)
	for _, x := range []*Array{a, product, sums} {
		go func() {
			_, err := Data[float64](ctx, x)
			answers <- err
		}()
	}
	cause := cudatest.Kill(a.Device().Driver())
	for range 3 {
		if err := <-answers; !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, cause) {
			t.Errorf("a reader answers %v; expected %v", err, cause)
		}
	}
	for what, call := range map[string]func() (*Array, error){
		"a product":       func() (*Array, error) { return MatMul(ctx, a, product) },
		"a copy":          func() (*Array, error) { return Copy(ctx, sums) },
		"a move":          func() (*Array, error) { return To(ctx, product, b.Device()) },
		"a new array":     func() (*Array, error) { return Zeros(ctx, Float64, 2) },
		"a late contract": func() (*Array, error) { return Einsum(ctx, "ij,jk->", a, a) },
		"a neighbour's":   func() (*Array, error) { return MatMul(ctx, b, b) }, // a fault on one GPU ends all
	} {
		if _, err := call(); !errors.Is(err, cause) {
			t.Errorf("%s answers %v; expected %v", what, err, cause)
		}
	}
	if got, err := Data[float64](ctx, must(MatMul(ctx, h, h))); err != nil || !slices.Equal(got, []float64{7, 10, 15, 22}) {
		t.Errorf("the host device answers %v, %v", got, err)
	}
	if err := join(free(), rt.Close()); !errors.Is(err, cause) || errors.Is(err, weir.ErrLeak) {
		t.Errorf("Close answers %v; expected the loss, and no leak", err)
	}
	revive(t)
	nothing(t, cudatest.Live("cublas"))
}

// mortal is a simulated GPU that a plan of faults can kill.
type mortal struct{ driver.Family }

type mortalDevice struct{ driver.Device }

func (f mortal) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	return mortalDevice{d}, err
}

func (d mortalDevice) Kill(error) { cudatest.Kill(d.Device) }

// TestEveryFaultOfTheEinsumPathOnAGPU is what
// TestEveryFaultOfTheEinsumPathEndsInAnErrorOrTheRightValue says of the host.
func TestEveryFaultOfTheEinsumPathOnAGPU(t *testing.T) {
	simulated(t)
	for _, death := range []bool{false, true} {
		handles := cudatest.Live("cublas")
		everyFault(t, death, einsumValues, func() driver.Family { return mortal{cuda.New()} }, func(int) {
			if death {
				revive(t)
				handles = cudatest.Live("cublas")
			}
			nothing(t, handles)
		})
	}
}

// TestEveryFunctionThatFailsUnderTheEinsumPath has each call of each function of
// the driver and of cuBLAS fail once, and some end the context.
func TestEveryFunctionThatFailsUnderTheEinsumPath(t *testing.T) {
	simulated(t)
	run := func(arm func()) (chain, inPlace []float64, err, closed error) {
		rt := must(runtime.StartFamilies([]driver.Family{cuda.New()}, runtime.Options{
			Devices: []string{"cuda:0"}, ResourceOptions: runtime.ResourceOptions{Streams: 2}}))
		arm()
		chain, inPlace, err = tryProgram(context.Background())
		return chain, inPlace, err, rt.Close()
	}
	wantChain, wantInPlace, err, closed := run(func() {})
	if err := errors.Join(err, closed); err != nil {
		t.Fatal(err)
	}
	const invalid, status, illegal = 1, 7, 700 // CUDA_ERROR_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE, CUDA_ERROR_ILLEGAL_ADDRESS
	for _, function := range []string{
		"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuStreamQuery", "cuStreamWaitEvent",
		"cuMemHostAlloc", "cuMemcpyAsync", "cuMemsetD8Async", "cuLaunchKernel",
		"cuMemPoolCreate", "cuMemPoolSetAttribute", "cuMemAllocFromPoolAsync",
		"cublasCreate_v2", "cublasSetMathMode", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasDgemm_v2_64",
	} {
		var before int
		run(func() { before = cudatest.Count(function) })
		calls := cudatest.Count(function) - before
		if strings.HasSuffix(function, "Query") { // how often is asked depends on the time
			calls = min(calls, 16)
		}
		if calls == 0 {
			t.Errorf("%s is never called", function)
		}
		codes := []int{invalid, illegal}
		if strings.HasPrefix(function, "cublas") {
			codes = []int{status}
		}
		for _, code := range codes {
			for nth := 1; nth <= calls; nth++ {
				name := fmt.Sprintf("call %d of %d of %s answers %d", nth, calls, function, code)
				handles := cudatest.Live("cublas")
				chain, inPlace, err, closed := run(func() {
					before = cudatest.Count(function)
					cudatest.Fail(function, nth, code)
				})
				if missed := before + nth - cudatest.Count(function); missed > 0 {
					cudatest.Fail(function, missed, 0) // not in a later run
				}
				if err == nil && (!slices.Equal(chain, wantChain) || !slices.Equal(inPlace, wantInPlace)) {
					t.Errorf("%s: read %v and %v; want %v and %v", name, chain, inPlace, wantChain, wantInPlace)
				}
				if structured := (*weir.Error)(nil); err != nil && !errors.As(err, &structured) {
					t.Errorf("%s: %v is no *weir.Error", name, err)
				}
				if errors.Is(closed, weir.ErrLeak) {
					t.Errorf("%s: %v", name, closed)
				}
				if code == illegal {
					revive(t)
					handles = cudatest.Live("cublas")
				}
				nothing(t, handles)
			}
		}
	}
}

// lackingVariable has a child process say what works without some library.
const lackingVariable = "WEIR_TENSOR_LACKING_TEST"

// TestLacking says what works; others run it.
func TestLacking(t *testing.T) {
	if os.Getenv(lackingVariable) == "" {
		t.Skip("run by other tests")
	}
	say := func(what string, value any, err error) { fmt.Printf("> %s: %v, %v\n", what, value, err) }
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, free := Scope(context.Background())
	a := must(From(ctx, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
	say("device", a.Device(), nil)
	copied, err := Data[float32](ctx, must(Copy(ctx, a.T())))
	say("copy", copied, err)
	sums, err := Einsum(ctx, "ij->i", a)
	say("sums", must(Data[float32](ctx, sums)), err)
	_, err = MatMul(ctx, a, a.T())
	say("product", errors.Is(err, weir.ErrNotSupported), err)
	_, err = MatMul(ctx, a, a.T()) // once more, as it tries again
	say("product", errors.Is(err, weir.ErrNotSupported), err)
	h := must(To(ctx, a, must(runtime.Get("host:0"))))
	product, err := MatMul(ctx, h, h.T())
	say("product on the host", must(Data[float32](ctx, product)), err)
	say("close", join(free(), rt.Close()), nil)
	nothing(t, 0)
}

func TestWithoutCUBLASProductsSayWhereItWasLookedForAndTheRestWorks(t *testing.T) {
	from, to := simulated(t), t.TempDir()
	if err := os.Symlink(filepath.Join(from, "libcuda.so.1"), filepath.Join(to, "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLacking$")
	cmd.Env = append(os.Environ(), lackingVariable+"=1", "WEIR_CUDA_LIBRARY_PATH="+to, "LD_LIBRARY_PATH=", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const absent = ": cannot open shared object file: No such file or directory"
	lacks := "Device.NewBLAS on cuda:0: libcublas.so.13 or libcublas.so.12 was found neither in WEIR_CUDA_LIBRARY_PATH (" + to +
		") nor where the system keeps libraries: libcublas.so.13" + absent + "; libcublas.so.12" + absent
	if strings.Contains(string(out), "> product: false, <nil>") {
		t.Skip("the system has cuBLAS")
	}
	for _, line := range []string{"device: cuda:0, <nil>", "copy: [1 4 2 5 3 6], <nil>", "sums: [6 15], <nil>",
		"product on the host: [14 32 32 77], <nil>", "close: <nil>, <nil>"} {
		if !strings.Contains(string(out), "> "+line+"\n") {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	if n := strings.Count(string(out), "> product: true, "); n != 2 || strings.Count(string(out), lacks) != 2 {
		t.Errorf("expected two products that answer %q:\n%s", lacks, out)
	}
}
