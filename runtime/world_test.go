package runtime_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

const deviceBytes = 64 << 20

// hosts is a family of two host devices whose calls go through the plan.
func hosts() (driver.Family, *fault.Plan) {
	plan := &fault.Plan{}
	return fault.New(host.New(host.Options{HandOver: true, Devices: 2, MemoryBytes: deviceBytes}), plan), plan
}

// gpus is a family called cuda of n devices, each a host device underneath; or
// of none, for the reason why.
type gpus struct {
	driver.Family
	n   int
	why error

	mu     sync.Mutex
	opened map[int]driver.Device
}

func newGPUs(n int, why error) *gpus {
	return &gpus{Family: host.New(host.Options{HandOver: true, Devices: max(n, 1), MemoryBytes: deviceBytes}), n: n, why: why,
		opened: map[int]driver.Device{}}
}

func (g *gpus) Name() string       { return "cuda" }
func (g *gpus) Count() int         { return g.n }
func (g *gpus) Unavailable() error { return g.why }

func (g *gpus) Open(ordinal int) (driver.Device, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d, ok := g.opened[ordinal]; ok {
		return d, nil
	}
	inner, err := g.Family.Open(ordinal)
	if err != nil {
		return nil, err
	}
	g.opened[ordinal] = gpu{inner, fmt.Sprintf("cuda:%d", ordinal)}
	return g.opened[ordinal], nil
}

type gpu struct {
	driver.Device
	name string
}

func (g gpu) Name() string { return g.name }

// start starts a runtime that is closed at the end of the test, without error.
func start(t testing.TB, fams []driver.Family, o runtime.Options) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.StartFamilies(fams, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Errorf("Close: %s", weir.Report(err))
		}
	})
	return rt
}

func startHosts(t testing.TB, o runtime.Options) *fault.Plan {
	t.Helper()
	fam, plan := hosts()
	start(t, []driver.Family{fam}, o)
	return plan
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func get(name string) runtime.Device { return must(runtime.Get(name)) }

func resources(name string) *runtime.Resources { return must(runtime.For(get(name))) }

// refuses checks an error's sentinel and its whole text.
func refuses(t testing.TB, err, sentinel error, want string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%v does not match %v", err, sentinel)
	}
	if err == nil || err.Error() != want {
		t.Errorf("\ngot      %v\nexpected %s", err, want)
	}
}
