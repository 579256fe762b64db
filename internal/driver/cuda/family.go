//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"sync"

	"gorgonia.org/cu"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// oldest is the oldest version of the driver's interface that will do, as
// cuDriverGetVersion counts.
const oldest = 12000

// New makes a family over the process's GPUs, with device objects of its own.
// It makes no driver call.
func New() driver.Family { return &family{} }

// family: mu guards devices, and is held while capabilities are asked: those calls
// need no context and wait for no device.
type family struct {
	find    sync.Once
	count   int
	missing error

	mu      sync.Mutex
	devices map[int]*device

	deaths sync.Mutex  // guards first, and orders the deaths of devices
	first  *weir.Error // what the first device died of
}

func (f *family) Name() string { return "cuda" }

func (f *family) Count() int {
	f.find.Do(f.look)
	return f.count
}

func (f *family) Unavailable() error {
	f.find.Do(f.look)
	return f.missing
}

func (f *family) look() {
	for _, name := range [...]string{"WEIR_CUDA_LIBRARY_PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"} {
		os.Getenv(name) // C reads it; so that go test, which sees what Go reads, takes no result of another environment
	}
	count, err := cu.NumDevices()
	version := cu.Version()
	switch reason := libraryReason("cuda"); {
	case reason != "":
		f.missing = unavailable("%s", reason)
	case err != nil:
		f.missing = unavailable("%s does not count its devices: %v", libraryPath("cuda"), err)
	case count == 0:
		f.missing = unavailable("%s sees no device", libraryPath("cuda"))
	case version < oldest:
		f.missing = unavailable("%s is the driver of CUDA %s; expected %s or later", libraryPath("cuda"), release(version), release(oldest))
	default:
		f.count = count
	}
}

func release(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }

func unavailable(format string, args ...any) error {
	return &weir.Error{Op: "cuda", Kind: weir.KindCUDA, Message: fmt.Sprintf(format, args...), Err: weir.ErrNoDevice}
}

func (f *family) Open(ordinal int) (driver.Device, error) {
	const op = "Family.Open"
	if n := f.Count(); ordinal < 0 || ordinal >= n {
		message := fmt.Sprintf("CUDA device %d; there are %d, numbered from 0", ordinal, n)
		if f.missing != nil {
			message += ": " + f.missing.Error()
		}
		return nil, &weir.Error{Op: op, Kind: weir.KindLogic, Message: message, Err: weir.ErrNoDevice}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.devices[ordinal]; d != nil {
		return d, nil
	}
	d := &device{family: f, name: fmt.Sprintf("cuda:%d", ordinal), ordinal: ordinal, blocks: map[driver.Ptr]block{}, pools: map[*pool]bool{}}
	if err := d.describe(); err != nil {
		return nil, &weir.Error{Op: op, Device: d.name, Kind: weir.KindCUDA, Message: "the driver does not describe the device", Err: err}
	}
	if f.devices == nil {
		f.devices = map[int]*device{}
	}
	f.devices[ordinal] = d
	return d, nil
}
