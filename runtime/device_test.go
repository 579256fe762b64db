package runtime_test

import (
	"errors"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
)

func TestEveryLookupSharesOneSnapshot(t *testing.T) {
	fam, _ := hosts()
	want := must(fam.Open(1)).Capabilities()
	start(t, []driver.Family{fam}, runtime.Options{})
	all := must(runtime.Enumerate())
	if n := runtime.Count(); n != 2 || len(all) != n {
		t.Fatalf("Count is %d and Enumerate lists %v; expected 2 devices", n, all)
	}
	for i, d := range []runtime.Device{get("host:1"), get("host:1"), all[1], resources("host:1").Device()} {
		if d.Capabilities() != want {
			t.Errorf("lookup %d has a snapshot of its own", i)
		}
		if d != all[1] {
			t.Errorf("lookup %d answers another device", i)
		}
	}
	if get("host:0").Capabilities() == want {
		t.Error("two devices share a snapshot")
	}
	if get("host") != all[0] {
		t.Error("a family's name alone is not its first device")
	}
}

func TestASnapshotHoldsWhatTheDeviceIs(t *testing.T) {
	startHosts(t, runtime.Options{})
	c := get("host:0").Capabilities()
	if c.Name == "" || c.MemoryBytes != deviceBytes || c.Multiprocessors != goruntime.NumCPU() || !c.StreamOrderedPools ||
		!c.ConcurrentKernels || !c.UnifiedHostAddresses || c.PriorityGreatest > c.PriorityLeast {
		t.Errorf("got %+v", *c)
	}
}

func TestDiscoveryCreatesNothing(t *testing.T) {
	plan := startHosts(t, runtime.Options{})
	before := plan.Counts()
	for range 3 {
		for _, d := range must(runtime.Enumerate()) {
			_ = d.Capabilities()
			_ = get(d.Name())
		}
		runtime.Count()
		_ = runtime.NoGPU()
		must(runtime.Default())
	}
	after := plan.Counts()
	delete(before, fault.Any)
	for call, n := range after {
		if call != fault.FamilyOpen && call != fault.Any && n != before[call] {
			t.Errorf("discovery made %d calls of %s", n-before[call], call)
		}
	}
}

func TestDevicesAreVisibleWithoutARuntime(t *testing.T) {
	d := get("host:0")
	if all := must(runtime.Enumerate()); !slices.Contains(all, d) || runtime.Count() != len(all) {
		t.Errorf("Enumerate lists %v, Count says %d", all, runtime.Count())
	}
	if d.String() != "host:0" || d.Ordinal() != 0 || !d.IsHost() || d.IsZero() || d.Err() != nil {
		t.Errorf("host:0 describes itself as %v, %d, %t, %t, %v", d, d.Ordinal(), d.IsHost(), d.IsZero(), d.Err())
	}
	if free, total, err := d.Memory(); err != nil || free <= 0 || free > total {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
}

func TestNoGPUSaysWhyUnlessThereIsOne(t *testing.T) {
	for n, want := range []error{noDriver, nil} {
		rt, err := runtime.StartFamilies(machine(n), runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := runtime.NoGPU(); got != want && !errors.Is(got, want) {
			t.Errorf("with %d GPUs it answers %v; expected %v", n, got, want)
		}
		rt.Close()
	}
}

func TestTheZeroDeviceNamesNoneAndIsRefused(t *testing.T) {
	var d runtime.Device
	if d.Name() != "no device" || d.Ordinal() != -1 || !d.IsZero() || d.IsHost() || *d.Capabilities() != (runtime.Capabilities{}) {
		t.Errorf("it describes itself as %v, %d, %+v", d, d.Ordinal(), *d.Capabilities())
	}
	const want = ": the zero Device; expected one from Get, Enumerate or At"
	_, _, err := d.Memory()
	refuses(t, err, weir.ErrArgument, "Device.Memory"+want)
	refuses(t, d.Err(), weir.ErrArgument, "Device.Err"+want)
	refuses(t, d.Do(func() error { return nil }), weir.ErrArgument, "Device.Do"+want)
	_, err = runtime.NewResources(d, runtime.ResourceOptions{})
	refuses(t, err, weir.ErrArgument, "runtime.NewResources"+want)
}

// selecting is a device that keeps which device is current, as a driver does
// for a thread.
type selecting struct {
	driver.Device
	current *string
}

func (s selecting) Select() (func(), error) {
	restore, err := s.Device.Select()
	if err != nil {
		return nil, err
	}
	before := *s.current
	*s.current = s.Name()
	return func() { *s.current = before; restore() }, nil
}

type selectingFamily struct {
	driver.Family
	devices []driver.Device
}

func (f selectingFamily) Open(i int) (driver.Device, error) { return f.devices[i], nil }

func TestDoRestoresTheCurrentDeviceOnEveryExit(t *testing.T) {
	inner, plan := hosts()
	current := "before"
	fam := selectingFamily{Family: inner}
	for i := range inner.Count() {
		fam.devices = append(fam.devices, selecting{must(inner.Open(i)), &current})
	}
	start(t, []driver.Family{fam}, runtime.Options{})
	d, other := get("host:0"), get("host:1")

	during := func(want string, then func() error) func() error {
		return func() error {
			if current != want {
				t.Errorf("current is %s; expected %s", current, want)
			}
			return then()
		}
	}
	if err := d.Do(during("host:0", func() error {
		return other.Do(during("host:1", func() error { return nil }))
	})); err != nil || current != "before" {
		t.Errorf("after a return current is %s, %v", current, err)
	}
	cause := errors.New("cause")
	if err := d.Do(during("host:0", func() error { return cause })); err != cause || current != "before" {
		t.Errorf("after an error current is %s; the error is %v, expected the function's own", current, err)
	}
	func() {
		defer func() {
			if r := recover(); r != cause || current != "before" {
				t.Errorf("after a panic of %v current is %s", r, current)
			}
		}()
		_ = d.Do(func() error { panic(cause) })
	}()
	plan.FailNth(fault.DeviceSelect, 1, nil)
	if err := d.Do(func() error { t.Error("ran without its device"); return nil }); !errors.Is(err, fault.ErrInjected) || current != "before" {
		t.Errorf("a device that cannot be selected: %v, current is %s", err, current)
	}
}

func TestLookupsAndStartsAtOnceAreSafe(t *testing.T) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if d, err := runtime.Default(); err == nil {
					_ = d.Capabilities()
					if r, err := runtime.For(d); err == nil {
						_ = r.Options()
					}
				} else if !errors.Is(err, weir.ErrNotStarted) {
					t.Error(err)
				}
				_, _ = runtime.Enumerate()
			}
		})
	}
	for range 20 {
		rt, err := runtime.Start(runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}
