// Package hollow is a family with one device that computes nothing, for benchmarks:
// its memory is the host's, its products, records and waits are empty, and a
// stream's work is done once Behind records came after it, or when somebody waits
// for it. What an operation takes on it is what Weir itself takes, as opposed to
// the driver and its libraries.
package hollow

import (
	"sync/atomic"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
)

// Behind is how many records a stream's work is done after, as that of a device
// which is that far behind.
const Behind = 32

// New answers the family.
func New() driver.Family { return family{host.New(host.Options{})} }

type family struct{ driver.Family }

func (f family) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return &device{d}, nil
}

type device struct{ driver.Device }

func (d *device) NewStream(priority int) (driver.Stream, error) {
	s, err := d.Device.NewStream(priority)
	if err != nil {
		return nil, err
	}
	return &stream{Stream: s}, nil
}

func (d *device) NewEvent() (driver.Event, error) { return &event{}, nil }

func (d *device) NewBLAS() (driver.BLAS, error) { return blas{}, nil }

func (d *device) NewPool(c driver.PoolConfig) (driver.Pool, error) {
	p, err := d.Device.NewPool(c)
	if err != nil {
		return nil, err
	}
	return pool{p}, nil
}

type pool struct{ driver.Pool }

func (p pool) Alloc(s driver.Stream, bytes int64) (driver.Ptr, error) {
	return p.Pool.Alloc(s.(*stream).Stream, bytes)
}

func (p pool) Free(s driver.Stream, at driver.Ptr) error {
	return p.Pool.Free(s.(*stream).Stream, at)
}

type stream struct {
	driver.Stream
	records atomic.Uint64
}

func (s *stream) Record(e driver.Event) error {
	ev := e.(*event)
	ev.at.Store(s.records.Add(1))
	ev.of.Store(s)
	return nil
}

func (s *stream) Wait(driver.Event) error { return nil }
func (s *stream) Idle() bool              { return false }
func (s *stream) Query() (bool, error)    { return true, nil }

func (s *stream) Notify(w driver.Waker) error {
	s.records.Add(Behind)
	go w.Wake(nil)
	return nil
}

func (s *stream) Synchronize() error {
	s.records.Add(Behind)
	return s.Stream.Synchronize()
}

type event struct {
	of atomic.Pointer[stream]
	at atomic.Uint64
}

func (e *event) Query() (bool, error) {
	s := e.of.Load()
	return s == nil || s.records.Load() >= e.at.Load()+Behind, nil
}

func (e *event) Synchronize() error {
	if done, _ := e.Query(); !done {
		e.of.Load().records.Add(Behind)
	}
	return nil
}

func (e *event) Destroy() error { return nil }

type blas struct{}

func (blas) Gemm(driver.Stream, *driver.Gemm) error             { return nil }
func (blas) GemmGroups(driver.Stream, []driver.GemmGroup) error { return nil }
func (blas) WorkspaceBytes() int64                              { return 0 }
func (blas) Destroy() error                                     { return nil }
