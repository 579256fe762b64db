//go:build unix

package hostmem

import (
	"golang.org/x/sys/unix"
)

func alloc(n int64) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return uintptr(p), err
}

func free(p uintptr, n int64) error { return unix.MunmapPtr(Pointer(p), uintptr(n)) }
