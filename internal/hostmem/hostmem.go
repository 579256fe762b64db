// Package hostmem allocates processor memory outside the Go heap, page
// aligned and zeroed, so that its addresses can be held as numbers, as those
// of a GPU are.
//
// Ownership: Free is called once for each Alloc, with the same size.
// Concurrency: safe. Errors: ErrOutOfMemory with the size.
package hostmem

import (
	"fmt"
	"unsafe"

	"github.com/weirgo/weir"
)

// Alloc answers n zeroed bytes; n of 0 or less is an argument error.
func Alloc(n int64) (uintptr, error) {
	if n <= 0 {
		return 0, weir.Argf("hostmem.Alloc", "%d bytes; expected a positive size", n)
	}
	p, err := alloc(n)
	if err != nil {
		return 0, &weir.Error{Op: "hostmem.Alloc", Kind: weir.KindOutOfMemory,
			Message: fmt.Sprintf("%d bytes refused by the system (%v)", n, err), Err: weir.ErrOutOfMemory}
	}
	return p, nil
}

// Free gives n bytes at p back.
func Free(p uintptr, n int64) error { return free(p, n) }

// Pointer is the pointer with address p. The conversion goes through memory
// because p is outside the Go heap: the garbage collector ignores it.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// Bytes is the memory at p as a slice.
func Bytes(p uintptr, n int64) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(Pointer(p)), n)
}

// Slice is the memory at p as n elements.
func Slice[T any](p uintptr, n int64) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(Pointer(p)), n)
}
