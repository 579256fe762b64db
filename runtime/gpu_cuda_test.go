//go:build cuda

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// simulated skips the test where the driver is no simulator, and answers the
// simulator's file.
func simulated(t testing.TB) string {
	t.Helper()
	file := cudatest.Simulator()
	if file == "" {
		t.Skip("the driver is no simulator")
	}
	return file
}

// startsVariable has a child process print how starts go.
const startsVariable = "WEIR_RUNTIME_STARTS_TEST"

// TestStarts prints what each way of starting answers; others run it.
func TestStarts(t *testing.T) {
	if os.Getenv(startsVariable) == "" {
		t.Skip("run by other tests")
	}
	say := func(what string, err error) { fmt.Printf("> %s: %v\n", what, err) }
	say("NoGPU", runtime.NoGPU())
	for _, o := range []runtime.Options{{}, {Host: runtime.HostOnly}, {Host: runtime.HostNever}, {Devices: []string{"cuda:0"}}} {
		what := fmt.Sprintf("Host %d, Devices %v", o.Host, o.Devices)
		rt, err := runtime.Start(o)
		if err != nil {
			say(what, err)
			continue
		}
		d, err := runtime.Default()
		if err == nil {
			what += " on " + d.Name()
			s := must(must(runtime.For(d)).Streams().Acquire(context.Background()))
			err = errors.Join(s.Synchronize(context.Background()), s.Release())
		}
		say(what, errors.Join(err, rt.Close()))
	}
}

// starts runs TestStarts with some variables, and answers its lines.
func starts(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStarts$")
	cmd.Env = append(append(os.Environ(), startsVariable+"=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if said, ok := strings.CutPrefix(line, "> "); ok {
			lines = append(lines, said)
		}
	}
	return strings.Join(lines, "")
}

