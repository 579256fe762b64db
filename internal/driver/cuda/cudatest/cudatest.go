//go:build cuda

package cudatest

// #cgo CFLAGS: -std=gnu11 -O2 -Wall
// #cgo LDFLAGS: -lcuda -ldl
// #include "control.h"
// #cgo noescape weir_test_stall
import "C"

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// Stall holds back what is submitted to s after it, until release.
func Stall(s driver.Stream) (release func(), err error) {
	var flag C.uintptr_t
	if result := C.weir_test_stall(C.uintptr_t(s.Native()), &flag); result != 0 {
		return nil, &weir.Error{Op: "cudatest.Stall", Code: int(result), Kind: weir.KindCUDA, Message: "the stream cannot be held", Err: weir.ErrNotSupported}
	}
	return sync.OnceFunc(func() { C.weir_test_release(flag) }), nil
}

// nowhere is an address in the first page, where no memory is, and one that the
// driver package takes.
const nowhere driver.Ptr = 1 << 12

const illegalAddress = 700 // CUDA_ERROR_ILLEGAL_ADDRESS

// Kill makes d's context die of a write to where no memory is, and with it all of
// the process. It answers the first cause, which is d's error or what that names.
func Kill(d driver.Device) error {
	KillUnseen(d.Ordinal(), illegalAddress)
	s, err := d.NewStream(0)
	if err == nil {
		err = s.Launch(&driver.Kernel{Op: driver.KernelFill, Out: driver.View{Ptr: nowhere, DType: dtype.Float32}})
		if err == nil {
			err = s.Synchronize()
		}
		_ = s.Destroy() // of a dead device
	}
	if d.Err() == nil {
		panic(fmt.Sprintf("%s survived a write to %#x: %v", d.Name(), nowhere, err))
	}
	cause := d.Err()
	for first := (*weir.Error)(nil); errors.As(errors.Unwrap(cause), &first); {
		cause = first
	}
	return cause
}

// Heap is how many bytes the process has from C's malloc.
func Heap() int64 { return int64(C.weir_test_heap()) }
