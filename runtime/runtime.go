package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/garbage"
	"github.com/weirgo/weir/scheduler"
)

// HostMode says what the host device is for.
type HostMode int

const (
	// HostFallback: it is the default device when there is no GPU.
	HostFallback HostMode = iota
	// HostOnly: GPUs are not enrolled.
	HostOnly
	// HostNever: it is never the default; without a GPU there is no default,
	// and its lookup says why there is no GPU.
	HostNever
)

// LeakMode says what Close does about things that still live.
type LeakMode int

const (
	LeakReport LeakMode = iota // Close's error lists them
	LeakAbort                  // they are printed on standard error and the process exits with status 1
)

// Options configures a runtime. The zero value enrols every device.
type Options struct {
	// Devices limits the enrolled GPUs to those named ("cuda:1"); host devices
	// are enrolled in any case, except that naming some limits them too.
	Devices []string
	// Default names the default device, which must be enrolled. Empty: the
	// first enrolled one, as Host says.
	Default string
	Host    HostMode
	// HostDevices is how many host devices there are, at most MaxHostDevices; 0
	// is 1.
	HostDevices int

	ResourceOptions

	// Tasks configures the scheduler of tasks, whose arenas are the enrolled
	// devices. How many lanes there are is independent of the number of streams
	// and of handles.
	Tasks scheduler.Options
	// Scheduler is one to use instead, such as a debug scheduler; Close closes it.
	Scheduler scheduler.Scheduler

	OnLeak LeakMode
}

// Runtime is the guard of the installed services. Nothing but main needs it.
type Runtime struct {
	families  []driver.Family
	options   Options
	enrolled  []*Resources
	scheduler scheduler.Scheduler
	fallback  Device // the default; zero when there is none
	noDefault error
	site      string
	closed    atomic.Bool
}

var installed atomic.Pointer[Runtime]

// Start installs the process's services. Only one installation may be active;
// a second one is an error that says where the first was made.
//
// A GPU that was lost stays lost for the process, and a start that does not name
// it passes it over: the other GPUs are enrolled, and with none left it is as if
// there were none, and NoGPU says why. Naming a lost GPU in Devices or Default
// is an ErrDeviceLost.
func Start(o Options) (*Runtime, error) {
	site := caller()
	if o.HostDevices < 0 || o.HostDevices > MaxHostDevices {
		return nil, weir.Argf("runtime.Start", "HostDevices %d; expected 0 to %d", o.HostDevices, MaxHostDevices)
	}
	if o.HostDevices > 0 {
		return start(append(gpuFamilies(), host.New(host.Options{Devices: o.HostDevices})), o, site)
	}
	return start(processFamilies(), o, site)
}

// MaxHostDevices bounds Options.HostDevices.
const MaxHostDevices = 64

// StartFamilies is Start over other device families, for tests of this module.
func StartFamilies(fams []driver.Family, o Options) (*Runtime, error) {
	return start(fams, o, caller())
}

func start(fams []driver.Family, o Options, site string) (*Runtime, error) {
	if o.Host < HostFallback || o.Host > HostNever || o.OnLeak < LeakReport || o.OnLeak > LeakAbort {
		return nil, weir.Argf("runtime.Start", "Host %d and OnLeak %d; expected one of their constants each", o.Host, o.OnLeak)
	}
	for _, word := range strings.Split(os.Getenv("WEIR_DEBUG"), ",") {
		o.Debug = o.Debug || word == "leaks"
	}
	rt := &Runtime{families: fams, options: o, site: site}
	if err := rt.schedule(); err != nil {
		return nil, err
	}
	if err := rt.enrol(); err != nil {
		return nil, errors.Join(err, shut(rt.enrolled...))
	}
	if !installed.CompareAndSwap(nil, rt) {
		first := "elsewhere"
		if other := installed.Load(); other != nil {
			first = "at " + other.site
		}
		return nil, errors.Join(&weir.Error{Op: "runtime.Start", Kind: weir.KindLogic, Site: site, Err: weir.ErrBusy,
			Message: "a runtime is already started, " + first + "; close it first"}, shut(rt.enrolled...))
	}
	scheduler.Install(rt.scheduler)
	return rt, nil
}

