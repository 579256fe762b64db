//go:build cuda

package cuda

// #include "driver.h"
// #cgo noescape weir_alloc
// #cgo noescape weir_alloc_host
import "C"

import (
	"fmt"

	"github.com/weirgo/weir/internal/driver"
)

// block is a live plain allocation.
type block struct {
	bytes  int64
	pinned bool
}

// absurd is more memory than a machine has, and less than overflows when the
// driver rounds it.
const absurd = 1 << 47

func (d *device) Alloc(bytes int64) (driver.Ptr, error) { return d.alloc("Device.Alloc", bytes, false) }

func (d *device) AllocHost(bytes int64) (driver.Ptr, error) {
	return d.alloc("Device.AllocHost", bytes, true)
}

func (d *device) alloc(op string, bytes int64, pinned bool) (driver.Ptr, error) {
	if err := d.alive(op); err != nil {
		return 0, err
	}
	if bytes <= 0 {
		return 0, d.argument(op, "%d bytes; expected a positive size", bytes)
	}
	if !pinned && bytes > d.caps.MemoryBytes {
		return 0, d.outOfMemory(op, "asked for %d bytes; the device has %d", bytes, d.caps.MemoryBytes)
	}
	if bytes > absurd {
		return 0, d.outOfMemory(op, "asked for %d bytes", bytes)
	}
	c, err := d.retain(op)
	if err != nil {
		return 0, err
	}
	var p C.uint64_t
	var result C.int
	if pinned {
		result = C.weir_alloc_host(c.handle, C.size_t(bytes), &p)
	} else {
		result = C.weir_alloc(c.handle, C.size_t(bytes), &p)
	}
	if result == codeOutOfMemory {
		err = d.outOfMemory(op, "asked for %d bytes%s", bytes, d.freeNow())
	} else {
		err = d.check(op, result)
	}
	if err != nil {
		d.release()
		return 0, err
	}
	d.mu.Lock()
	d.blocks[driver.Ptr(p)] = block{bytes, pinned}
	d.mu.Unlock()
	return driver.Ptr(p), nil
}

// freeNow is what a message says of the device's memory.
func (d *device) freeNow() string {
	free, total, err := d.Memory()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; %d of the device's %d are free", free, total)
}

func (d *device) Free(p driver.Ptr) error { return d.free("Device.Free", p, false) }

func (d *device) FreeHost(p driver.Ptr) error { return d.free("Device.FreeHost", p, true) }

func (d *device) free(op string, p driver.Ptr, pinned bool) error {
	d.mu.Lock()
	b, ok := d.blocks[p]
	ok = ok && b.pinned == pinned
	if ok {
		delete(d.blocks, p)
	}
	c := d.context
	d.mu.Unlock()
	if !ok {
		what := ""
		if pinned {
			what = "page-locked "
		}
		return d.argument(op, "%#x is not a live %sallocation", p, what)
	}
	defer d.release()
	if err := d.alive(op); err != nil {
		return err
	}
	if pinned {
		return d.check(op, C.weir_free_host(c.handle, C.uint64_t(p)))
	}
	return d.check(op, C.weir_free(c.handle, C.uint64_t(p)))
}
