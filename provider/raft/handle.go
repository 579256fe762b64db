package raft

import (
	goruntime "runtime"
	"strings"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// Handle is a handle of RAFT's with its handles of cuBLAS and cuSOLVER. It is tied to
// no stream: each operation gives it the lease's.
type Handle struct {
	*libraries
	dev       driver.Device
	resources uintptr // the rr_resources that own the handle; 0 once they are gone
	handle    uintptr
}

func newHandle(dev driver.Device) (*Handle, error) {
	const op = "raft.Acquire"
	if strings.HasPrefix(dev.Name(), "host:") {
		return nil, &weir.Error{Op: op, Device: dev.Name(), Err: weir.ErrNotSupported, Message: "RAFT computes on CUDA devices; expected one"}
	}
	l, err := load(op)
	if err != nil {
		return nil, err
	}
	h := &Handle{libraries: l, dev: dev}
	// Without a stream, and without handles of Weir's: RAFT makes its own.
	if err := h.native.call(op, dev.Name(), h.native.create, uintptr(dev.Ordinal()), 0, 0, 0, address(&h.resources)); err != nil {
		return nil, err
	}
	err = h.native.call(op, dev.Name(), h.native.handle, h.resources, address(&h.handle))
	if err == nil {
		err = h.operations.call(op, dev.Name(), h.operations.open, h.handle)
	}
	if err != nil {
		_ = h.Destroy() // the first failure says more
		return nil, err
	}
	return h, nil
}

// address is p as an argument. What p points to must be on the heap, and the caller
// keeps it reachable.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// WorkspaceBytes is 0: what operations need in between belongs to the device's pool.
func (h *Handle) WorkspaceBytes() int64 { return 0 }

// Destroy frees the handle, whose work is done. Of a device that is lost it stays:
// RAFT would wait for it.
func (h *Handle) Destroy() error {
	const op = "raft.Destroy"
	if h.resources == 0 {
		return nil
	}
	resources := h.resources
	h.resources = 0
	if err := h.dev.Err(); err != nil {
		return err
	}
	var err error
	if h.handle != 0 {
		err = h.operations.call(op, h.dev.Name(), h.operations.close, h.handle)
	}
	if released := h.native.call(op, h.dev.Name(), h.native.release, resources); err == nil {
		err = released
	}
	goruntime.KeepAlive(h)
	return err
}
