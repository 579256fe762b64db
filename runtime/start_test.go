package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// nextLine is the line after the one that called it.
func nextLine() string {
	_, file, line, _ := goruntime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line+1)
}

func TestASecondStartSaysWhereTheFirstWasMade(t *testing.T) {
	first := nextLine()
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	second := nextLine()
	_, err = runtime.Start(runtime.Options{})
	refuses(t, err, weir.ErrBusy, "runtime.Start: a runtime is already started, at "+first+"; close it first")
	var e *weir.Error
	if !errors.As(err, &e) || e.Site != second {
		t.Errorf("the error's own site is %q; expected %q", e.Site, second)
	}
}

func TestASecondStartLeavesTheFirstAsItWasAndKeepsNothing(t *testing.T) {
	start(t, []driver.Family{host.New(host.Options{})}, runtime.Options{})
	before := resources("host:0")
	fam, plan := hosts()
	if _, err := runtime.StartFamilies([]driver.Family{fam}, runtime.Options{}); !errors.Is(err, weir.ErrBusy) {
		t.Fatalf("got %v; expected ErrBusy", err)
	}
	if resources("host:0") != before {
		t.Error("the resources of the first start changed")
	}
	if n := plan.Counts(); n[fault.DeviceNewStream] != n[fault.StreamDestroy] {
		t.Errorf("the refused start made %d streams and destroyed %d", n[fault.DeviceNewStream], n[fault.StreamDestroy])
	}
}

func TestOfManyStartsAtOnceOneSucceeds(t *testing.T) {
	var wg sync.WaitGroup
	started := make([]*runtime.Runtime, 16)
	for i := range started {
		wg.Go(func() {
			rt, err := runtime.StartFamilies([]driver.Family{host.New(host.Options{})}, runtime.Options{})
			if err != nil && !errors.Is(err, weir.ErrBusy) {
				t.Error(err)
			}
			started[i] = rt
		})
	}
	wg.Wait()
	started = slices.DeleteFunc(started, func(rt *runtime.Runtime) bool { return rt == nil })
	if len(started) != 1 {
		t.Fatalf("%d starts succeeded; expected 1", len(started))
	}
	if err := started[0].Close(); err != nil {
		t.Error(err)
	}
}

func TestNothingIsFoundUnlessARuntimeIsStarted(t *testing.T) {
	d := get("host:0") // visible without one
	check := func() {
		t.Helper()
		const hint = ": call runtime.Start first"
		_, err := runtime.Default()
		refuses(t, err, weir.ErrNotStarted, "runtime.Default"+hint)
		_, err = runtime.At(context.Background())
		refuses(t, err, weir.ErrNotStarted, "runtime.Default"+hint)
		_, err = runtime.For(d)
		refuses(t, err, weir.ErrNotStarted, "runtime.For"+hint)
		_, err = runtime.Here(runtime.On(context.Background(), d))
		refuses(t, err, weir.ErrNotStarted, "runtime.For"+hint)
		_, err = runtime.Enrolled()
		refuses(t, err, weir.ErrNotStarted, "runtime.Enrolled"+hint)
	}
	check()
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.For(d); err != nil {
		t.Error(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	check()
}

func TestAProcessCanStartAgainAfterClose(t *testing.T) {
	for range 3 {
		rt, err := runtime.Start(runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClosingARefusedOrOldRuntimeLeavesTheNewOne(t *testing.T) {
	old, err := runtime.Start(runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old.Close()
	startHosts(t, runtime.Options{})
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	if _, err := runtime.Default(); err != nil {
		t.Errorf("closing the old runtime again took the new one's lookup: %v", err)
	}
}

func TestStartRefusesOptionsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		options runtime.Options
		want    string
	}{
		{runtime.Options{HostDevices: -1}, "runtime.Start: HostDevices -1; expected 0 to 64"},
		{runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: -1}}, "stream.NewPool: count -1; expected 1 to 4096"},
		{runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 4097}}, "stream.NewPool: count 4097; expected 1 to 4096"},
		{runtime.Options{ResourceOptions: runtime.ResourceOptions{MemoryLimit: -5}}, "runtime.NewResources: memory limit -5; expected 0 or more bytes"},
		{runtime.Options{Host: runtime.HostOnly, ResourceOptions: runtime.ResourceOptions{StreamPriority: 3}},
			"Device.NewStream on host:0: priority 3; expected 0 (greatest) to 0 (least)"},
	} {
		rt, err := runtime.Start(c.options)
		refuses(t, err, weir.ErrArgument, c.want)
		if rt != nil {
			t.Errorf("%+v was refused and answered a runtime all the same", c.options)
		}
	}
	if _, err := runtime.Default(); !errors.Is(err, weir.ErrNotStarted) {
		t.Errorf("a refused start left a runtime installed: %v", err)
	}
}

