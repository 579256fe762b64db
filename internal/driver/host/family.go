package host

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostblas"
)

// Options configures the family. The zero value is one device with the
// machine's memory and the process's BLAS.
type Options struct {
	Devices     int               // how many devices; 0 is 1
	MemoryBytes int64             // of each device; 0 is the machine's
	BLAS        *hostblas.Library // nil is hostblas.Default(), chosen at first use
	// HandOver makes streams run all work on goroutines of their own, also what
	// would be done sooner where it is submitted. Tests of concurrency need it.
	HandOver bool
}

type family struct{ devices []*device }

// New makes a family with its own devices.
func New(o Options) driver.Family {
	n := max(o.Devices, 1)
	total := o.MemoryBytes
	if total == 0 {
		total = systemMemory()
	}
	f := &family{}
	for i := range n {
		d := &device{name: fmt.Sprintf("host:%d", i), ordinal: i, siblings: n, library: o.BLAS, handOver: o.HandOver, total: total, death: make(chan struct{}), blocks: map[driver.Ptr]int64{}}
		d.caps = driver.Capabilities{
			Name:                 processorName(),
			MemoryBytes:          total,
			Multiprocessors:      goruntime.NumCPU(),
			ConcurrentKernels:    true,
			StreamOrderedPools:   true,
			UnifiedHostAddresses: true,
		}
		f.devices = append(f.devices, d)
	}
	return f
}

func (f *family) Name() string       { return "host" }
func (f *family) Count() int         { return len(f.devices) }
func (f *family) Unavailable() error { return nil }

func (f *family) Open(ordinal int) (driver.Device, error) {
	if ordinal < 0 || ordinal >= len(f.devices) {
		return nil, &weir.Error{Op: "Family.Open", Kind: weir.KindLogic, Err: weir.ErrNoDevice,
			Message: fmt.Sprintf("host device %d; there are %d, numbered from 0", ordinal, len(f.devices))}
	}
	return f.devices[ordinal], nil
}

// device is one host device. mu guards blocks, used, streams and pools, and is
// not held while work runs or an event fires.
type device struct {
	name     string
	ordinal  int
	siblings int // how many devices the family has
	caps     driver.Capabilities
	library  *hostblas.Library
	handOver bool
	total    int64

	dead   atomic.Pointer[weir.Error] // the terminal error
	death  chan struct{}              // closed when it is set
	active atomic.Int64               // pieces of work that run now

	mu      sync.Mutex
	blocks  map[driver.Ptr]int64 // every live allocation and its size
	used    int64
	streams []*stream
	pools   []*pool
	pinned  map[driver.Ptr]int64
}

func (d *device) Name() string                       { return d.name }
func (d *device) Ordinal() int                       { return d.ordinal }
func (d *device) Capabilities() *driver.Capabilities { return &d.caps }

func (d *device) Err() error {
	if e := d.dead.Load(); e != nil {
		return e
	}
	return nil
}

// alive is nil, or the error that call op answers on a dead device.
func (d *device) alive(op string) error {
	if e := d.dead.Load(); e != nil {
		return &weir.Error{Op: op, Device: d.name, Code: e.Code, Name: e.Name, Kind: weir.KindCUDA, Err: e}
	}
	return nil
}

func (d *device) argument(op, format string, args ...any) error {
	e := weir.Argf(op, format, args...)
	e.Device = d.name
	return e
}

// Kill makes the device die of cause. The first cause stays.
func (d *device) Kill(cause error) {
	terminal := &weir.Error{Op: "Device.Kill", Device: d.name, Code: 1, Name: "HOST_DEVICE_LOST", Kind: weir.KindCUDA,
		Err: fmt.Errorf("%w: %w", weir.ErrDeviceLost, cause)}
	if inner := (*weir.Error)(nil); errors.As(cause, &inner) { // it says more than this
		copied := *inner
		copied.Device, copied.Kind = d.name, weir.KindCUDA
		if !errors.Is(inner.Err, weir.ErrDeviceLost) {
			copied.Err = fmt.Errorf("%w: %w", weir.ErrDeviceLost, inner.Err)
			if inner.Err == nil {
				copied.Err = weir.ErrDeviceLost
			}
		}
		terminal = &copied
	}
	if !d.dead.CompareAndSwap(nil, terminal) {
		return
	}
	close(d.death)
	d.mu.Lock()
	streams := slices.Clone(d.streams)
	d.mu.Unlock()
	for _, s := range streams {
		go s.flush() // not here: Kill may be called by work, and flushing wakes others
	}
}

func (d *device) Select() (func(), error) {
	if err := d.alive("Device.Select"); err != nil {
		return nil, err
	}
	return func() {}, nil
}

func (d *device) Memory() (free, total int64, err error) {
	if err := d.alive("Device.Memory"); err != nil {
		return 0, 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return min(d.total-d.used, availableMemory()), d.total, nil
}

func (d *device) Capture([]driver.Stream, func() error) (driver.Graph, error) {
	const op = "Device.Capture"
	if err := d.alive(op); err != nil {
		return nil, err
	}
	return nil, &weir.Error{Op: op, Device: d.name, Kind: weir.KindLogic, Message: "the host has no graphs", Err: weir.ErrNotSupported}
}

func (d *device) NewBLAS() (driver.BLAS, error) {
	if err := d.alive("Device.NewBLAS"); err != nil {
		return nil, err
	}
	return &blas{dev: d, lib: d.blasLibrary()}, nil
}

func (d *device) blasLibrary() *hostblas.Library {
	if d.library != nil {
		return d.library
	}
	return hostblas.Default()
}