// schedule makes the scheduler.
func (rt *Runtime) schedule() (err error) {
	if rt.scheduler = rt.options.Scheduler; rt.scheduler == nil {
		o := rt.options.Tasks
		if rt.options.Debug {
			o.Level = scheduler.Full
		}
		rt.scheduler, err = scheduler.NewPool(o)
	}
	return err
}

// lostGPU says whether err is the loss of a GPU. A host device is made anew.
func lostGPU(host bool, err error) bool { return !host && errors.Is(err, weir.ErrDeviceLost) }

// enrol makes the resources of every chosen device and finds the default.
func (rt *Runtime) enrol() error {
	visible := rt.families
	if rt.options.Host == HostOnly { // a GPU that cannot be opened is no hindrance
		visible = slices.DeleteFunc(slices.Clone(visible), func(f driver.Family) bool { return f.Name() != "host" })
	}
	named := map[bool]bool{} // whether host devices, GPUs are named
	var chosen []Device
	for _, name := range rt.options.Devices {
		d, err := find(rt.families, name)
		if err != nil {
			return err
		}
		named[d.IsHost()] = true
		chosen = append(chosen, d)
	}
	all, err := enumerate(visible, true)
	if err != nil {
		return err
	}
	for _, d := range all {
		limited := named[d.IsHost()] || !d.IsHost() && len(rt.options.Devices) > 0
		if limited && !slices.Contains(chosen, d) {
			continue
		}
		r, err := NewResources(d, rt.options.ResourceOptions)
		if lostGPU(d.IsHost(), err) && !slices.Contains(chosen, d) {
			continue
		}
		if err != nil {
			return err
		}
		rt.enrolled = append(rt.enrolled, r)
	}
	return rt.chooseDefault(chosen)
}

func (rt *Runtime) chooseDefault(chosen []Device) error {
	if name := rt.options.Default; name != "" {
		d, err := find(rt.families, name)
		if err != nil {
			return err
		}
		if lost := d.Err(); rt.of(d) == nil && lost != nil {
			return &weir.Error{Op: "runtime.Start", Device: d.Name(), Message: "the default device is lost", Err: lost}
		}
		if rt.of(d) == nil {
			return weir.Argf("runtime.Start", "default device %q is not enrolled; expected one of %s", name, rt.names())
		}
		if d.IsHost() && rt.options.Host == HostNever {
			return weir.Argf("runtime.Start", "default device %q, and Options.Host says that no host device is; expected a GPU", name)
		}
		rt.fallback = d
		return nil
	}
	for _, d := range chosen { // the first that the caller named
		if rt.of(d) != nil && !(d.IsHost() && rt.options.Host == HostNever) {
			rt.fallback = d
			return nil
		}
	}
	for _, r := range rt.enrolled {
		if !r.dev.IsHost() || rt.options.Host != HostNever {
			rt.fallback = r.dev
			return nil
		}
	}
	cause := weir.ErrNoDevice
	if why := noGPU(rt.families); why != nil {
		cause = fmt.Errorf("%w: %w", cause, why)
	}
	rt.noDefault = &weir.Error{Op: "runtime.Default", Err: cause,
		Message: "no GPU is enrolled, and Options.Host says never to fall back to the host device"}
	return nil
}

// of is the resources of a device; nil if it is not enrolled. There are few, and
// every operation asks: to look at each takes a third of the time of a map.
func (rt *Runtime) of(d Device) *Resources {
	for _, r := range rt.enrolled {
		if r.dev == d {
			return r
		}
	}
	return nil
}

// enrolls says whether a device of that name is enrolled.
func (rt *Runtime) enrolls(name string) bool {
	return slices.ContainsFunc(rt.enrolled, func(r *Resources) bool { return r.dev.Name() == name })
}

func (rt *Runtime) names() string {
	var names []string
	for _, r := range rt.enrolled {
		names = append(names, r.dev.Name())
	}
	return strings.Join(names, ", ")
}