func TestWithoutAGPUStartFallsBackToTheHostAndSaysWhyWhenAsked(t *testing.T) {
	lines := func(why string) string {
		return fmt.Sprintf(`NoGPU: %[1]s
Host 0, Devices [] on host:0: <nil>
Host 1, Devices [] on host:0: <nil>
Host 2, Devices []: runtime.Default: no GPU is enrolled, and Options.Host says never to fall back to the host device: no such device: %[1]s
Host 0, Devices [cuda:0]: runtime.Get: device "cuda:0"; there are host:0; no GPU: %[1]s
`, why)
	}
	t.Run("no driver", func(t *testing.T) {
		empty := t.TempDir()
		got := starts(t, "WEIR_CUDA_LIBRARY_PATH="+empty, "LD_LIBRARY_PATH=", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=")
		if !strings.Contains(got, "was found neither") {
			t.Skip("the system has a driver")
		}
		if diff := cmp.Diff(lines("cuda: libcuda.so.1 was found neither in WEIR_CUDA_LIBRARY_PATH ("+empty+") nor where the system keeps libraries: "+
			"libcuda.so.1: cannot open shared object file: No such file or directory"), got); diff != "" {
			t.Error(diff)
		}
	})
	for _, c := range []struct{ what, variable, why string }{
		{"a driver that is too old", "WEIR_SIM_DRIVER_VERSION=11080", "cuda: %s is the driver of CUDA 11.8; expected 12.0 or later"},
		{"no device", "WEIR_SIM_DEVICES=0", "cuda: cuInit of %s answers CUDA_ERROR_NO_DEVICE (100)"},
		{"none made visible", "CUDA_VISIBLE_DEVICES=", `cuda: cuInit of %s answers CUDA_ERROR_NO_DEVICE (100), with CUDA_VISIBLE_DEVICES=""`},
		{"one made visible that is not there", "CUDA_VISIBLE_DEVICES=7", `cuda: cuInit of %s answers CUDA_ERROR_NO_DEVICE (100), with CUDA_VISIBLE_DEVICES="7"`},
		{"a word made visible", "CUDA_VISIBLE_DEVICES=all", `cuda: cuInit of %s answers CUDA_ERROR_NO_DEVICE (100), with CUDA_VISIBLE_DEVICES="all"`},
	} {
		t.Run(c.what, func(t *testing.T) {
			file := simulated(t)
			if diff := cmp.Diff(lines(fmt.Sprintf(c.why, file)), starts(t, c.variable)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithGPUsStartEnrolsThem(t *testing.T) {
	simulated(t)
	want := `NoGPU: <nil>
Host 0, Devices [] on cuda:0: <nil>
Host 1, Devices [] on host:0: <nil>
Host 2, Devices [] on cuda:0: <nil>
Host 0, Devices [cuda:0] on cuda:0: <nil>
`
	if diff := cmp.Diff(want, starts(t, "CUDA_VISIBLE_DEVICES=1,0,7")); diff != "" {
		t.Error(diff)
	}
}

// gpuWorld is a family of its own over the simulated GPUs, as a runtime that was
// lost cannot have its GPUs back, and a host device.
func gpuWorld(t testing.TB) []driver.Family {
	t.Helper()
	simulated(t)
	return []driver.Family{cuda.New(), host.New(host.Options{})}
}

// nothing checks that the simulator has nothing of a runtime.
func nothing(t testing.TB) {
	t.Helper()
	if left := cudatest.Left(); left != "" {
		t.Error(left)
	}
}

// eventfds is how many eventfds the process has.
func eventfds(t testing.TB) (n int) {
	t.Helper()
	for _, f := range must(os.ReadDir("/proc/self/fd")) {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.Contains(to, "eventfd") {
			n++
		}
	}
	return n
}

// awaitEventfds waits until there are that many: the reader of notifications ends
// on its own.
func awaitEventfds(t testing.TB, want int) {
	t.Helper()
	for deadline := time.After(time.Minute); eventfds(t) != want; {
		select {
		case <-deadline:
			t.Fatalf("there are %d eventfds; expected %d", eventfds(t), want)
		default:
			goruntime.Gosched()
		}
	}
}

// TestAStartOnGPUsMakesStreamsAloneAndCloseLeavesNothing leaves goroutines to
// goleak.
func TestAStartOnGPUsMakesStreamsAloneAndCloseLeavesNothing(t *testing.T) {
	families := gpuWorld(t)
	r, w, err := os.Pipe() // has Go's poller make its eventfd
	if err := errors.Join(err, r.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	awaitEventfds(t, 1)
	rt := must(runtime.StartFamilies(families, runtime.Options{}))
	for _, kind := range []string{"event", "pool", "allocation", "host-allocation", "byte", "cublas", "cusolver"} {
		if n := cudatest.Live(kind); n != 0 {
			t.Errorf("a start made %d of kind %s", n, kind)
		}
	}
	// On each device the pool's, two for memory, and one that asks how the context is.
	if n, want := cudatest.Live("stream"), families[0].Count()*(stream.DefaultCount+3); n != want {
		t.Errorf("a start made %d streams; expected %d", n, want)
	}
	s := must(must(runtime.Here(context.Background())).Streams().Acquire(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := must(s.Submit())
	release := must(cudatest.Stall(d))
	c := must(s.Record())
	wait := make(chan error)
	before := cudatest.Count("cuLaunchHostFunc")
	go func() { wait <- c.Wait(ctx) }()
	for cudatest.Count("cuLaunchHostFunc") == before { // until it has asked for a notification
		goruntime.Gosched()
	}
	release()
	if err := errors.Join(<-wait, s.Release()); err != nil {
		t.Error(err)
	}
	if n := eventfds(t); n != 2 {
		t.Errorf("there are %d eventfds; expected one more, of the reader of notifications", n)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	nothing(t)
	awaitEventfds(t, 1)
}

// TestALostGPUTakesTheOthersWithItAndTheHostGoesOn is of CUDA, where a fault on one
// GPU ends every context of the process.
func TestALostGPUTakesTheOthersWithItAndTheHostGoesOn(t *testing.T) {
	families := gpuWorld(t)
	rt := must(runtime.StartFamilies(families, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 2}}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dead, neighbour, host := resources("cuda:0"), resources("cuda:1"), resources("host:0")
	var held []stream.Stream
	var waits []func() error
	for range 2 {
		s := must(dead.Streams().Acquire(ctx))
		defer must(cudatest.Stall(must(s.Submit())))()
		c := must(s.Record())
		held = append(held, s)
		waits = append(waits,
			func() error { return c.Wait(ctx) },                  // with a notification
			func() error { return c.Wait(context.Background()) }, // in the driver
			func() error { _, err := dead.Streams().Acquire(ctx); return err })
	}
	// Work of the other device that waits for the dead one's, and work that does not.
	other := must(neighbour.Streams().Acquire(ctx))
	if err := other.Wait(must(held[0].Record())); err != nil {
		t.Fatal(err)
	}
	alone := must(neighbour.Streams().Acquire(ctx))
	defer must(cudatest.Stall(must(alone.Submit())))()
	c := must(alone.Record())
	waits = append(waits,
		func() error { return other.Synchronize(ctx) },
		func() error { return c.Wait(ctx) },
		func() error { return c.Wait(context.Background()) },
		func() error { _, err := neighbour.Streams().Acquire(ctx); return err })
	answers := make(chan error, len(waits))
	for _, wait := range waits {
		go func() { answers <- wait() }()
	}
	for {
		_, _, _, waiting := dead.Streams().Counts()
		if _, _, _, more := neighbour.Streams().Counts(); waiting+more == 3 {
			break
		}
		goruntime.Gosched()
	}
	cause := cudatest.Kill(dead.Device().Driver())
	for range waits {
		err := <-answers
		if !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, cause) || !strings.Contains(weir.Report(err), "CUDA_ERROR_ILLEGAL_ADDRESS (700)") {
			t.Errorf("a waiter answers %v; expected %v", err, cause)
		}
	}
	if err := neighbour.Device().Err(); !errors.Is(err, cause) {
		t.Errorf("the neighbour's error is %v; expected the loss", err)
	}
	s := must(host.Streams().Acquire(ctx))
	if err := errors.Join(s.Synchronize(ctx), s.Release(), host.Device().Err()); err != nil {
		t.Errorf("the host device: %v", err)
	}
	for _, s := range append(held, other, alone) {
		if err := s.Release(); err != nil && !errors.Is(err, cause) {
			t.Errorf("Release answers %v", err)
		}
	}
	closed := make(chan error)
	go func() { closed <- rt.Close() }()
	select {
	case err := <-closed:
		if !errors.Is(err, cause) || strings.Count(err.Error(), "\n") > 1 {
			t.Errorf("Close answers %v; expected the loss, once a device", err)
		}
	case <-ctx.Done():
		t.Fatal("Close does not end")
	}

	// The process's family still has the lost devices.
	_, err := runtime.StartFamilies(families, runtime.Options{Devices: []string{"cuda:0"}})
	refuses(t, err, cause, "Device.NewStream on cuda:0 (CUDA_ERROR_ILLEGAL_ADDRESS, code 700): "+dead.Device().Err().Error())
	rt = must(runtime.StartFamilies(families, runtime.Options{}))
	if got := names(); got != "host:0" {
		t.Errorf("without the lost devices %s are enrolled; expected host:0", got)
	}
	if d := must(runtime.Default()); d.Name() != "host:0" || !errors.Is(runtime.NoGPU(), cause) {
		t.Errorf("without the lost devices the default is %v, and no GPU is there because %v", d, runtime.NoGPU())
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	nothing(t)
	cudatest.Revive()
	rt = must(runtime.StartFamilies(gpuWorld(t), runtime.Options{}))
	s = must(must(runtime.Here(ctx)).Streams().Acquire(ctx))
	if err := errors.Join(s.Synchronize(ctx), s.Release(), rt.Close()); err != nil {
		t.Errorf("after a revival: %v", err)
	}
	nothing(t)
}

func TestWaitersGetOnThoughCallbacksNeverCome(t *testing.T) {
	rt := must(runtime.StartFamilies(gpuWorld(t), runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 1}}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	streams := resources("cuda:0").Streams()
	s := must(streams.Acquire(ctx))
	release := must(cudatest.Stall(must(s.Submit())))
	c := must(s.Record())
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	const lost = 2 // one for each waiter
	cudatest.DropCallbacks(lost)
	before := cudatest.Count("cuLaunchHostFunc")
	answers := make(chan error)
	go func() { answers <- c.Wait(ctx) }()
	go func() {
		s, err := streams.Acquire(ctx)
		if err == nil {
			err = s.Release()
		}
		answers <- err
	}()
	for cudatest.Count("cuLaunchHostFunc") < before+lost { // both have armed theirs
		goruntime.Gosched()
	}
	release()
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a waiter answers %v", err)
		}
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	nothing(t) // the lost notifications are given up too
}
