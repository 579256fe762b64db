package drivertest

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// captureTests are of graphs; a family without them refuses to capture.
var captureTests = []test{
	{"what is captured runs at each launch and not before", func(f *fixture) {
		d := f.device(0)
		s, other := f.stream(d), f.stream(d)
		at := f.alloc(d, 8)
		f.ok(s.Zero(at, 8))
		e := f.event(d)
		g := f.capture(d, []driver.Stream{s, other}, func() error {
			return errors.Join(s.Launch(double(at)), s.Record(e), other.Wait(e), other.Launch(double(at)))
		})
		f.ok(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: element(at), Alpha: 1}))
		f.holdsElement(s, at, 1)
		for _, want := range []float64{9, 81} {
			f.ok(g.Launch(s))
			f.holdsElement(s, at, want)
		}
	}},
	{"captured groups keep their addresses though the handle is used", func(f *fixture) {
		d := f.device(0)
		s, b := f.stream(d), f.blas(d)
		x := newScalars(f, d, s, 8)
		x.rehearse(b)
		y := newScalars(f, d, s, 8)
		g := f.capture(d, []driver.Stream{s}, func() error { return b.GemmGroups(s, x.groups) })
		x.holds(0)
		f.ok(b.GemmGroups(s, y.groups))
		f.ok(g.Launch(s))
		x.holds(1)
		f.ok(g.Launch(s))
		x.holds(2)
		y.holds(1)
	}},
	{"Go memory and notifications are not captured", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		at := f.alloc(d, 8)
		g := f.capture(d, []driver.Stream{s}, func() error {
			f.refused(s.CopyIn(at, make([]byte, 8)), "Stream.CopyIn", d, weir.ErrNotSupported)
			f.refused(s.Notify(nil), "Stream.Notify", d, weir.ErrNotSupported)
			return nil
		})
		f.ok(g.Launch(s))
		f.ok(s.Synchronize())
	}},
	{"a failure while capturing is the capture's, and the streams are usual ones again", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		at := f.alloc(d, 8)
		f.capture(d, []driver.Stream{s}, func() error { return nil })
		failure := errors.New("the submission's")
		if _, err := d.Capture([]driver.Stream{s}, func() error { return failure }); !errors.Is(err, failure) {
			f.t.Errorf("Device.Capture answered %v; expected the failure", err)
		}
		f.refused(second(d.Capture(nil, func() error { return nil })), "Device.Capture", d, weir.ErrArgument)
		f.refused(second(d.Capture([]driver.Stream{s}, s.Synchronize)), "Device.Capture", d, weir.ErrNotSupported)
		f.ok(s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: element(at), Alpha: 5}))
		f.holdsElement(s, at, 5)
	}},
}

// capture answers a graph, or ends the test of a family that has none, which says so.
func (f *fixture) capture(d driver.Device, streams []driver.Stream, submit func() error) driver.Graph {
	f.t.Helper()
	g, err := d.Capture(streams, submit)
	if errors.Is(err, weir.ErrNotSupported) {
		f.refused(err, "Device.Capture", d, weir.ErrNotSupported)
		f.t.Skipf("%v", err)
	}
	f.ok(err)
	f.afterwards(d, "Graph.Destroy", g.Destroy)
	return g
}

// element is one number.
func element(at driver.Ptr) driver.View { return driver.View{Ptr: at, DType: dtype.Float64} }

// double is x = x + 2·x: not the same twice as once.
func double(at driver.Ptr) *driver.Kernel {
	return &driver.Kernel{Op: driver.KernelAxpby, Out: element(at), A: element(at), Alpha: 2, Beta: 1}
}

func (f *fixture) holdsElement(s driver.Stream, at driver.Ptr, want float64) {
	f.t.Helper()
	if got := f.float(s, at); got != want {
		f.t.Errorf("the element is %v; want %v", got, want)
	}
}

func (f *fixture) float(s driver.Stream, at driver.Ptr) float64 {
	f.t.Helper()
	b := make([]byte, 8)
	f.ok(s.CopyOut(b, at))
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