// Close takes the services away. Tasks come to their end first, with everything
// at their hands; those that can't are named, see scheduler.Pool.Close. Then it
// waits for jobs of native libraries, as Options.ExitWait says, removes the global
// lookup, collects garbage so that unreachable arrays are no leaks, reports what
// still lives or runs as Options.OnLeak says, drains provider work and streams,
// destroys providers, then the device sets. It joins everything that went wrong. A
// second Close does nothing.
func (rt *Runtime) Close() error {
	if rt.closed.Swap(true) {
		return nil
	}
	tasks := rt.scheduler.Close()
	for _, r := range rt.enrolled {
		tasks = errors.Join(tasks, r.each(StageLog, Service.Drain), r.each(StageSession, Service.Drain))
	}
	scheduler.Install(nil)
	installed.CompareAndSwap(rt, nil)
	collect(func() bool { return len(rt.live()) > 0 })
	leaks := append(apart(tasks), leakErrors(rt.live())...)
	if len(leaks) > 0 && rt.options.OnLeak == LeakAbort {
		fmt.Fprintf(os.Stderr, "weir: the runtime was closed while %d things are still held:\n%s", len(leaks), weir.Report(errors.Join(leaks...)))
		os.Exit(1)
	}
	return errors.Join(errors.Join(leaks...), shut(rt.enrolled...))
}

func (rt *Runtime) live() []Leak {
	var live []Leak
	for _, r := range rt.enrolled {
		live = append(live, r.Live()...)
	}
	return live
}

// collect runs Go's collector, and waits for the cleanups that it found, while
// something is held that may be garbage.
func collect(held func() bool) {
	for range 3 {
		if !held() {
			return
		}
		Collect()
	}
}

// Collect runs Go's collector and waits, within bounds, until unreachable arrays
// have been handed to the reclaimer. Weir does so itself before it reports that memory is
// exhausted.
func Collect() { garbage.All() }

// Scheduler is where tasks are started under ctx: the scheduler that it names, or
// that of the installed runtime.
func Scheduler(ctx context.Context) (scheduler.Scheduler, error) {
	if s := scheduler.Of(ctx); s != nil {
		return s, nil
	}
	return nil, notStarted("runtime.Scheduler")
}

// Default is the default device of the installed runtime.
func Default() (Device, error) {
	rt := installed.Load()
	if rt == nil {
		return Device{}, notStarted("runtime.Default")
	}
	return rt.fallback, rt.noDefault
}

// For answers the resources of an enrolled device.
func For(d Device) (*Resources, error) {
	rt := installed.Load()
	if rt == nil {
		return nil, notStarted("runtime.For")
	}
	if d.drv == nil {
		return nil, zeroDevice("runtime.For")
	}
	if r := rt.of(d); r != nil {
		return r, nil
	}
	cause := weir.ErrNoDevice
	if lost := d.Err(); lost != nil {
		cause = fmt.Errorf("%w: %w", cause, lost)
	}
	which := d.Name()
	if rt.enrolls(which) {
		which += ", a device of an earlier runtime,"
	}
	return nil, &weir.Error{Op: "runtime.For", Kind: weir.KindLogic, Err: cause,
		Message: fmt.Sprintf("%s is not enrolled; enrolled are %s", which, rt.names())}
}

// Enrolled lists the resources of every enrolled device, GPUs first.
func Enrolled() ([]*Resources, error) {
	rt := installed.Load()
	if rt == nil {
		return nil, notStarted("runtime.Enrolled")
	}
	return slices.Clone(rt.enrolled), nil
}

// Here answers the resources of the device that constructors use under ctx.
func Here(ctx context.Context) (*Resources, error) {
	d, err := At(ctx)
	if err != nil {
		return nil, err
	}
	return For(d)
}

func notStarted(op string) error {
	return &weir.Error{Op: op, Kind: weir.KindLogic, Message: "call runtime.Start first", Err: weir.ErrNotStarted}
}

// caller is the file and line that called the caller of this function.
func caller() string {
	_, file, line, ok := goruntime.Caller(2)
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
