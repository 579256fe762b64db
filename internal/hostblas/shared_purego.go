//go:build ((linux && !android) || darwin) && (amd64 || arm64)

package hostblas

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/weirgo/weir/internal/hostmem"
)

// shared is a library that the system's loader has opened.
type shared uintptr

// openShared loads a library, with symbols of its own that no other library
// sees. A failure is what diagnose makes of the loader's message.
func openShared(name string) (shared, error) {
	// The loader keeps its message for each system thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, errors.New(diagnose(name, err.Error()))
	}
	return shared(handle), nil
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
