package host_test

import (
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/drivertest"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/hostblas"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHostPassesTheConformanceSuite(t *testing.T) {
	conformance(t, host.Options{Devices: 2})
}

func TestHostPassesTheConformanceSuiteWhenItHandsAllWorkOver(t *testing.T) {
	conformance(t, host.Options{Devices: 2, HandOver: true})
}

func conformance(t *testing.T, o host.Options) {
	cause := errors.New("the cause that the test gave")
	drivertest.Run(t, drivertest.Harness{
		Open: func(*testing.T) driver.Family { return host.New(o) },
		Kill: func(d driver.Device) error {
			d.(interface{ Kill(error) }).Kill(cause)
			return cause
		},
	})
}

// nowhere is an address that no process has mapped, far from what the system
// hands out.
const nowhere driver.Ptr = 1 << 45

// TestWorkThatFaultsKillsItsDeviceAlone gives a device work at an address
// outside every allocation; the process and the other device go on.
func TestWorkThatFaultsKillsItsDeviceAlone(t *testing.T) {
	for name, fault := range map[string]func(s driver.Stream, b driver.BLAS) error{
		"a copy":     func(s driver.Stream, _ driver.BLAS) error { return s.Copy(nowhere, nowhere+64, 8) },
		"a copy in":  func(s driver.Stream, _ driver.BLAS) error { return s.CopyIn(nowhere, make([]byte, 8)) },
		"a copy out": func(s driver.Stream, _ driver.BLAS) error { return s.CopyOut(make([]byte, 8), nowhere) },
		"a kernel": func(s driver.Stream, _ driver.BLAS) error {
			return s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: driver.View{Ptr: nowhere, DType: dtype.Float32}})
		},
		"a panic":   func(s driver.Stream, _ driver.BLAS) error { return s.Call(func() { panic("in a kernel") }) },
		"a product": func(s driver.Stream, b driver.BLAS) error { return b.Gemm(s, product(nowhere)) },
		"a product on several cores": func(s driver.Stream, b driver.BLAS) error {
			const n = 512
			g := product(nowhere)
			g.M, g.N, g.K, g.LDA, g.LDB, g.LDC = n, n, n, n, n, n
			return b.Gemm(s, g)
		},
	} {
		t.Run(name, func(t *testing.T) {
			// A library in C could not come back from a fault.
			f := host.New(host.Options{Devices: 2, BLAS: hostblas.Open("gonum")})
			var devices []driver.Device
			var streams []driver.Stream
			var handles []driver.BLAS
			for i := range 2 {
				devices = append(devices, must(f.Open(i)))
				streams = append(streams, must(devices[i].NewStream(0)))
				handles = append(handles, must(devices[i].NewBLAS()))
			}
			p := must(devices[1].Alloc(3 * 8))

			submitted := fault(streams[0], handles[0])
			err := errors.Join(submitted, streams[0].Synchronize())
			if !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(devices[0].Err(), weir.ErrDeviceLost) {
				t.Errorf("answered %v and left the device with %v; expected a lost device", err, devices[0].Err())
			}

			err = errors.Join(handles[1].Gemm(streams[1], product(p)), streams[1].Synchronize(), devices[1].Err())
			if err != nil {
				t.Errorf("the other device answers %v", err)
			}
			if err := errors.Join(handles[1].Destroy(), streams[1].Destroy(), devices[1].Free(p)); err != nil {
				t.Error(err)
			}
			_ = handles[0].Destroy()
			_ = streams[0].Destroy()
		})
	}
}

// product is a product of single numbers, three after each other at p.
func product(p driver.Ptr) *driver.Gemm {
	return &driver.Gemm{DType: dtype.Float64, M: 1, N: 1, K: 1, Alpha: 1, A: p, B: p + 8, C: p + 16,
		LDA: 1, LDB: 1, LDC: 1, Batch: 1}
}

// TestProductsThatFaultGiveTheirCoresBack has one product more fault than there
// are cores, and then needs one.
func TestProductsThatFaultGiveTheirCoresBack(t *testing.T) {
	for i := range goruntime.GOMAXPROCS(0) + 1 {
		d := must(host.New(host.Options{BLAS: hostblas.Open("gonum")}).Open(0))
		s, b := must(d.NewStream(0)), must(d.NewBLAS())
		if err := b.Gemm(s, product(nowhere)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Synchronize() }()
		select {
		case err := <-ended:
			if !errors.Is(err, weir.ErrDeviceLost) {
				t.Errorf("the product at an unmapped address answers %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("product %d waits for a core that a faulted product kept", i)
		}
		_, _ = b.Destroy(), s.Destroy()
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
