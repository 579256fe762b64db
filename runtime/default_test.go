package runtime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

var noDriver = &weir.Error{Op: "cuda", Message: "libcuda.so.1 is not there; install the driver, 580 or newer", Err: weir.ErrNotSupported}

// machine is two host devices and n GPUs.
func machine(n int) []driver.Family {
	return []driver.Family{newGPUs(n, noDriver), host.New(host.Options{Devices: 2, MemoryBytes: deviceBytes})}
}

func TestTheDefaultDeviceFollowsTheOptions(t *testing.T) {
	type o = runtime.Options
	for _, c := range []struct {
		what     string
		gpus     int
		options  o
		enrolled string
		device   string
	}{
		{"every device; the first GPU", 2, o{}, "cuda:0 cuda:1 host:0 host:1", "cuda:0"},
		{"no GPU is valid", 0, o{}, "host:0 host:1", "host:0"},
		{"a list limits GPUs alone", 2, o{Devices: []string{"cuda:1"}}, "cuda:1 host:0 host:1", "cuda:1"},
		{"the first named is the default", 2, o{Devices: []string{"cuda:1", "cuda:0"}}, "cuda:0 cuda:1 host:0 host:1", "cuda:1"},
		{"a device named twice is one", 2, o{Devices: []string{"cuda:1", "cuda:1"}}, "cuda:1 host:0 host:1", "cuda:1"},
		{"a family's name is its first device", 2, o{Devices: []string{"cuda"}}, "cuda:0 host:0 host:1", "cuda:0"},
		{"naming a host device limits them too", 2, o{Devices: []string{"cuda:0", "host:1"}}, "cuda:0 host:1", "cuda:0"},
		{"naming host devices alone enrols no GPU", 2, o{Devices: []string{"host:1"}}, "host:1", "host:1"},
		{"a named default", 2, o{Default: "host:1"}, "cuda:0 cuda:1 host:0 host:1", "host:1"},
		{"a named default beats the list's order", 2, o{Devices: []string{"cuda:1", "cuda:0"}, Default: "cuda:0"}, "cuda:0 cuda:1 host:0 host:1", "cuda:0"},
		{"only: GPUs are not enrolled", 2, o{Host: runtime.HostOnly}, "host:0 host:1", "host:0"},
		{"only, with one of them named", 2, o{Host: runtime.HostOnly, Devices: []string{"host:1"}}, "host:1", "host:1"},
		{"never: a GPU is the default", 2, o{Host: runtime.HostNever}, "cuda:0 cuda:1 host:0 host:1", "cuda:0"},
		{"never: also when a host device is named first", 1, o{Host: runtime.HostNever, Devices: []string{"host:0", "cuda:0"}}, "cuda:0 host:0", "cuda:0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			start(t, machine(c.gpus), c.options)
			if got := names(); got != c.enrolled {
				t.Errorf("enrolled are %s; expected %s", got, c.enrolled)
			}
			d, err := runtime.Default()
			if err != nil || d.Name() != c.device {
				t.Errorf("the default is %v, %v; expected %s", d, err, c.device)
			}
			r, err := runtime.Here(context.Background())
			if err != nil || r.Device() != d || r != resources(c.device) {
				t.Errorf("constructors use %v, %v; expected the default", r.Device(), err)
			}
		})
	}
}

func TestNeverSaysWhyThereIsNoGPU(t *testing.T) {
	const never = "runtime.Default: no GPU is enrolled, and Options.Host says never to fall back to the host device"
	for _, c := range []struct {
		what     string
		families []driver.Family
		devices  []string
		want     string
	}{
		{"no driver", machine(0), nil, never + ": no such device: cuda: libcuda.so.1 is not there; install the driver, 580 or newer"},
		{"no CUDA in the build", machine(0)[1:], nil, never + ": no such device: cuda: this build has no CUDA; build with -tags cuda"},
		{"a list without them", machine(1), []string{"host:1"}, never},
	} {
		t.Run(c.what, func(t *testing.T) {
			start(t, c.families, runtime.Options{Host: runtime.HostNever, Devices: c.devices})
			d, err := runtime.Default()
			refuses(t, err, weir.ErrNoDevice, c.want)
			if !d.IsZero() {
				t.Errorf("it answers %v too", d)
			}
			if _, err := runtime.Here(context.Background()); err == nil || err.Error() != c.want {
				t.Errorf("constructors answer %v; expected the same", err)
			}
			// The host device is still there for those who ask for it.
			ctx := runtime.On(context.Background(), get("host:1"))
			if r, err := runtime.Here(ctx); err != nil || r.Device().Name() != "host:1" {
				t.Errorf("On(host:1) answers %v, %v", r, err)
			}
		})
	}
}