func TestHostDevicesAreAsManyAsAsked(t *testing.T) {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly, HostDevices: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if got, want := names(), "host:0 host:1 host:2"; got != want {
		t.Errorf("enrolled are %s; expected %s", got, want)
	}
}

func names() string {
	var names []string
	for _, r := range must(runtime.Enrolled()) {
		names = append(names, r.Device().Name())
	}
	return strings.Join(names, " ")
}

// The nth call of a start fails: it answers that failure, installs nothing and
// gives everything back.
func TestAStartThatFailsAnywhereGivesEverythingBack(t *testing.T) {
	for n := 1; ; n++ {
		fam, plan := hosts()
		plan.FailNth(fault.Any, n, nil)
		rt, err := runtime.StartFamilies([]driver.Family{fam}, runtime.Options{})
		if err == nil { // the call was not reached
			if n < 20 {
				t.Errorf("only %d calls were made", n-1)
			}
			if err := rt.Close(); err != nil && !errors.Is(err, fault.ErrInjected) {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, fault.ErrInjected) {
			t.Errorf("call %d: %v", n, err)
		}
		if _, err := runtime.Default(); !errors.Is(err, weir.ErrNotStarted) {
			t.Fatalf("call %d: a runtime is installed: %v", n, err)
		}
		c := plan.Counts()
		if failed := c[fault.DeviceNewStream] - c[fault.StreamDestroy]; failed != 0 && failed != 1 {
			t.Errorf("call %d failed: %d streams were made and %d destroyed", n, c[fault.DeviceNewStream], c[fault.StreamDestroy])
		}
	}
}

func TestStreamCountHandlesAndLanesAreIndependent(t *testing.T) {
	plan := startHosts(t, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 3}})
	if got := resources("host:1").Streams().Size(); got != 3 {
		t.Errorf("%d streams; expected 3", got)
	}
	// Two devices, three streams each, and two for memory.
	if got := plan.Counts()[fault.DeviceNewStream]; got != 2*(3+2) {
		t.Errorf("%d streams were made; expected 10", got)
	}
}

func TestStartingMakesNoHandlesPoolsOrMemory(t *testing.T) {
	plan := startHosts(t, runtime.Options{})
	for _, call := range []fault.Call{fault.DeviceNewBLAS, fault.DeviceNewSolver, fault.DeviceNewPool, fault.DeviceAlloc,
		fault.DeviceAllocHost, fault.PoolAlloc, fault.DeviceNewEvent, fault.DeviceSelect} {
		if n := plan.Counts()[call]; n != 0 {
			t.Errorf("starting made %d calls of %s", n, call)
		}
	}
}

func TestOptionsAnswerTheDefaultsFilledIn(t *testing.T) {
	startHosts(t, runtime.Options{})
	want := runtime.ResourceOptions{Streams: stream.DefaultCount, ReleaseThreshold: deviceBytes / 8, ExitWait: runtime.DefaultExitWait}
	if got := resources("host:0").Options(); got != want {
		t.Errorf("got %+v; expected %+v", got, want)
	}
	r := must(runtime.NewResources(get("host:1"), runtime.ResourceOptions{Streams: 2, MemoryLimit: 100, ReleaseThreshold: -1}))
	if got, want := r.Options(), (runtime.ResourceOptions{Streams: 2, MemoryLimit: 100, ExitWait: runtime.DefaultExitWait}); got != want {
		t.Errorf("got %+v; expected %+v", got, want)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestAWordOfTheEnvironmentAsksForStacks(t *testing.T) {
	for value, want := range map[string]bool{"": false, "leaks": true, "other,leaks": true, "leaks,other": true, "leaksome": false} {
		t.Setenv("WEIR_DEBUG", value)
		rt, err := runtime.Start(runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := resources("host:0").Options().Debug; got != want {
			t.Errorf("WEIR_DEBUG=%q: Debug is %t; expected %t", value, got, want)
		}
		rt.Close()
	}
}
