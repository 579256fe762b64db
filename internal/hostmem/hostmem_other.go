//go:build !unix

package hostmem

import (
	"sync"
	"unsafe"
)

// blocks keeps the memory reachable; Go's collector does not move it.
var blocks sync.Map

func alloc(n int64) (uintptr, error) {
	b := make([]byte, n+pageSize)
	p := (uintptr(unsafe.Pointer(&b[0])) + pageSize - 1) &^ (pageSize - 1)
	blocks.Store(p, b)
	return p, nil
}

func free(p uintptr, _ int64) error {
	blocks.Delete(p)
	return nil
}

const pageSize = 4096