func TestStartRefusesDevicesThatAreNotThere(t *testing.T) {
	type o = runtime.Options
	for _, c := range []struct {
		gpus     int
		options  o
		sentinel error
		want     string
	}{
		{2, o{Devices: []string{"cuda:7"}}, weir.ErrNoDevice,
			`runtime.Get: device "cuda:7"; there are cuda:0, cuda:1, host:0, host:1`},
		{0, o{Devices: []string{"cuda:0"}}, weir.ErrNoDevice,
			`runtime.Get: device "cuda:0"; there are host:0, host:1; no GPU: cuda: libcuda.so.1 is not there; install the driver, 580 or newer`},
		{0, o{Devices: []string{"host:2"}}, weir.ErrNoDevice, `runtime.Get: device "host:2"; there are host:0, host:1`},
		{2, o{Devices: []string{""}}, weir.ErrNoDevice, `runtime.Get: device ""; there are cuda:0, cuda:1, host:0, host:1`},
		{2, o{Devices: []string{"cuda:x"}}, weir.ErrArgument,
			`runtime.Get: device "cuda:x"; expected a family and a number, as in host:0`},
		{2, o{Devices: []string{"cuda:-1"}}, weir.ErrArgument,
			`runtime.Get: device "cuda:-1"; expected a family and a number, as in host:0`},
		{2, o{Default: "cuda:2"}, weir.ErrNoDevice, `runtime.Get: device "cuda:2"; there are cuda:0, cuda:1, host:0, host:1`},
		{2, o{Devices: []string{"cuda:1"}, Default: "cuda:0"}, weir.ErrArgument,
			`runtime.Start: default device "cuda:0" is not enrolled; expected one of cuda:1, host:0, host:1`},
		{2, o{Host: runtime.HostOnly, Default: "cuda:0"}, weir.ErrArgument,
			`runtime.Start: default device "cuda:0" is not enrolled; expected one of host:0, host:1`},
		{2, o{Host: runtime.HostNever, Default: "host:0"}, weir.ErrArgument,
			`runtime.Start: default device "host:0", and Options.Host says that no host device is; expected a GPU`},
	} {
		_, err := runtime.StartFamilies(machine(c.gpus), c.options)
		refuses(t, err, c.sentinel, c.want)
	}
}

// broken is a family whose devices cannot be opened.
type broken struct{ *gpus }

func (broken) Open(int) (driver.Device, error) { return nil, noDriver }

func TestOnlyStartsBesideAGPUThatCannotBeOpened(t *testing.T) {
	fams := []driver.Family{broken{newGPUs(1, nil)}, host.New(host.Options{})}
	if _, err := runtime.StartFamilies(fams, runtime.Options{}); !errors.Is(err, noDriver) {
		t.Errorf("a start with every device answers %v; expected the GPU's failure", err)
	}
	start(t, fams, runtime.Options{Host: runtime.HostOnly})
	if got := names(); got != "host:0" {
		t.Errorf("enrolled are %s; expected host:0", got)
	}
}

// lostMachine is a machine of which some GPUs are lost, and what they answer.
func lostMachine(n int, lost ...int) (fams []driver.Family, says map[int]string) {
	fams, says = machine(n), map[int]string{}
	for _, i := range lost {
		d := must(fams[0].Open(i)).(gpu)
		d.Device.(interface{ Kill(error) }).Kill(errors.New("it burnt"))
		says[i] = d.Err().Error()
	}
	return fams, says
}

