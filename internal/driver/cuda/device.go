//go:build cuda

package cuda

// #cgo CFLAGS: -std=gnu11 -O2 -Wall
// #cgo LDFLAGS: -lcuda -lcublas -lcusolver
// #include "driver.h"
// #cgo noescape weir_memory_info
import "C"

import (
	"sync"
	"sync/atomic"

	"gorgonia.org/cu"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// device is one GPU. mu guards the fields below it and is held for a few
// instructions, never across a driver call.
type device struct {
	family  *family
	name    string
	ordinal int
	handle  cu.Device
	caps    driver.Capabilities

	dead atomic.Pointer[weir.Error] // the terminal error

	mu       sync.Mutex
	context  *context      // nil while no object lives
	changing chan struct{} // closed when context has been made or given up; nil while neither goes on
	blocks   map[driver.Ptr]block
	pools    map[*pool]bool // that live
	peers    []*device      // that have access to the pools, also to later ones
}

func (d *device) Err() error {
	if e := d.dead.Load(); e != nil {
		return e
	}
	return nil
}

func (d *device) Select() (func(), error) {
	const op = "Device.Select"
	c, err := d.retain(op)
	if err != nil {
		return nil, err
	}
	if err := d.check(op, C.weir_context_push(c.handle)); err != nil {
		d.release()
		return nil, err
	}
	return sync.OnceFunc(func() {
		C.weir_context_pop()
		d.release()
	}), nil
}

func (d *device) Memory() (free, total int64, err error) {
	const op = "Device.Memory"
	c, err := d.retain(op)
	if err != nil {
		return 0, 0, err
	}
	defer d.release()
	var f, t C.size_t
	if err := d.check(op, C.weir_memory_info(c.handle, &f, &t)); err != nil {
		return 0, 0, err
	}
	return int64(f), int64(t), nil
}
