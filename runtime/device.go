package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
)

// Capabilities is what a device can do and how large it is: name, UUID, PCI
// location, compute capability, memory, limits, copy engines, managed memory,
// stream priorities, cooperative launch, stream-ordered pools. It is taken once
// and never changes. Zero means unknown or absent. Which libraries are there is
// not among it.
type Capabilities = driver.Capabilities

// Device names one device. It is a small comparable value; the zero Device
// names none. It never depends on what is current on a thread.
type Device struct{ drv driver.Device }

// Name is the device's name: family, colon, ordinal, as in "cuda:1".
func (d Device) Name() string {
	if d.drv == nil {
		return "no device"
	}
	return d.drv.Name()
}

// String is Name.
func (d Device) String() string { return d.Name() }

// Ordinal is the device's number in its family, from 0; -1 of the zero Device.
func (d Device) Ordinal() int {
	if d.drv == nil {
		return -1
	}
	return d.drv.Ordinal()
}

// IsZero says whether d names no device.
func (d Device) IsZero() bool { return d.drv == nil }

// IsHost says whether d is of the host family.
func (d Device) IsHost() bool { return strings.HasPrefix(d.Name(), "host:") }

// Capabilities answers the snapshot; all callers share it and none changes it.
// The zero Device can do nothing.
func (d Device) Capabilities() *Capabilities {
	if d.drv == nil {
		return &Capabilities{}
	}
	return d.drv.Capabilities()
}

// Memory answers the device's free and total bytes now.
func (d Device) Memory() (free, total int64, err error) {
	if d.drv == nil {
		return 0, 0, zeroDevice("Device.Memory")
	}
	return d.drv.Memory()
}

// Err is nil, or why the device is lost.
func (d Device) Err() error {
	if d.drv == nil {
		return zeroDevice("Device.Err")
	}
	return d.drv.Err()
}

func zeroDevice(op string) error {
	return weir.Argf(op, "the zero Device; expected one from Get, Enumerate or At")
}

// Do runs fn with the device current on a locked OS thread, and restores the
// thread's previous device on every exit, panics included. Only foreign code
// that relies on a current device needs it; Weir never does.
func (d Device) Do(fn func() error) error {
	if d.drv == nil {
		return zeroDevice("Device.Do")
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	restore, err := d.drv.Select()
	if err != nil {
		return err
	}
	defer restore()
	return fn()
}

// Driver is for packages of this module.
func (d Device) Driver() driver.Device { return d.drv }

// process is what a process sees without starting anything: GPUs first, then the
// host family. The capability snapshots live as long as they do.
var process struct {
	mu       sync.Mutex // guards families; a family is made under it, which creates nothing
	families []driver.Family
}

// processFamilies answers the process's families. A host family whose device was
// lost is replaced: unlike a GPU's context it can be made anew.
func processFamilies() []driver.Family {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.families == nil {
		process.families = append(gpuFamilies(), host.New(host.Options{}))
	}
	last := len(process.families) - 1
	if d, err := process.families[last].Open(0); err != nil || d.Err() != nil {
		process.families = slices.Clone(process.families)
		process.families[last] = host.New(host.Options{})
	}
	return process.families
}

// families answers the installed runtime's families, else the process's.
func families() []driver.Family {
	if rt := installed.Load(); rt != nil {
		return rt.families
	}
	return processFamilies()
}

// Get finds a device by name: "cuda:1", "host:0", or a family's name alone for
// its first device. It creates nothing on the device. An unknown name is an
// ErrNoDevice that lists what there is.
func Get(name string) (Device, error) { return find(families(), name) }

func find(fams []driver.Family, name string) (Device, error) {
	family, number, numbered := strings.Cut(name, ":")
	ordinal := 0
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return Device{}, weir.Argf("runtime.Get", "device %q; expected a family and a number, as in host:0", name)
		}
		ordinal = n
	}
	for _, f := range fams {
		if f.Name() != family || ordinal >= f.Count() {
			continue
		}
		d, err := f.Open(ordinal)
		return Device{d}, err
	}
	var known []string
	for _, f := range fams {
		for i := range f.Count() {
			known = append(known, fmt.Sprintf("%s:%d", f.Name(), i))
		}
	}
	message := fmt.Sprintf("device %q; there are %s", name, strings.Join(known, ", "))
	if family != "host" {
		if why := noGPU(fams); why != nil {
			message += "; no GPU: " + why.Error()
		}
	}
	return Device{}, &weir.Error{Op: "runtime.Get", Kind: weir.KindLogic, Message: message, Err: weir.ErrNoDevice}
}

// Enumerate lists every visible device, GPUs first. It creates nothing.
func Enumerate() ([]Device, error) { return enumerate(families(), false) }

// enumerate passes over, if it is told to, GPUs that cannot be opened since they
// are lost.
func enumerate(fams []driver.Family, passOver bool) ([]Device, error) {
	var all []Device
	for _, f := range fams {
		for i := range f.Count() {
			d, err := f.Open(i)
			if passOver && lostGPU(f.Name() == "host", err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, Device{d})
		}
	}
	return all, nil
}

// Count is the number of visible devices.
func Count() int {
	n := 0
	for _, f := range families() {
		n += f.Count()
	}
	return n
}

// NoGPU says why no GPU can be used: none is visible, or all are lost. It is nil
// when one can.
func NoGPU() error { return noGPU(families()) }

func noGPU(fams []driver.Family) error {
	why := error(&weir.Error{Op: "cuda", Message: "this build has no CUDA; build with -tags cuda", Err: weir.ErrNotSupported})
	for _, f := range fams {
		if f.Name() == "host" {
			continue
		}
		if f.Count() == 0 {
			why = f.Unavailable()
			continue
		}
		var lost []error
		for i := range f.Count() {
			d, err := f.Open(i)
			if err == nil {
				err = d.Err()
			}
			if !errors.Is(err, weir.ErrDeviceLost) {
				return nil
			}
			lost = append(lost, err)
		}
		why = lost[0]
		if len(lost) > 1 {
			why = errors.Join(lost...)
		}
	}
	return why
}

type deviceKey struct{}

// On answers a context in which constructors make arrays on d.
func On(ctx context.Context, d Device) context.Context { return context.WithValue(ctx, deviceKey{}, d) }

// At is the device that constructors use under ctx: the one that On put there,
// else the default device.
func At(ctx context.Context) (Device, error) {
	if d, ok := ctx.Value(deviceKey{}).(Device); ok {
		return d, nil
	}
	return Default()
}