func TestAStartPassesOverGPUsThatAreLost(t *testing.T) {
	type o = runtime.Options
	for _, c := range []struct {
		what     string
		gpus     int
		lost     []int
		options  o
		enrolled string
		device   string
	}{
		{"the first of two", 2, []int{0}, o{}, "cuda:1 host:0 host:1", "cuda:1"},
		{"the last of two", 2, []int{1}, o{}, "cuda:0 host:0 host:1", "cuda:0"},
		{"the only one: as if there were none", 1, []int{0}, o{}, "host:0 host:1", "host:0"},
		{"both", 2, []int{0, 1}, o{}, "host:0 host:1", "host:0"},
		{"never, and one is left", 2, []int{0}, o{Host: runtime.HostNever}, "cuda:1 host:0 host:1", "cuda:1"},
		{"one that is not in the list", 2, []int{0}, o{Devices: []string{"cuda:1"}}, "cuda:1 host:0 host:1", "cuda:1"},
		{"only: none is looked at", 1, []int{0}, o{Host: runtime.HostOnly}, "host:0 host:1", "host:0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			fams, says := lostMachine(c.gpus, c.lost...)
			start(t, fams, c.options)
			if got := names(); got != c.enrolled {
				t.Errorf("enrolled are %s; expected %s", got, c.enrolled)
			}
			if d, err := runtime.Default(); err != nil || d.Name() != c.device {
				t.Errorf("the default is %v, %v; expected %s", d, err, c.device)
			}
			why := runtime.NoGPU()
			if len(c.lost) < c.gpus {
				if why != nil {
					t.Errorf("there is no GPU because %v; expected one", why)
				}
				return
			}
			want := says[0]
			for i := 1; i < c.gpus; i++ {
				want += "\n" + says[i]
			}
			refuses(t, why, weir.ErrDeviceLost, want)
			_, err := runtime.For(get("cuda:0"))
			refuses(t, err, weir.ErrDeviceLost, "runtime.For: cuda:0 is not enrolled; enrolled are host:0, host:1: no such device: "+says[0])
		})
	}
}

func TestNamingALostGPUIsAnError(t *testing.T) {
	fams, says := lostMachine(2, 0)
	for _, c := range []struct {
		options runtime.Options
		want    string
	}{
		{runtime.Options{Devices: []string{"cuda:1", "cuda:0"}}, "Device.NewStream on host:0 (HOST_DEVICE_LOST, code 1): " + says[0]},
		{runtime.Options{Default: "cuda:0"}, "runtime.Start on cuda:0: the default device is lost: " + says[0]},
	} {
		_, err := runtime.StartFamilies(fams, c.options)
		refuses(t, err, weir.ErrDeviceLost, c.want)
	}
	fams, says = lostMachine(1, 0)
	start(t, fams, runtime.Options{Host: runtime.HostNever})
	_, err := runtime.Default()
	refuses(t, err, weir.ErrDeviceLost, "runtime.Default: no GPU is enrolled, and Options.Host says never to fall back to the host device: no such device: "+says[0])
}

func TestOnNamesTheDeviceOfConstructors(t *testing.T) {
	start(t, machine(2), runtime.Options{Devices: []string{"cuda:0"}})
	ctx := context.Background()
	for _, name := range []string{"host:1", "cuda:0"} {
		on := runtime.On(ctx, get(name))
		if d, err := runtime.At(on); err != nil || d != get(name) {
			t.Errorf("At answers %v, %v; expected %s", d, err, name)
		}
		if d := must(runtime.At(runtime.On(on, get("host:0")))); d.Name() != "host:0" {
			t.Errorf("an inner On names %v; expected host:0", d)
		}
	}
	if d := must(runtime.At(ctx)); d.Name() != "cuda:0" {
		t.Errorf("without On it is %v; expected the default", d)
	}
	_, err := runtime.Here(runtime.On(ctx, get("cuda:1")))
	refuses(t, err, weir.ErrNoDevice, "runtime.For: cuda:1 is not enrolled; enrolled are cuda:0, host:0, host:1")
	_, err = runtime.Here(runtime.On(ctx, runtime.Device{}))
	refuses(t, err, weir.ErrArgument, "runtime.For: the zero Device; expected one from Get, Enumerate or At")
}

func TestADeviceOfAnEarlierRuntimeIsNamedAsSuch(t *testing.T) {
	first, err := runtime.StartFamilies(machine(0), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old := must(runtime.Default())
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, machine(0), runtime.Options{})
	_, err = runtime.For(old)
	refuses(t, err, weir.ErrNoDevice, "runtime.For: host:0, a device of an earlier runtime, is not enrolled; enrolled are host:0, host:1")
}
