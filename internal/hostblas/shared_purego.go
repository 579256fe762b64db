//go:build ((linux && !android) || darwin) && (amd64 || arm64)

package hostblas

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"github.com/weirgo/weir/internal/hostmem"
)

// shared is a library that the system's loader has opened.
type shared uintptr

// openShared loads a library, with symbols of its own that no other library
// sees. A failure is what diagnose makes of the loader's message.
func openShared(name string) (shared, error) {
	if err := roomForBuffers(); err != nil {
		return 0, err
	}
	// The loader keeps its message for each system thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, errors.New(diagnose(name, err.Error()))
	}
	return shared(handle), nil
}

// OpenBLAS maps a buffer for each thread that multiplies, the first ones while it
// is loaded, and where the process may map no more it tries for ever. So whether
// there is room, for as many as there may be and one for the library, is found out
// before; what else the process maps later can still take it.
const (
	bufferBytes = 128 << 20
	mostThreads = 64 // of the usual builds
)

// roomForBuffers is nil, or why a library may not be loaded.
func roomForBuffers() error {
	buffers := min(runtime.NumCPU(), mostThreads) + runtime.GOMAXPROCS(0) + 1
	bytes := uintptr(buffers) * bufferBytes
	p, err := unix.MmapPtr(-1, 0, nil, bytes, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("not loaded: there is no room for the %d buffers of %d MiB that OpenBLAS may map (%v); see ulimit -v", buffers, bufferBytes>>20, err)
	}
	return unix.MunmapPtr(p, bytes)
}

// symbol is the address of a name, 0 where there is none.
func (s shared) symbol(name string) uintptr {
	p, err := purego.Dlsym(uintptr(s), name)
	if err != nil {
		return 0
	}
	return p
}

func (s shared) close() { _ = purego.Dlclose(uintptr(s)) }

// invoke calls a C function whose arguments are integers or addresses. It
// costs about 0.1 µs and does not allocate.
func invoke(fn uintptr, args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// fileOf is the file of the library that holds an address, "" if the loader
// doesn't tell.
func fileOf(address uintptr) string {
	dladdr, err := purego.Dlsym(purego.RTLD_DEFAULT, "dladdr")
	if err != nil {
		return ""
	}
	// Dl_info: file name, base, symbol name, symbol address.
	info := new([4]uintptr)
	if ok, _, _ := purego.SyscallN(dladdr, address, uintptr(unsafe.Pointer(info))); int32(ok) == 0 {
		return ""
	}
	return realFile(textAt(info[0]))
}

// textAt is the C string at p.
func textAt(p uintptr) string {
	if p == 0 {
		return ""
	}
	var n int64
	for *(*byte)(hostmem.Pointer(p + uintptr(n))) != 0 {
		n++
	}
	return string(hostmem.Bytes(p, n))
}
