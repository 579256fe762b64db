//go:build ((linux && !android) || darwin) && (amd64 || arm64)

package sharedlib

import (
	"errors"
	goruntime "runtime"

	"github.com/ebitengine/purego"
)

// dlopen has the system's loader open a library, whose symbols no other one sees.
func dlopen(name string) (uintptr, error) {
	// The loader keeps its message for each thread.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, errors.New(err.Error())
	}
	return handle, nil
}

// dlsym is the address of a name in a library, 0 where there is none.
func dlsym(handle uintptr, name string) uintptr {
	p, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return p
}

// Call calls a C function whose parameters are integers and addresses, at most 15, and
// answers the register of its result: an int is its lower half. It costs about 0.1 µs
// and does not allocate.
//
//go:uintptrescapes
func Call(fn uintptr, args ...uintptr) uintptr {
	result, _, _ := purego.SyscallN(fn, args...)
	return result
}
