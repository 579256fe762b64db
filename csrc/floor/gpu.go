//go:build cuda

package floor

// #cgo CFLAGS: -std=gnu11 -O2 -Wall
// #cgo LDFLAGS: -lcuda -lcublas
// #include "floor.h"
// #cgo noescape floor_open
// #cgo noescape floor_memory
// #cgo noescape floor_alloc
// #cgo noescape floor_alloc_host
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/weirgo/weir"
)

// Address is an address in a device's memory.
type Address uint64

// GPU is a device with streams of its own.
type GPU struct {
	ordinal int
	lanes   int
	handle  *C.struct_floor_gpu
}

// Open opens the GPU of that ordinal, with so many streams, at least one.
func Open(ordinal, streams int) (*GPU, error) {
	g := &GPU{ordinal: ordinal, lanes: streams}
	if streams < 1 {
		return nil, weir.Argf("floor.Open", "%d streams; expected at least 1", streams)
	}
	return g, g.check("floor.Open", C.floor_open(C.int(ordinal), C.int(streams), &g.handle))
}

// Close waits for the device and gives everything but memory back. A second
// Close does nothing.
func (g *GPU) Close() error {
	if g.handle == nil {
		return nil
	}
	err := g.check("floor.Close", C.floor_close(g.handle))
	g.handle = nil
	return err
}

func (g *GPU) check(op string, result C.int) error {
	if result == 0 {
		return nil
	}
	e := &weir.Error{Op: op, Device: fmt.Sprintf("cuda:%d", g.ordinal), Kind: weir.KindCUDA,
		Code: max(int(result), -int(result)), Name: C.GoString(C.floor_name(result))}
	if result == 2 { // CUDA_ERROR_OUT_OF_MEMORY
		e.Kind, e.Err = weir.KindOutOfMemory, weir.ErrOutOfMemory
	}
	return e
}

// Synchronize waits for all work of the device, whoever submitted it.
func (g *GPU) Synchronize() error {
	return g.check("floor.Synchronize", C.floor_synchronize(g.handle))
}

// Memory answers the device's free and total bytes now.
func (g *GPU) Memory() (free, total int64, err error) {
	var f, t C.size_t
	err = g.check("floor.Memory", C.floor_memory(g.handle, &f, &t))
	return int64(f), int64(t), err
}

// Alloc takes device memory.
func (g *GPU) Alloc(bytes int64) (Address, error) {
	var p C.uint64_t
	err := g.check("floor.Alloc", C.floor_alloc(g.handle, C.size_t(bytes), &p))
	return Address(p), err
}

// Free gives device memory back.
func (g *GPU) Free(p Address) error {
	return g.check("floor.Free", C.floor_free(g.handle, C.uint64_t(p)))
}

// AllocHost takes page-locked memory, which FreeHost gives back.
func (g *GPU) AllocHost(bytes int64) ([]byte, error) {
	var p unsafe.Pointer
	if err := g.check("floor.AllocHost", C.floor_alloc_host(g.handle, C.size_t(bytes), &p)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

// FreeHost gives page-locked memory back.
func (g *GPU) FreeHost(memory []byte) error {
	return g.check("floor.FreeHost", C.floor_free_host(g.handle, unsafe.Pointer(unsafe.SliceData(memory))))
}

// Times are those of a loop: on the host until all was submitted and until all
// was done, and on the device, where it says so.
type Times struct{ Submit, Done, Device time.Duration }

func timesOf(t C.struct_floor_times) Times {
	return Times{Submit: time.Duration(t.submit), Done: time.Duration(t.done), Device: time.Duration(t.device)}
}
